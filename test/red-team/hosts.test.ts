import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { grpcAuthorizer } from '../harness/authorizer.ts'
import { policyDocument } from '../harness/policies.ts'
import { describeAttacks, type Place } from '../harness/red-team.ts'

const rule = (action: string, body: string, rest = '') =>
  policyDocument('AuthorizationPolicy', 'hosts', `{action: ${action}, ${rest}rules: [${body}]}`)
const policy = (action: string, operation: string, rest = '') => rule(action, `{to: [{operation: ${operation}}]}`, rest)

/** Host headers that pass Envoy's validation and that a server may treat as `secret.com`. */
const forms = [
  ...[
    'secret.com',
    'SECRET.com',
    'secret.com:80',
    'secret.com.',
    'secret.com.:8080',
    'secret.com:',
    'secret.com:x',
    'secret.com:80a',
    'secret.com:+80',
  ],
  ...[
    'secret.com:-1',
    'secret.com:080',
    'secret.com.:',
    'secret.com..',
    'u@secret.com',
    'u:p@secret.com',
    'secret%2ecom',
    'secret%2Ecom:80',
    '%73ecret.com',
  ],
  ...['open.com,secret.com', 'secret.com,open.com', 'open.com:80@secret.com', '.secret.com', "secret.com'", ''],
]
const others = ['open.com', 'open.com:8080', 'open.com.', 'notsecret.com', 'secret.com.evil.org', 'a_b.open.com', '[::1]:80', 'xn--bcher-kva.example']

const statusOf = async (place: Place, ...hosts: string[]) => {
  const lines = hosts.map((host) => `Host: ${host}\r\n`).join('')
  return (await place.raw(`GET / HTTP/1.1\r\n${lines}Connection: close\r\n\r\n`)).status
}

/** Returns the hosts that got another status than the expected one. Envoy may answer 400 to any of them. */
async function wrong(place: Place, hosts: readonly string[], status: number): Promise<string[]> {
  const found: string[] = []
  for (const host of hosts) {
    const seen = await statusOf(place, host)
    if (seen !== status && seen !== 400) found.push(`${JSON.stringify(host)}: ${seen}`)
  }
  return found
}

