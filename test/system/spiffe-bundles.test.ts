/** Client certificates of other trust domains, verified with the roots that their bundle endpoints publish. */
import { X509Certificate } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer, type Server } from 'node:https'
import { credentials } from '@grpc/grpc-js'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { CertificateClient } from '../harness/certificate-client.ts'
import { Service } from '../harness/service.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

describe('SPIFFE bundle endpoints', () => {
  const service = new Service()
  const made = new ServingCertificates(service.dir)
  const clients: XdsClient[] = []
  let endpoint: Server
  let fetches = 0
  let port = 0
  /** The response of the endpoint of foreign.example. */
  let answer: (request: IncomingMessage, response: ServerResponse) => void

  const bundle = (sequence: number, ...roots: string[]) =>
    JSON.stringify({
      spiffe_sequence: sequence,
      spiffe_refresh_hint: 1,
      keys: [
        ...roots.map((name) => ({ kty: 'EC', use: 'x509-svid', x5c: [new X509Certificate(made.text(`${name}.pem`)).raw.toString('base64')] })),
        { kty: 'EC', use: 'jwt-svid', kid: 'x' },
      ],
    })
  const serve = (content: string) => {
    answer = (_, response) => response.end(content)
  }
  const log = (pattern: RegExp) => service.output.says(pattern)

  before(async () => {
    for (const name of ['ca', 'foreign', 'later', 'web']) made.authority(name)
    made.issue('server', 'ca')
    made.issue('endpoint', 'web', 1, 'subjectAltName=DNS:localhost\n')
    made.workload('guest', 'foreign', ['spiffe://foreign.example/ns/shop/sa/cart'])
    made.workload('newer', 'later', ['spiffe://foreign.example/ns/shop/sa/cart'])
    made.workload('forged', 'foreign', ['spiffe://cluster.local/ns/shop/sa/cart'])
    made.workload('own', 'ca', ['spiffe://cluster.local/ns/shop/sa/cart'])
    made.workload('claims', 'ca', ['spiffe://foreign.example/ns/shop/sa/cart'])
    const endpointPort = await freePort()
    endpoint = createServer({ cert: made.text('endpoint.pem'), key: made.text('endpoint-key.pem') }, (request, response) => {
      if (request.url !== '/broken') {
        fetches++
        answer(request, response)
      } else response.end('{"keys": []}')
    })
    serve(bundle(1, 'foreign'))
    await new Promise<void>((resolve) => endpoint.listen(endpointPort, '127.0.0.1', resolve))
    port = await freePort()
    service.flags.push('--secureGRPCAddr', `127.0.0.1:${port}`)
    service.flags.push(...made.servingFlags())
    const tuples = [
      `foreign.example|localhost:${endpointPort}/bundle`,
      `broken.example|https://localhost:${endpointPort}/broken`,
      'inside.example|169.254.169.254/x',
    ]
    Object.assign(service.env, {
      SPIFFE_BUNDLE_ENDPOINTS: tuples.join('||'),
      NODE_EXTRA_CA_CERTS: made.file('web.pem'),
      PILOT_JWKS_ALLOWED_ADDRESSES: '127.0.0.1,::1',
    })
    await service.start()
    await log(/spiffe\troots of foreign.example fetched, sequence 1/)
  })
  after(async () => {
    for (const client of clients) client.close()
    endpoint.closeAllConnections()
    endpoint.close()
    await service.dispose()
  })

  /** Whether a client with a certificate is served. */
  async function isServed(identity: string): Promise<boolean> {
    const [key, cert] = [`${identity}-key.pem`, `${identity}.pem`].map((name) => Buffer.from(made.text(name)))
    const tls = credentials.createSsl(Buffer.from(made.text('ca.pem')), key as Buffer, cert as Buffer, { checkServerIdentity: () => undefined })
    const client = new XdsClient(port, sidecarNode('10.7.0.9', identity, 'shop'), false, tls).connect()
    clients.push(client)
    await until('the client to be served or refused', () => client.closed !== undefined || client.responses.has(clusterType))
    return client.closed === undefined
  }

  it('provide roots for their own trust domain, and for no other', async () => {
    await until('the roots to be used', () => isServed('guest'))
    expect(await isServed('own')).to.equal(true)
    expect(await isServed('forged'), 'of the own trust domain, signed by the root of another').to.equal(false)
    expect(await isServed('claims'), 'of another trust domain, signed by the own root').to.equal(false)
    expect(await isServed('newer'), 'signed by an unknown root').to.equal(false)
  })

  it('admit callers to whom the certificate authority issues no certificates', async () => {
    const ask = async (identity: string) => {
      const client = new CertificateClient(port, {
        roots: made.text('ca.pem'),
        key: made.text(`${identity}-key.pem`),
        cert: made.text(`${identity}.pem`),
      })
      try {
        return await client.obtain(made.text('guest.csr'))
      } finally {
        client.close()
      }
    }
    expect(await ask('guest')).to.deep.include({
      code: 3,
      details: 'CSR signing error (the caller is of another trust domain, whose authority is another)',
    })
    expect(await ask('own')).to.have.property('chain')
  })

  it('that fail or are not permitted affect only their own trust domain', async () => {
    await log(/roots of broken.example from .* could not be fetched: it has no key of use x509-svid; its client certificates are refused/)
    await log(/roots of inside.example from .* could not be fetched: 169.254.169.254 is a linkLocal address/)
    const metrics = await service.metrics()
    expect(metrics).to.match(/^pilot_spiffe_bundle_fetches_total{trust_domain="foreign.example",outcome="fetched"} [1-9]/m)
    expect(metrics).to.match(/^pilot_spiffe_bundle_fetches_total{trust_domain="broken.example",outcome="failed"} [1-9]/m)
    expect(metrics).to.match(/^pilot_spiffe_bundle_fetched_timestamp_seconds{trust_domain="foreign.example"} \d{10}$/m)
    expect(metrics).to.match(/^num_outgoing_requests{request_type="spiffe-bundle"} [1-9]/m)
  })

  it('keep their last good roots while they cannot be used', async () => {
    const answers: (typeof answer)[] = [
      (_, response) => response.end('nonsense'),
      (_, response) => response.end(`{"keys":[${'{},'.repeat(400_000)}{}]}`),
      (_, response) => response.writeHead(302, { location: 'http://localhost/' }).end(),
      (request, response) => response.writeHead(302, { location: `https://user@${request.headers.host}/bundle` }).end(),
      (_, response) => response.end(bundle(2, 'guest')),
      (_, response) => response.end(bundle(2, 'foreign').replace('"spiffe_sequence":2', '"spiffe_sequence":"2"')),
      (_, response) => response.end(bundle(2, 'foreign').replace(/"x5c":\[/, '"x5c":["AAAA",')),
      (_, response) => response.socket?.destroy(),
      (_, response) => response.writeHead(503).end(),
    ]
    for (const each of answers) {
      const before = fetches
      answer = each
      await until('two fetches', () => fetches >= before + 2)
      expect(await isServed('guest')).to.equal(true)
    }
    await service.output.says(/roots of foreign.example from \S+ could not be fetched: not JSON; its last roots stay/)
  })

  it('may redirect temporarily', async () => {
    const later = service.output.fromNow()
    let redirected = 0
    answer = (request, response) => {
      if (request.url === '/elsewhere') return void response.end(bundle(2, 'foreign'))
      redirected++
      response.writeHead(307, { location: '/elsewhere' }).end()
    }
    await until('the bundle to be asked for where it was', () => redirected > 1)
    later.lacks('roots of foreign.example from')
    expect(await isServed('guest')).to.equal(true)
  })

  it('replace roots when a newer bundle is published, and ignore an older one', async () => {
    serve(bundle(5, 'later'))
    await until('the new root', () => isServed('newer'))
    expect(await isServed('guest')).to.equal(false)
    serve(bundle(4, 'foreign'))
    await log(/roots of foreign.example: sequence 4 is older than 5, which stays/)
    expect(await isServed('guest')).to.equal(false)
    expect(await isServed('newer')).to.equal(true)
    serve(bundle(6, 'foreign', 'later'))
    await until('both roots', async () => (await isServed('guest')) && isServed('newer'))
  })
})
