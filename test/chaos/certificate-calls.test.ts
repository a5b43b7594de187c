/** Certificate requests from unauthenticated callers: each is rejected with a status code, and leaves no memory behind. */
import { type ClientHttp2Session, connect as http2Connect } from 'node:http2'
import { expect } from 'chai'
import fc from 'fast-check'
import { freePort } from '../../bench/ports.ts'
import { processUsage } from '../../bench/server.ts'
import { textField } from '../../src/xds/slab/wire.ts'
import { messageFrame } from '../../src/xds/stream/frames.ts'
import { CertificateClient } from '../harness/certificate-client.ts'
import { seed, volume } from '../harness/seed.ts'
import { Service } from '../harness/service.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { requestPem } from '../harness/signing-requests.ts'

/** FUZZ_TIMES=25 results in 100,000. */
const calls = 4000 * Math.max(1, volume)
/** The number of concurrent calls, and of calls on one connection. */
const [together, perConnection] = [40, 900]
const paths = ['/mesh.v1.auth.MeshCertificateService/CreateCertificate', '/istio.v1.auth.IstioCertificateService/CreateCertificate']

describe('certificate requests without a credential', function () {
  this.timeout(600_000)
  const service = new Service()
  const made = new ServingCertificates(service.dir)
  let port = 0

  before(async () => {
    made.authority('ca')
    made.issue('server', 'ca')
    made.workload('cart', 'ca', ['spiffe://cluster.local/ns/shop/sa/cart'])
    port = await freePort()
    service.flags.push('--writers', '2', '--secureGRPCAddr', `127.0.0.1:${port}`, '--log_output_level', 'all:warn')
    service.flags.push(...made.servingFlags())
    await service.start()
  })
  after(() => service.dispose())

  const connected = (): Promise<ClientHttp2Session> =>
    new Promise((resolve, reject) => {
      const session = http2Connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false })
      // The settings say how many streams a client without a credential may have; others of them are refused.
      session.once('remoteSettings', () => resolve(session))
      session.once('error', reject)
    })
  const call = (session: ClientHttp2Session, path: string, authorization: string | undefined, body: Buffer): Promise<string> =>
    new Promise((resolve) => {
      const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' }
      const stream = session.request(authorization === undefined ? headers : { ...headers, authorization })
      let status = 'none'
      const note = (sent: Record<string, unknown>) => {
        if (sent['grpc-status'] !== undefined) status = String(sent['grpc-status'])
      }
      stream.on('response', note)
      stream.on('trailers', note)
      stream.on('error', (error) => (status = error.message))
      stream.on('close', () => resolve(status))
      stream.resume()
      stream.end(body)
    })

  const header = fc.oneof(
    fc.constant(undefined),
    fc.constantFrom('', 'Bearer', 'Bearer ', 'Basic YTpi', 'Bearer a.b.c', `Bearer ${'x'.repeat(8000)}`, 'bearer null'),
    fc.stringMatching(/^[A-Za-z0-9._-]{1,300}$/).map((token) => `Bearer ${token}`),
    fc.tuple(fc.constantFrom('none', 'HS256', 'ES256', 'RS256'), fc.stringMatching(/^[A-Za-z0-9_-]{0,100}$/)).map(([alg, rest]) => {
      const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
      return `Bearer ${part({ alg, kid: rest })}.${part({ iss: 'https://issuer.example', sub: 'system:serviceaccount:shop:cart', aud: 'mesh-ca', exp: 9e9 })}.${rest}`
    }),
  )
  const body = fc.oneof(
    fc.constant(messageFrame(textField(1, requestPem()))),
    fc.uint8Array({ maxLength: 400 }).map((bytes) => messageFrame(bytes)),
    fc.string({ unit: 'binary', maxLength: 400 }).map((text) => messageFrame(textField(1, text))),
  )

  it('are refused with UNAUTHENTICATED or UNAVAILABLE, counted, and logged and kept in memory within limits', async () => {
    const before = processUsage(service.pid).rss
    const samples = fc.sample(fc.record({ path: fc.constantFrom(...paths), header, body }), { seed, numRuns: calls })
    const seen = new Map<string, number>()
    for (let from = 0; from < samples.length; from += perConnection) {
      const session = await connected()
      const mine = samples.slice(from, from + perConnection)
      const next = async (): Promise<void> => {
        for (let one = mine.pop(); one; one = mine.pop()) {
          const status = await call(session, one.path, one.header, one.body)
          seen.set(status, (seen.get(status) ?? 0) + 1)
        }
      }
      await Promise.all(Array.from({ length: together }, next))
      session.destroy()
    }
    // 16 is UNAUTHENTICATED. 14 is UNAVAILABLE: too many tokens of one connection are being verified.
    expect([...seen.keys()].filter((status) => status !== '16' && status !== '14')).to.deep.equal([])
    expect(seen.get('16')).to.be.greaterThan(calls / 3)
    const metrics = await service.metrics()
    expect(Number(/^citadel_server_authentication_failure_count (\d+)$/m.exec(metrics)?.[1])).to.equal(calls)
    expect(metrics).to.contain('citadel_server_success_cert_issuance_count 0')
    expect(metrics).not.to.match(/^actor_restarts\{[^}]*\} [1-9]/m)
    expect(processUsage(service.pid).rss - before).to.be.lessThan(150)
    const { length: logged } = service.output.soFar()
    expect(logged).to.be.lessThan(1_000_000)
  })

  it('do not prevent a caller with a certificate from being served afterwards', async () => {
    const client = new CertificateClient(port, { roots: made.text('ca.pem'), key: made.text('cart-key.pem'), cert: made.text('cart.pem') })
    try {
      expect(await client.obtain(requestPem())).to.have.property('chain')
    } finally {
      client.close()
    }
  })
})
