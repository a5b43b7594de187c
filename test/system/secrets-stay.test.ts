/** No private key and no token of a run is printed, served or quoted in an error, at the most verbose log level. */
import { generateKeyPairSync } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { create, toBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { debugPages } from '../../actors/discovery/admin/debug-table.ts'
import { askServer } from '../../actors/http/admin-request.ts'
import { freePort } from '../../bench/ports.ts'
import { ClientStatusRequestSchema } from '../../protocols/gen/envoy/service/status/v3/csds_pb.js'
import { adminMethods, adminServiceName } from '../../protocols/messages/admin-call.ts'
import { makeSigningRequest } from '../../src/ca/signing-request.ts'
import { CertificateClient } from '../harness/certificate-client.ts'
import { grpcCall } from '../harness/grpc-call.ts'
import { Issuer } from '../harness/issuer.ts'
import { SecretTraces } from '../harness/secret-traces.ts'
import { runCommand, Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { keys } from '../harness/signing-requests.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const newPair = (namedCurve: string) => generateKeyPairSync('ec', { namedCurve })

describe('traces of secrets', () => {
  it('are found in every form in which a key or token could appear', async () => {
    const issuer = await new Issuer('i').rotateOnly('ES256')
    const token = await issuer.token()
    const traces = new SecretTraces()
    traces.addToken('token', token)
    for (const text of [`Bearer ${token}`, JSON.stringify({ token }), token.split('.')[1] ?? '']) expect(traces.in(text)).to.deep.equal(['token'])
    expect(traces.in(`kid ${issuer.jwks}`)).to.deep.equal([])
    for (const [name, pair] of Object.entries({ P256: newPair('P-256'), RSA: generateKeyPairSync('rsa', { modulusLength: 2048 }) })) {
      const pem = pair.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
      traces.addKey(name, pem)
      const { d = '' } = pair.privateKey.export({ format: 'jwk' })
      const bytes = Buffer.from(d, 'base64url')
      for (const text of [
        pem,
        JSON.stringify(pem),
        Buffer.from(pem).toString('base64'),
        bytes.toString('hex'),
        JSON.stringify({ d }),
        JSON.stringify(bytes),
      ])
        expect(traces.in(`before ${text} after`)).to.deep.equal([name])
      for (const text of [pair.publicKey.export({ type: 'spki', format: 'pem' }), JSON.stringify(pair.publicKey.export({ format: 'jwk' }))])
        expect(traces.in(String(text))).to.deep.equal([])
    }
  })
})

describe('private keys and tokens', () => {
  const issuer = new Issuer('test-issuer')
  const traces = new SecretTraces()
  /** Everything that was printed and served, by source. */
  const seen = new Map<string, string>()
  let service: Service
  let made: ServingCertificates
  let port = 0

  /** Returns the files with private keys in the state directory of the certificate authority. */
  function keyFiles(): string[] {
    return readdirSync(service.authorityDir, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((path) => readFileSync(path, 'utf8').includes('PRIVATE KEY'))
  }

  before(async () => {
    await issuer.rotate('ES256')
    port = await freePort()
    service = new Service({
      env: {
        ENABLE_DEBUG_ON_LOOPBACK: 'false',
        ENABLE_ADMIN_ENDPOINTS: 'true',
        JWT_RULE: JSON.stringify({ issuer: issuer.name, audiences: ['mesh-ca'], jwks: JSON.parse(issuer.jwks) }),
      },
    })
    made = new ServingCertificates(service.dir)
    made.authority('ca')
    for (const name of ['server', 'gateway', 'broken']) made.issue(name, 'ca')
    made.workload('shop', 'ca', ['spiffe://cluster.local/ns/shop/sa/cart'])
    for (const name of ['ca', 'server', 'gateway', 'broken', 'shop']) traces.addKey(`key of ${name}`, made.text(`${name}-key.pem`))
    service.write('a.yaml', serviceEntry('a', '10.0.0.1'))
    service.write('gateway.yaml', secret('good', made.text('gateway.pem'), made.text('gateway-key.pem')))
    // A pair that does not match, and one that is truncated: faults must not quote them.
    service.write('misfit.yaml', secret('misfit', made.text('gateway.pem'), made.text('broken-key.pem')))
    service.write('cut.yaml', secret('cut', made.text('broken.pem'), made.text('broken-key.pem').slice(0, 150)))
    service.write('wrong.yaml', `${secret('wrong', 'x', made.text('broken-key.pem'))}\n  oops: ${JSON.stringify(made.text('broken-key.pem'))}\n`)
    // Documents with an error in the line of the key.
    const key = Buffer.from(made.text('broken-key.pem')).toString('base64')
    for (const [index, wrong] of [
      `${key} : ${key}: [`,
      `[${key}]`,
      `"${key}`,
      `&${key} *${key}`,
      `{${key}: ${key}}`,
      `${key}\n tls.key: ${key}`,
    ].entries())
      service.write(`torn-${index}.yaml`, `${secret('torn', 'x', 'y').split('data:')[0]}data:\n  tls.key: ${wrong}\n`)
    service.flags.push(
      '--writers',
      '2',
      '--secureGRPCAddr',
      `127.0.0.1:${port}`,
      '--log_output_level',
      'all:debug',
      '--log_stacktrace_level',
      'all:debug',
      ...made.servingFlags(),
    )
    await service.start()
    const ordered = await runCommand(['token', '--namespace', 'mesh-system', '--output', join(service.dir, 'token')], service.env)
    expect(ordered).to.deep.include({ code: 0, stdout: '', stderr: '' })
    expect(keyFiles().length, 'keys of the authority and of tokens').to.be.greaterThan(1)
    for (const file of keyFiles()) traces.addKey(file, readFileSync(file, 'utf8'))
  })
  after(() => service.dispose())

  /** Returns a TLS Secret as users write it. */
  const secret = (name: string, cert: string, key: string) => {
    const base64 = (text: string) => Buffer.from(text).toString('base64')
    return `apiVersion: v1\nkind: Secret\nmetadata: {name: ${name}, namespace: edge}\ntype: kubernetes.io/tls\ndata: {tls.crt: ${base64(cert)}, tls.key: ${base64(key)}}\n`
  }

  const token = async (what: string, claims: object) => {
    const made = await issuer.token({ aud: 'mesh-ca', ...claims })
    traces.addToken(`token ${what}`, made)
    return made
  }

  it('do not appear in answers to callers, whether served or refused', async () => {
    const tokens = {
      good: await token('that is good', { sub: 'system:serviceaccount:mesh-system:operator' }),
      stale: await token('that has expired', { sub: 'system:serviceaccount:mesh-system:operator', exp: 1 }),
      stray: await token('of another audience', { sub: 'system:serviceaccount:shop:cart', aud: 'another' }),
      odd: await token('of an odd subject', { sub: { toString: 'x' } as never }),
    }
    const status = '/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus'
    for (const [name, bearer] of Object.entries(tokens)) {
      for (const [form, authorization] of [`Bearer ${bearer}`, bearer, `Basic ${bearer}`, `Bearer ${bearer} ${bearer}`].entries()) {
        for (const page of ['configz', 'mesh', 'nowhere']) {
          const answer = await fetch(`http://127.0.0.1:${service.httpPort}/debug/${page}`, { headers: { authorization } })
          seen.set(`${page} with a token that is ${name}, form ${form}`, await answer.text())
        }
        const request = toBinary(ClientStatusRequestSchema, create(ClientStatusRequestSchema, {}))
        const url = `https://127.0.0.1:${port}`
        const called = await grpcCall(url, status, request, { tls: { rejectUnauthorized: false }, headers: { authorization } })
        seen.set(`client status with a token that is ${name}, form ${form}`, `${called.status} ${Buffer.concat(called.messages)}`)
      }
    }
    expect(seen.get('mesh with a token that is good, form 0')).to.contain('rootNamespace')
    // A token in the place of another parameter.
    seen.set('a token as a parameter', await (await fetch(`http://127.0.0.1:${service.httpPort}/debug/authz?proxyID=${tokens.stale}`)).text())
    seen.set('the command', JSON.stringify(await runCommand(['request', 'GET', '/debug/nowhere'], service.env)))
  })

  it('do not appear in answers of the certificate authority, whatever the request', async () => {
    const local = readFileSync(join(service.dir, 'token'), 'utf8').trim()
    traces.addToken('token of the command', local)
    const own = makeSigningRequest(keys.p256, [])
    const key = keys.p256.export({ type: 'pkcs8', format: 'pem' }) as string
    traces.addKey('key of a client', key)
    const callers = {
      good: { token: local },
      bad: { token: `${local}x` },
      nobody: {},
      certified: { key: made.text('shop-key.pem'), cert: made.text('shop.pem') },
    }
    let issued = 0
    for (const [name, caller] of Object.entries(callers)) {
      const client = new CertificateClient(port, { roots: made.text('ca.pem'), ...caller })
      // Users may send the key instead of the request by mistake.
      for (const [index, csr] of [own, key, `${own}${key}`, key.slice(0, 80), Buffer.from(key).toString('base64'), local].entries()) {
        const outcome = await client.ask(csr)
        if ('chain' in outcome) issued++
        seen.set(`request ${index} of ${name}`, JSON.stringify(outcome))
      }
      client.close()
    }
    expect(issued).to.be.greaterThan(1)
    const answer = await fetch(`http://127.0.0.1:${service.httpPort}/debug/mesh`, { headers: { authorization: `Bearer ${local}` } })
    expect(answer.status).to.equal(200)
    await service.output.says(/\tserverca\t/)
  })

  it('do not appear on any page with proxies connected, nor in metrics', async () => {
    const router = sidecarNode('10.0.0.9', 'gw', 'edge')
    const node = { ...router, id: router.id.replace(/^sidecar/, 'router') }
    const clients = await Promise.all([
      new XdsClient(service.grpcPort, sidecarNode('10.0.0.1', 'pod', 'shop'), true).connect().ready(),
      new XdsClient(service.grpcPort, node, true).connect().ready(),
    ])
    try {
      for (const page of Object.keys(debugPages))
        for (const query of ['', '?proxyID=pod.shop', '?proxyID=gw.edge', '?resource=Secret/edge/good'])
          seen.set(`/debug/${page}${query}`, (await askServer({ method: 'GET', path: `/debug/${page}${query}` }, service.env)).body)
      for (const method of adminMethods.filter((name) => /^(List|Get|Explain)/.test(name)))
        for (const proxy of ['', 'pod.shop', 'gw.edge']) seen.set(`${method} ${proxy}`, await askAdmin(method, proxy))
      for (const path of ['/metrics', '/version', '/ready', '/debug']) seen.set(path, (await askServer({ method: 'GET', path }, service.env)).body)
    } finally {
      for (const client of clients) client.close()
    }
    expect(seen.get('/debug/adsz')).to.contain('pod.shop')
    expect(seen.get('GetProxyConfig pod.shop')).to.contain('envoy.config.listener.v3.Listener')
  })
  /** Asks the admin service by a token of the root namespace. */
  const askAdmin = async (method: string, proxy: string) => {
    const answer = await fetch(`http://127.0.0.1:${service.httpPort}/${adminServiceName}/${method}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${readFileSync(join(service.dir, 'token'), 'utf8').trim()}` },
      body: JSON.stringify(['ListProxies', 'GetProxyConfig', 'ExplainRequest', 'RouteRequest'].includes(method) ? { proxy } : {}),
    })
    return await answer.text()
  }

  it('do not appear in messages about unusable certificate files', async () => {
    const afterMisfit = service.output.fromNow()
    service.write('server-key.pem', made.text('broken-key.pem'))
    await afterMisfit.says('server-key.pem')
    const afterCut = service.output.fromNow()
    service.write('server-key.pem', made.text('broken-key.pem').slice(0, 120))
    await afterCut.says('server-key.pem')
    for (const flag of ['--tlsKeyFile', '--tlsCertFile', '--caCertFile']) {
      const named = {
        '--tlsKeyFile': made.file('server.pem'),
        '--tlsCertFile': made.file('broken-key.pem'),
        '--caCertFile': made.file('broken-key.pem'),
      }
      const flags = {
        '--tlsCertFile': made.file('server.pem'),
        '--tlsKeyFile': made.file('gateway-key.pem'),
        [flag]: named[flag as keyof typeof named],
      }
      const args = Object.entries(flags).flat()
      seen.set(`refused ${flag}`, JSON.stringify(await runCommand(['discovery', '--registries', 'Mock', ...args])))
    }
  })

  it('do not appear in any of these outputs, nor in the log', async () => {
    await service.stop()
    seen.set('the log', await service.output.whole())
    expect(seen.get('the log'), 'the log is talkative').to.contain('\tdebug\t')
    const traced = [...seen].flatMap(([where, text]) => traces.in(text).map((name) => `${name} in ${where}`))
    expect(traced).to.deep.equal([])
  })

  it('are stored in files for the owner only', () => {
    for (const file of keyFiles()) expect([file, statSync(file).mode & 0o777]).to.deep.equal([file, 0o600])
    expect(statSync(service.authorityDir).mode & 0o077).to.equal(0)
  })
})
