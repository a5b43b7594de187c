/** Tokens of `pilot-discovery token` and their acceptance. */
import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { credentials, Metadata } from '@grpc/grpc-js'
import { expect } from 'chai'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { freePort } from '../../bench/ports.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { Issuer } from '../harness/issuer.ts'
import { runCommand, Service } from '../harness/service.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

describe('pilot-discovery token', () => {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-token-'))
  const state = join(dir, 'state')
  const issue = (...flags: string[]) => runCommand(['token', ...flags], { MESHD_CA_STATE_DIR: state })
  after(() => rmSync(dir, { recursive: true, force: true }))

  it('creates one key for concurrent calls, in files for its user only', async () => {
    const answers = await Promise.all(Array.from({ length: 4 }, () => issue('--namespace', 'shop', '--service-account', 'cart')))
    expect(answers.map(({ code, stderr }) => `${code}${stderr}`)).to.deep.equal(['0', '0', '0', '0'])
    const tokens = answers.map(({ stdout }) => stdout.trim())
    const { keys } = JSON.parse(readFileSync(join(state, 'token-keys.json'), 'utf8')) as { keys: { kid: string; d?: string }[] }
    expect(new Set(tokens.map((token) => decodeProtectedHeader(token).kid))).to.deep.equal(new Set([keys[0]?.kid]))
    expect(keys[0]).not.to.have.property('d')
    expect(decodeJwt(tokens[0] as string)).to.deep.include({ iss: 'mesh-local', aud: 'mesh-ca', sub: 'system:serviceaccount:shop:cart' })
    expect(readdirSync(state).sort()).to.deep.equal(['token-key.pem', 'token-keys.json'])
    expect(['token-key.pem', 'token-keys.json', ''].map((name) => statSync(join(state, name)).mode & 0o777)).to.deep.equal([0o600, 0o600, 0o700])
  })

  it('writes the requested token to a file for its user only', async () => {
    const file = join(dir, 'token')
    const { stdout } = await issue('-n', 'bank', '--audience', 'x', '--ttl', '90s', '-o', file)
    expect(stdout).to.equal('')
    expect(statSync(file).mode & 0o777).to.equal(0o600)
    const { aud, sub, iat = 0, exp = 0 } = decodeJwt(readFileSync(file, 'utf8').trim())
    expect({ aud, sub, life: exp - iat }).to.deep.equal({ aud: 'x', sub: 'system:serviceaccount:bank:default', life: 90 })
  })

  it('rejects invalid names, and a key that other users can access', async () => {
    for (const [flags, reason] of [
      [[], '--namespace: "" is not the name of a namespace'],
      [['-n', 'shop/sa/x'], '--namespace: "shop/sa/x" is not the name of a namespace'],
      [['-n', 'shop', '--service-account', 'a:b'], '--service-account: "a:b" is not the name of a service account'],
      [['-n', 'shop', '--ttl', '100000h'], 'invalid argument "100000h" for "--ttl"'],
      [['-n', 'shop', '-o', join(dir, 'not/there')], 'ENOENT'],
    ] as const) {
      const { code, stderr } = await issue(...flags)
      expect(code).to.equal(255)
      expect(stderr).to.contain(reason)
    }
    chmodSync(join(state, 'token-key.pem'), 0o644)
    expect((await issue('-n', 'shop')).stderr).to.contain('token-key.pem: others can use it (mode 0644)')
    chmodSync(join(state, 'token-key.pem'), 0o600)
    chmodSync(state, 0o755)
    expect((await issue('-n', 'shop')).stderr).to.contain(`${state}: others can use it (mode 0755)`)
    chmodSync(state, 0o700)
  })
})