describeAttacks('hosts', (place) => {
  it('a denied host is denied in every form that a server may accept for it, and no other host is', async () => {
    await place.enforce(policy('DENY', '{hosts: [secret.com]}'))
    expect(await wrong(place, forms, 403)).to.deep.equal([])
    expect(await wrong(place, others, 200)).to.deep.equal([])
    expect(await statusOf(place, 'open.com', 'secret.com'), 'two Host lines').to.be.oneOf([400, 403])
    expect(await statusOf(place, 'secret.com', 'open.com'), 'two Host lines').to.be.oneOf([400, 403])
    const target = async (start: string) =>
      (await place.raw(`GET ${start} HTTP/1.1\r\nHost: open.com\r\nX-Forwarded-Host: open.com\r\nConnection: close\r\n\r\n`)).status
    expect(await target('http://secret.com/'), 'absolute form').to.equal(403)
    expect(await target('http://u@secret.com/'), 'absolute form with a user').to.be.oneOf([400, 403])
    expect(await target('http://secret.com:x/'), 'absolute form with no port').to.be.oneOf([400, 403])
    expect((await place.raw('GET / HTTP/1.1\r\nHost: open.com\r\nX-Forwarded-Host: secret.com\r\nConnection: close\r\n\r\n')).status).to.equal(200)
  })

  it('HTTP/2 requests are matched by :authority, even if the Host header differs', async () => {
    await place.enforce(policy('DENY', '{hosts: [secret.com]}'))
    const http2 = async (headers: Record<string, string>) => (await place.http2(headers).catch(() => ({ status: 0 }))).status
    expect(await http2({ ':authority': 'open.com' })).to.equal(200)
    for (const authority of ['secret.com', 'secret.com:', 'secret.com:x', 'secret.com.', 'SECRET.com:+80', 'secret%2ecom'])
      expect(await http2({ ':authority': authority }), authority).to.be.oneOf([403, 400, 0])
    expect(await http2({ ':authority': 'secret.com', host: 'open.com' })).to.equal(403)
    expect(await http2({ ':authority': '', host: 'secret.com' })).to.be.oneOf([403, 400, 0])
    expect(await http2({ ':authority': 'open.com', host: 'secret.com' })).to.equal(200)
    expect(place.backend.seen.at(-1)?.headers.host).to.equal('open.com')
  })

  for (const [name, document] of [
    ['an exception of ALLOW', policy('ALLOW', '{notHosts: [secret.com]}')],
    ['a condition on the header host', rule('DENY', "{when: [{key: 'request.headers[Host]', values: [secret.com]}]}")],
    ['a condition on the header :authority', rule('DENY', "{when: [{key: 'request.headers[:authority]', values: [secret.com]}]}")],
    ['an exception on the header host', rule('ALLOW', "{when: [{key: 'request.headers[host]', notValues: [secret.com]}]}")],
    ['a suffix', policy('DENY', "{hosts: ['*ecret.com']}")],
    ['a host in upper case with a final dot', policy('DENY', "{hosts: ['Secret.COM.']}")],
  ] as const)
    it(`a host is denied in every form by ${name}`, async () => {
      await place.enforce(document)
      expect(await wrong(place, forms, 403)).to.deep.equal([])
      expect(await wrong(place, ['open.com', 'open.com:80', '[::1]:80'], 200)).to.deep.equal([])
    })

  it('DENY rules match hosts with ports, prefixes, suffixes, addresses and international names in every form', async () => {
    const cases: [values: string, denied: string[], passed: string[]][] = [
      [
        "['secret.com:80']",
        ['secret.com:80', 'secret.com', 'secret.com.:80', 'secret.com:080', 'secret.com:', 'secret.com:+80'],
        ['secret.com:81', 'open.com'],
      ],
      ["['secret.com:8080']", ['secret.com:8080', 'secret.com.:8080', 'secret.com:08080', 'secret.com:'], ['secret.com', 'secret.com:80']],
      ["['*.secret.com']", ['a.secret.com', 'a.secret.com:', 'A.Secret.com.:x', 'u@a.secret.com'], ['secret.com', 'a.secret.com.org']],
      ["['secret.*']", ['secret.org', 'SECRET.org:x', 'u@secret.org'], ['asecret.org']],
      ["['secret.com:*']", ['secret.com:80', 'secret.com.:80', 'secret.com:x'], ['secret.com.org:80']],
      ["['[::1]']", ['[::1]', '[::1]:80', '[::1]:x', '[::1'], ['[::2]', 'open.com']],
      ["['::1']", ['[::1]', '[::1]:80', '::1'], ['[::2]']],
      ["['bücher.example']", ['xn--bcher-kva.example', 'XN--bcher-kva.example:80'], ['bucher.example']],
      [`['${'a.'.repeat(45)}com']`, [`${'a.'.repeat(45)}com`, `${'a.'.repeat(45)}com:x`], ['a.com']],
      ["['*']", forms, []],
    ]
    for (const [values, denied, passed] of cases) {
      await place.enforce(policy('DENY', `{hosts: ${values}}`))
      expect(await wrong(place, denied, 403), values).to.deep.equal([])
      expect(await wrong(place, passed, 200), values).to.deep.equal([])
    }
  })

  it('an ALLOW rule for a host matches no ambiguous form of it', async () => {
    await place.enforce(policy('ALLOW', "{hosts: [open.com, '*.open.org']}"))
    expect(await wrong(place, ['open.com', 'OPEN.com:80', 'open.com.', 'a.open.org', 'a.open.org:8080'], 200)).to.deep.equal([])
    const odd = [
      'open.com:',
      'open.com:x',
      'open.com:+80',
      'u@open.com',
      'open.com,secret.com',
      'secret.com,a.open.org',
      'secret.com@a.open.org',
      'secret.com:x.open.org',
      'open%2ecom',
      '',
    ]
    expect(await wrong(place, odd, 403)).to.deep.equal([])
    expect(await statusOf(place, 'open.com', 'secret.com')).to.be.oneOf([400, 403])
  })

  it('an external authorizer is asked for every form of a host', async () => {
    const authorizer = await grpcAuthorizer()
    const port = await freePort()
    try {
      place.service.write('mesh-config', `extensionProviders: [{name: word, envoyExtAuthzGrpc: {service: authorizer.example, port: ${port}}}]`)
      place.service.write(
        'authorizer.yaml',
        `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: authorizer, namespace: shop}\nspec: {hosts: [authorizer.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: ${port}, name: grpc}], endpoints: [{address: 127.0.0.1, ports: {grpc: ${authorizer.port}}}]}\n`,
      )
      await place.enforce(policy('CUSTOM', '{hosts: [secret.com]}', 'provider: {name: word}, '))
      expect(await wrong(place, ['open.com', 'open.com:80'], 200)).to.deep.equal([])
      expect(await wrong(place, forms, 403)).to.deep.equal([])
      expect(authorizer.asked.length).to.be.above(10)
    } finally {
      await place.enforce()
      place.service.write('mesh-config', '')
      place.service.remove('authorizer.yaml')
      authorizer.stop()
    }
  })
})
