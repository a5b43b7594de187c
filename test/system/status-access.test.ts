/** Access to client status and reflection, and to which proxies. */
import { connect } from 'node:http2'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { ClientStatusRequestSchema, ClientStatusResponseSchema } from '../../protocols/gen/envoy/service/status/v3/csds_pb.js'
import { ServerReflectionRequestSchema } from '../../protocols/gen/grpc/reflection/v1/reflection_pb.js'
import { grpcCall } from '../harness/grpc-call.ts'
import { Service } from '../harness/service.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const statusMethods = ['FetchClientStatus', 'StreamClientStatus'].map((name) => `/envoy.service.status.v3.ClientStatusDiscoveryService/${name}`)
const statusRequest = toBinary(ClientStatusRequestSchema, create(ClientStatusRequestSchema, {}))
const reflectionMethods = ['v1', 'v1alpha'].map((version) => `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`)
const reflectionRequest = toBinary(
  ServerReflectionRequestSchema,
  create(ServerReflectionRequestSchema, { messageRequest: { case: 'listServices', value: '' } }),
)

describe('services beside ADS with access control', () => {
  const service = new Service()
  const made = new ServingCertificates(service.dir)
  const clients: XdsClient[] = []
  let port = 0

  before(async () => {
    made.authority('ca')
    made.issue('server', 'ca')
    made.workload('shop', 'ca', ['spiffe://cluster.local/ns/shop/sa/cart'])
    made.workload('root', 'ca', ['spiffe://cluster.local/ns/mesh-system/sa/operator'])
    port = await freePort()
    service.flags.push('--writers', '2', '--secureGRPCAddr', `127.0.0.1:${port}`)
    service.flags.push(...made.servingFlags())
    await service.start()
    for (const [namespace, address] of [
      ['shop', '10.0.0.1'],
      ['bank', '10.0.0.2'],
    ] as const)
      clients.push(await new XdsClient(service.grpcPort, sidecarNode(address, 'pod', namespace), true).connect().ready())
  })
  after(async () => {
    for (const client of clients) client.close()
    await service.dispose()
  })

  const tls = (identity?: string) => ({
    ca: made.text('ca.pem'),
    checkServerIdentity: () => undefined,
    ...(identity === undefined ? {} : { cert: made.text(`${identity}.pem`), key: made.text(`${identity}-key.pem`) }),
  })
  /** Returns the proxies that a caller is shown, or the gRPC status. */
  const shown = async (path: string, identity?: string, headers: Record<string, string> = {}) => {
    const { messages, status } = await grpcCall(`https://127.0.0.1:${port}`, path, statusRequest, { tls: tls(identity), headers })
    if (status !== '0') return `status ${status}`
    return fromBinary(ClientStatusResponseSchema, messages[0] as Buffer)
      .config.map(({ node }) => node?.id.split('~')[2])
      .sort()
  }

  for (const path of statusMethods) {
    it(`${path} shows a caller the proxies of its namespace, and the root namespace all`, async () => {
      expect(await shown(path, 'shop')).to.deep.equal(['pod.shop'])
      expect(await shown(path, 'root')).to.deep.equal(['pod.bank', 'pod.shop'])
      expect(await shown(path)).to.equal('status 16')
    })
  }

  it('reflection requires a caller identity', async () => {
    for (const path of reflectionMethods) {
      expect((await grpcCall(`https://127.0.0.1:${port}`, path, reflectionRequest, { tls: tls('shop') })).status).to.equal('0')
      expect((await grpcCall(`https://127.0.0.1:${port}`, path, reflectionRequest, { tls: tls() })).status).to.equal('16')
    }
  })

  it('CSDS and reflection are refused in plaintext if TLS material is configured', async () => {
    for (const path of [...statusMethods, ...reflectionMethods]) {
      const { status, messages } = await grpcCall(`http://127.0.0.1:${service.grpcPort}`, path, statusRequest)
      expect([status, messages.length]).to.deep.equal(['16', 0])
    }
    await service.output.says(/\tstatus\tclient status, reflection or a page refused to 127\.0\.0\.1: plain-text connection/)
  })

  it('debug pages on the secured port show a caller its namespace, and execute actions for the root namespace', async () => {
    const ask = (path: string, identity?: string, method = 'GET', body = '', headers: Record<string, string> = {}) =>
      new Promise<{ status: number; headers: Record<string, unknown>; text: string }>((resolve, reject) => {
        const session = connect(`https://127.0.0.1:${port}`, tls(identity))
        session.on('error', reject)
        const stream = session.request({ ':method': method, ':path': path, ...headers })
        let answered: Record<string, unknown> = {}
        let text = ''
        stream.on('response', (headers) => (answered = headers))
        stream.on('data', (bytes) => (text += bytes))
        stream.on('error', reject)
        stream.on('close', () => {
          session.close()
          resolve({ status: Number(answered[':status']), headers: answered, text })
        })
        if (method === 'POST') stream.end(body)
      })
    const proxies = async (identity: string) =>
      (JSON.parse((await ask('/debug/syncz', identity)).text) as { proxy: string }[]).map(({ proxy }) => proxy)
    expect(await proxies('shop')).to.deep.equal(['pod.shop'])
    expect((await proxies('root')).sort()).to.deep.equal(['pod.bank', 'pod.shop'])
    expect((await ask('/debug/mesh', 'shop')).status).to.equal(403)
    expect((await ask('/debug/mesh', 'root')).headers).to.include({
      ':status': 200,
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-store',
    })
    expect((await ask('/debug/mesh')).headers).to.include({ ':status': 401, 'www-authenticate': 'Bearer' })
    for (const path of ['/debug', '/debug/']) expect((await ask(path, 'shop')).text).to.contain('Debug pages')
    for (const path of ['/debug/nowhere', '/metrics', '/debug/force_disconnect', '/debug/__proto__'])
      expect((await ask(path, 'root')).status).to.equal(404)
    const push = await ask('/debug/adsz?push=true', 'root')
    expect([push.status, push.headers.allow]).to.deep.equal([405, 'POST'])
    // A browser sends its user's certificate with requests of any site.
    expect((await ask('/debug/adsz?push=true', 'root', 'POST')).status).to.equal(403)
    const marked = { 'x-mesh-introspection': '1' }
    expect((await ask('/debug/adsz?push=true', 'root', 'POST', 'x'.repeat(100_000), marked)).text).to.equal('Pushed to 2 servers')
    expect((await ask('/debug/mesh', 'root', 'HEAD')).text).to.equal('')
    expect((await ask('/debug/mesh', 'root', 'DELETE')).status).to.equal(405)
  })

  it('a refused request holds no resources although its client reads nothing', async () => {
    const session = connect(`https://127.0.0.1:${port}`, { ...tls(), settings: { initialWindowSize: 0 } })
    let [refused, early, closed] = [0, 0, 0]
    for (let index = 0; index < 500; index++) {
      // Every other request is never ended by the client.
      const stream = session.request({ ':method': index % 2 ? 'POST' : 'GET', ':path': '/debug/configz' }, { endStream: index % 2 === 0 })
      stream.on('response', (headers) => (refused += Number(headers[':status'] === 401)))
      // Streams above the limit of a connection without a credential, opened before the client knew it.
      stream.on('error', ({ message }) => (early += Number(message.includes('REFUSED_STREAM'))))
      stream.on('close', () => closed++)
      stream.resume()
    }
    await until('all to be refused and over', () => refused + early === 500 && closed === 500)
    expect(early).to.be.lessThan(refused)
    session.close()
  })

  it('debug pages on loopback are closed if TLS material is configured, and the admin socket is open', async () => {
    const answer = await fetch(`http://127.0.0.1:${service.httpPort}/debug/configz`)
    expect([answer.status, answer.headers.get('www-authenticate')]).to.deep.equal([401, 'Bearer'])
    for (const [at, path] of [
      [service.httpPort, 'ready'],
      [service.monitoringPort, 'metrics'],
      [service.monitoringPort, 'version'],
    ] as const)
      expect((await fetch(`http://127.0.0.1:${at}/${path}`)).status).to.equal(200)
    expect((await service.debug<unknown[]>('syncz')).length).to.equal(2)
  })
})