describe('workload tokens on the secured port', () => {
  const issuer = new Issuer('https://issuer.example')
  let service: Service
  let made: ServingCertificates
  const clients: XdsClient[] = []
  let port = 0

  before(async () => {
    await issuer.start()
    service = new Service({
      env: {
        JWT_RULE: JSON.stringify({ issuer: issuer.name, jwks_uri: issuer.jwksUri }),
        PILOT_JWKS_ALLOWED_ADDRESSES: '127.0.0.1',
        ENABLE_DEBUG_ON_LOOPBACK: 'false',
      },
    })
    made = new ServingCertificates(service.dir)
    made.authority('ca')
    made.issue('server', 'ca')
    port = await freePort()
    service.flags.push('--secureGRPCAddr', `127.0.0.1:${port}`, '--tlsCertFile', made.file('server.pem'), '--tlsKeyFile', made.file('server-key.pem'))
    await service.start()
  })
  after(async () => {
    for (const client of clients) client.close()
    await service.dispose()
    await issuer.stop()
  })

  const issue = async (...flags: string[]) => (await runCommand(['token', ...flags], { MESHD_CA_STATE_DIR: service.authorityDir })).stdout.trim()
  /** Returns the status with which a stream is refused. Undefined if it is served. */
  const outcome = async (namespace: string, token: string) => {
    const tls = credentials.createSsl(Buffer.from(made.text('ca.pem')), null, null, { checkServerIdentity: () => undefined })
    const withToken = credentials.createFromMetadataGenerator((_, give) => {
      const metadata = new Metadata()
      metadata.set('authorization', `Bearer ${token}`)
      give(null, metadata)
    })
    const node = sidecarNode('10.7.0.9', 'pod', namespace)
    const client = new XdsClient(port, node, true, credentials.combineChannelCredentials(tls, withToken)).connect()
    clients.push(client)
    await until('the client to be served or refused', () => client.closed !== undefined || client.responses.has(clusterType))
    return client.closed
  }
  const page = async (path: string, token: string) =>
    (await fetch(`http://127.0.0.1:${service.httpPort}/debug/${path}`, { headers: { authorization: `Bearer ${token}` } })).status

  it('of the command are accepted for their namespace without further configuration', async () => {
    const token = await issue('-n', 'shop')
    expect(await outcome('shop', token)).to.equal(undefined)
    expect((await outcome('bank', token))?.code).to.equal(7)
    await service.output.says('tokens of "pilot-discovery token" for mesh-ca are accepted')
    expect(existsSync(join(service.authorityDir, 'token-key.pem'))).to.equal(true)
  })

  it('of an issuer in JWT_RULE are accepted, and others are refused', async () => {
    const sub = 'system:serviceaccount:shop:cart'
    expect(await outcome('shop', await issuer.token({ sub, aud: 'mesh-ca' }))).to.equal(undefined)
    for (const token of [
      await issuer.token({ sub, aud: 'other' }),
      await issuer.token({ sub, aud: 'mesh-ca', exp: 1 }),
      await issuer.token({ sub, aud: 'mesh-ca', iss: 'mesh-local' }),
      `${(await issuer.token({ sub, aud: 'mesh-ca' })).slice(0, -8)}AAAAAAAA`,
      'garbage',
    ])
      expect(await outcome('shop', token)).to.deep.equal({ code: 16, details: 'authentication failure' })
    const metrics = await service.metrics()
    expect(metrics).to.match(/^pilot_token_authentications_total{authenticator="jwt-rule",outcome="accepted"} [1-9]/m)
    expect(metrics).to.match(/^pilot_token_authentications_total{authenticator="jwt-rule",outcome="refused"} [1-9]/m)
    expect(metrics).to.match(/^pilot_token_authentications_total{authenticator="none",outcome="refused"} [1-9]/m)
  })

  it('open debug pages of their namespace, and all pages for the root namespace', async () => {
    const [shop, root] = [await issue('-n', 'shop'), await issue('-n', 'mesh-system')]
    expect(await page('mesh', shop)).to.equal(403)
    expect(await page('mesh', root)).to.equal(200)
    expect(await page('mesh', `${root}x`)).to.equal(401)
  })

  it('appear neither in the log nor in metrics', async () => {
    const token = await issue('-n', 'shop')
    await outcome('shop', token)
    await outcome('shop', `${token}x`)
    const key = readFileSync(join(service.authorityDir, 'token-key.pem'), 'utf8').split('\n')[1] as string
    for (const text of [service.output.soFar(), await service.metrics()])
      for (const secret of [...token.split('.'), key]) expect(text.includes(secret)).to.equal(false)
  })
})

describe('invalid identity settings', () => {
  for (const [environment, reason] of [
    [
      { JWT_RULE: '{"issuer": "https://i", "jwks_uri": "http://i/keys"}' },
      'environment variable JWT_RULE: the rule: field jwks_uri: "http://i/keys" is neither https:',
    ],
    [{ TOKEN_ISSUER: 'nobody' }, 'environment variable TOKEN_ISSUER: "nobody" is not a URL'],
    [{ TOKEN_AUDIENCES: ',' }, 'environment variable TOKEN_AUDIENCES: names no audience'],
    [{ JWT_POLICY: 'any' }, 'environment variable JWT_POLICY: "any" is none of third-party-jwt, first-party-jwt'],
    [{ SPIFFE_BUNDLE_ENDPOINTS: 'a|https://a/||b' }, 'environment variable SPIFFE_BUNDLE_ENDPOINTS: "b": expected <trust domain>|<URL>'],
  ] as [Record<string, string>, string][])
    it(`fail the start: ${JSON.stringify(environment)}`, async () => {
      const { code, stderr } = await runCommand(
        ['discovery', '--registries', 'Mock', '--grpcAddr', '127.0.0.1:0', '--httpAddr', '127.0.0.1:0'],
        environment,
      )
      expect(code).to.equal(255)
      expect(stderr).to.contain(`Error: ${reason}`)
    })
})
