import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect as connectHttp2 } from 'node:http2'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createTlsServer, type Server, connect as tlsConnect } from 'node:tls'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { type Pair, SiteCertificates } from '../harness/gateway-secrets.ts'
import { networkingDocument as document } from '../harness/mesh-document.ts'
import { policyDocument } from '../harness/policies.ts'
import { describeAttacks } from '../harness/red-team.ts'
import { secureCall } from '../harness/secure-call.ts'
import { until } from '../harness/until.ts'

describeAttacks('isolation of gateway servers', (place) => {
  if (place.side !== 'gateway') return
  const made = new SiteCertificates()
  const dir = mkdtempSync(join(tmpdir(), 'mesh-attack-'))
  const ports = { tls: 0, auto: 0, inner: 0 }
  let root: Pair
  let inner: Server

  before(async () => {
    for (const name of Object.keys(ports) as (keyof typeof ports)[]) ports[name] = await freePort()
    root = made.authority('sites')
    const { chain, key } = made.issue('site.example', root)
    const file = (name: string, text: string): string => {
      writeFileSync(join(dir, name), text)
      return join(dir, name)
    }
    inner = createTlsServer({ cert: chain, key, ALPNProtocols: ['istio', 'h2'] }, (socket) => socket.end('inner'))
    await new Promise<void>((resolve) => inner.listen(ports.inner, '127.0.0.1', resolve))
    const pair = `serverCertificate: ${file('site.pem', chain)}, privateKey: ${file('site-key.pem', key)}`
    const server = (port: number, name: string, protocol: string, host: string, tls: string) =>
      `{port: {number: ${port}, name: ${name}, protocol: ${protocol}}, bind: ${place.address}, hosts: ['${host}'], tls: {${tls}}}`
    const servers = [
      server(ports.tls, 'open', 'HTTPS', 'open.example', `mode: SIMPLE, ${pair}`),
      server(
        ports.tls,
        'inner',
        'HTTPS',
        'inner.example',
        `mode: MUTUAL, ${pair}, caCertificates: ${file('clients.pem', made.authority('clients').chain)}`,
      ),
      server(ports.tls, 'through', 'TLS', 'through.example', 'mode: PASSTHROUGH'),
      server(ports.auto, 'auto', 'TLS', 'shop/*.mesh.example', 'mode: AUTO_PASSTHROUGH'),
    ]
    const service = (name: string, namespace: string, host: string) =>
      document(
        'ServiceEntry',
        name,
        `{hosts: [${host}], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 127.0.0.1, ports: {http: ${ports.inner}}, serviceAccount: inner, labels: {v: v1}}]}`,
        namespace,
      )
    place.service.write(
      'admitted.yaml',
      [
        document('Gateway', 'admitted', `{selector: {place: ${place.id}}, servers: [${servers.join()}]}`),
        document(
          'VirtualService',
          'admitted',
          "{hosts: ['*.example'], gateways: [admitted], http: [{route: [{destination: {host: backend.example}}]}]}",
        ),
        document(
          'VirtualService',
          'through',
          "{hosts: ['*.example'], gateways: [admitted], tls: [{match: [{sniHosts: ['*.example']}], route: [{destination: {host: listed.mesh.example}}]}]}",
        ),
        service('listed', 'shop', 'listed.mesh.example'),
        service('unlisted', 'shop', 'unlisted.other.example'),
        service('foreign', 'bank', 'foreign.mesh.example'),
        document('DestinationRule', 'unlisted', '{host: unlisted.other.example, subsets: [{name: v1, labels: {v: v1}}]}'),
      ].join('---\n'),
    )
    await until('the servers', async () => (await secure('open.example', 'open.example')) === 200)
    await until('what is listed', async () => (await passed('outbound_.80_._.listed.mesh.example', ['istio'])) === 'inner')
  })
  after(async () => {
    place.service.remove('admitted.yaml')
    await new Promise((resolve) => inner.close(resolve))
    made.dispose()
    rmSync(dir, { recursive: true })
  })

  const secure = async (host: string, requested: string) =>
    (await secureCall(place.address, ports.tls, { host, requested, root, anyName: true })).status

  /** Returns the bytes that a TLS connection to the server of mode AUTO_PASSTHROUGH, or to another port, receives. */
  const passed = (servername: string, ALPNProtocols: string[], port = ports.auto): Promise<string> =>
    new Promise((resolve) => {
      let text = ''
      const socket = tlsConnect({ host: place.address, port, servername, ALPNProtocols, rejectUnauthorized: false })
      socket.on('data', (bytes) => (text += bytes))
      socket.on('error', () => resolve(text))
      socket.on('close', () => resolve(text))
    })

  it('a request for the host of one server over the TLS server name of another is answered 404', async () => {
    const before = place.backend.seen.length
    for (const host of ['inner.example', 'INNER.example', 'inner.example.', `inner.example:${ports.tls}`, 'inner.example:80', 'through.example'])
      expect(await secure('open.example', host), host).to.equal(404)
    expect(place.backend.seen.length).to.equal(before)
  })

  it('an HTTP/2 connection for one server answers 404 for the host of another', async () => {
    const session = connectHttp2(`https://${place.address}:${ports.tls}`, {
      servername: 'open.example',
      ca: root.chain,
      checkServerIdentity: () => undefined,
    })
    const ask = (host: string) =>
      new Promise<number>((resolve, reject) => {
        const stream = session.request({ ':path': '/', ':authority': host })
        stream.on('response', (answer) => resolve(Number(answer[':status'])))
        stream.on('error', reject)
        stream.resume()
      })
    expect([await ask('open.example'), await ask('inner.example')]).to.deep.equal([200, 404])
    session.destroy()
  })

  it('a server that requires client certificates does so for every spelling of its TLS server name', async () => {
    for (const name of ['inner.example', 'INNER.EXAMPLE', 'Inner.Example']) expect(await secure(name, 'inner.example'), name).to.equal(0)
    for (const name of ['other.example', '*.example', 'a.inner.example', '']) expect(await secure(name, 'inner.example'), name).to.equal(0)
  })

  it('TLS passthrough serves only hosts of its server, even if a VirtualService lists more', async () => {
    expect(await passed('through.example', [], ports.tls)).to.equal('inner')
    for (const name of ['other.example', 'a.through.example', 'listed.mesh.example']) expect(await passed(name, [], ports.tls), name).to.equal('')
  })

  it('AUTO_PASSTHROUGH reaches no uncovered host, no other namespace, no subset, and requires the mesh ALPN', async () => {
    const cluster = (host: string, subset = '', port = 80) => `outbound_.${port}_.${subset}_.${host}`
    for (const name of [
      cluster('unlisted.other.example'),
      cluster('unlisted.other.example', 'v1'),
      cluster('foreign.mesh.example'),
      cluster('backend.example'),
    ])
      expect(await passed(name, ['istio']), name).to.equal('')
    for (const name of [cluster('listed.mesh.example', '', 81), 'listed.mesh.example', 'outbound|80||listed.mesh.example', cluster('*.mesh.example')])
      expect(await passed(name, ['istio']), name).to.equal('')
    for (const protocols of [[], ['h2'], ['http/1.1'], ['istio-x']])
      expect(await passed(cluster('listed.mesh.example'), protocols), protocols.join()).to.equal('')
  })

  it('a route cannot take the Host header from a request header, and a denied host stays denied', async () => {
    place.service.write(
      'chosen.yaml',
      document(
        'VirtualService',
        'chosen',
        `{hosts: [chosen.example], gateways: [${place.id}], http: [{headers: {request: {set: {Host: '%REQ(x-host)%'}}}, route: [{destination: {host: backend.example}}]}]}`,
      ),
    )
    await place.service.output.says('spec.http[0].headers.request.set[Host]')
    place.service.remove('chosen.yaml')
    await place.enforce(policyDocument('AuthorizationPolicy', 'hosts', '{action: DENY, rules: [{to: [{operation: {hosts: [secret.example]}}]}]}'))
    for (const headers of [{ 'x-forwarded-host': 'secret.example' }, { 'x-host': 'secret.example' }] as Record<string, string>[]) {
      await place.call('/', { host: 'open.example', headers })
      expect(place.backend.seen.at(-1)?.headers.host).to.equal('open.example')
    }
    expect((await place.call('/', { host: 'secret.example' })).status).to.equal(403)
    await place.enforce()
  })
})
