import { expect } from 'chai'
import { Issuer } from '../harness/issuer.ts'
import { OwnTime } from '../harness/own-time.ts'
import { policyDocument } from '../harness/policies.ts'
import { describeAttacks } from '../harness/red-team.ts'

const rule = (action: string, when: object[]) => policyDocument('AuthorizationPolicy', 'claims', JSON.stringify({ action, rules: [{ when }] }))
const claim = (name: string, values: string[], field: 'values' | 'notValues' = 'values') => [{ key: `request.auth.claims[${name}]`, [field]: values }]

describeAttacks('claims, headers and addresses in policies', (place) => {
  const issuer = new Issuer('https://issuer.example')
  const tokens = () => policyDocument('RequestAuthentication', 'tokens', JSON.stringify({ jwtRules: [{ issuer: issuer.name, jwks: issuer.jwks }] }))
  const withClaims = async (claims: Record<string, unknown>) =>
    (await place.call('/', { headers: { authorization: `Bearer ${await issuer.token(claims)}` } })).status
  before(() => issuer.rotate())

  /** Returns the claims whose requests got another status than the expected one. */
  const wrong = async (claims: readonly Record<string, unknown>[], status: number) => {
    const found: string[] = []
    for (const each of claims) {
      const seen = await withClaims(each)
      if (seen !== status) found.push(`${JSON.stringify(each)}: ${seen}`)
    }
    return found
  }

  it('DENY rules match boolean and numeric claims as text, also within lists', async () => {
    await place.enforce(tokens(), rule('DENY', claim('suspended', ['true', '1', '7.5', 'yes'])))
    const denied = [true, 'true', 1, 7.5, '1', 'yes', 'no yes', [true], ['true'], [1], [[1]], [['yes']], ['no', 'yes'], 1.0].map((suspended) => ({
      suspended,
    }))
    expect(await wrong(denied, 403)).to.deep.equal([])
    const passed = [false, 0, 2, 'no', 'truely', [], {}, null, [false, 0], { true: true }].map((suspended) => ({ suspended }))
    expect(await wrong([...passed, {}], 200)).to.deep.equal([])
    await place.enforce(tokens(), rule('DENY', claim('suspended', ['TRUE', 'fal*', '*0'])))
    expect(await wrong([{ suspended: true }, { suspended: false }, { suspended: 30 }], 403)).to.deep.equal([])
  })

  it('notValues match boolean and numeric claims as text, and presence checks match any value', async () => {
    await place.enforce(tokens(), rule('ALLOW', claim('level', ['0', 'false'], 'notValues')))
    expect(await wrong([{ level: 0 }, { level: '0' }, { level: false }, { level: [0] }], 403)).to.deep.equal([])
    expect(await wrong([{ level: 1 }, { level: true }, {}], 200)).to.deep.equal([])
    await place.enforce(tokens(), rule('DENY', claim('ban', ['*'])))
    expect(await wrong([{ ban: true }, { ban: 0 }, { ban: 'x' }, { ban: {} }, { ban: [1] }, { ban: [] }], 403)).to.deep.equal([])
    expect(await wrong([{}], 200)).to.deep.equal([])
  })

  it('ALLOW rules match no boolean, numeric or nested claims', async () => {
    await place.enforce(tokens(), rule('ALLOW', claim('role', ['admin', 'true', '1'])))
    expect(await wrong([{ role: 'admin' }, { role: ['user', 'admin'] }, { role: 'user admin' }], 200)).to.deep.equal([])
    expect(await wrong([{ role: true }, { role: 1 }, { role: [['admin']] }, { role: { admin: true } }, { role: [true] }, {}], 403)).to.deep.equal([])
  })

  it('DENY rules match claims and principals of more than a hundred characters', async () => {
    const long = 'a-long-value-'.repeat(12)
    await place.enforce(tokens(), rule('DENY', claim('role', [long, `*${long}x`, `${long}y*`])))
    expect(
      await wrong([{ role: long }, { role: `user ${long}` }, { role: [long] }, { role: `z${long}x` }, { role: `${long}yz` }], 403),
    ).to.deep.equal([])
    expect(await wrong([{ role: `${long}z` }, { role: `z${long}` }], 200)).to.deep.equal([])
    await place.enforce(tokens(), rule('DENY', [{ key: 'request.auth.principal', values: [`${issuer.name}/${long}`] }]))
    expect(await withClaims({ sub: long })).to.equal(403)
    expect(await withClaims({ sub: `${long}x` })).to.equal(200)
  })

  it('a denied header value is denied within lists, with any spaces, on any line, and beside non-UTF-8 bytes', async () => {
    const headers = async (...values: string[]) => {
      const lines = values.map((value) => `x-role: ${value}\r\n`).join('')
      return (await place.raw(Buffer.from(`GET / HTTP/1.1\r\nHost: app\r\n${lines}Connection: close\r\n\r\n`, 'latin1'))).status
    }
    const denied = [
      ['admin'],
      ['user,admin'],
      ['user, admin'],
      ['user,  admin'],
      ['user,\tadmin'],
      ['user ,admin ,x'],
      ['user\t,\tadmin\t,x'],
      ['user', 'admin'],
      ['admin', 'user'],
      ['\xff,admin'],
      ['\xff', 'admin'],
    ]
    for (const long of [false, true]) {
      const value = long ? 'admin'.repeat(30) : 'admin'
      const lines = denied.map((each) => each.map((line) => line.replaceAll('admin', value)))
      await place.enforce(rule('DENY', [{ key: 'request.headers[X-Role]', values: [value] }]))
      for (const each of lines) expect(await headers(...each), JSON.stringify(each)).to.be.oneOf([400, 403])
      for (const each of [['user'], [`${value}s`], [`not${value}`], [`user, ${value}s`], []])
        expect(await headers(...each), JSON.stringify(each)).to.equal(200)
      await place.enforce(rule('ALLOW', [{ key: 'request.headers[x-role]', notValues: [value] }]))
      for (const each of lines) expect(await headers(...each), JSON.stringify(each)).to.be.oneOf([400, 403])
      expect(await headers('user')).to.equal(200)
    }
  })

  it('/debug/authz with a header of thousands of commas does not delay policies', async () => {
    await place.enforce(rule('DENY', [{ key: 'request.headers[x-role]', values: ['admin', 'root*', '*-lead'] }]))
    const asked = new OwnTime()
    const { status } = await place.service.debug<{ status: number }>(`authz?proxyID=${place.id}.shop&header=x-role:${',a'.repeat(3000)}`)
    expect(status).to.equal(200)
    await place.enforce()
    expect(asked.ms(), 'milliseconds of own time until policies are in force').to.be.below(8000)
  })

  it('a forged X-Forwarded-For satisfies no ALLOW rule, and an address in it is denied at a sidecar', async () => {
    const from = async (forwarded: string) => (await place.call('/', { headers: { 'x-forwarded-for': forwarded } })).status
    const range = (action: string, field: string, value: string) =>
      policyDocument('AuthorizationPolicy', 'address', JSON.stringify({ action, rules: [{ from: [{ source: { [field]: [value] } }] }] }))
    await place.enforce(range('ALLOW', 'remoteIpBlocks', '10.0.0.0/8'))
    for (const forwarded of ['10.1.2.3', '::ffff:10.1.2.3', '192.0.2.1, 10.1.2.3']) expect(await from(forwarded), forwarded).to.equal(403)
    await place.enforce(range('ALLOW', 'notRemoteIpBlocks', '127.0.0.0/8'))
    for (const forwarded of ['10.1.2.3', '10.1.2.3, 192.0.2.1']) expect(await from(forwarded), forwarded).to.equal(403)
    await place.enforce(range('DENY', 'notRemoteIpBlocks', '10.0.0.0/8'))
    expect(await from('10.1.2.3')).to.equal(403)
    await place.enforce(range('ALLOW', 'remoteIpBlocks', '127.0.0.1'))
    expect(await from('10.1.2.3')).to.equal(200)
    await place.enforce(range('ALLOW', 'ipBlocks', '::ffff:127.0.0.0/104'))
    expect(await from('10.1.2.3'), 'an IPv4 address in its form in IPv6').to.equal(200)
    if (place.side === 'sidecar') {
      await place.enforce(range('DENY', 'remoteIpBlocks', '10.0.0.0/8'))
      for (const forwarded of ['10.1.2.3', '::ffff:10.1.2.3']) expect(await from(forwarded), forwarded).to.equal(403)
    }
  })
})
