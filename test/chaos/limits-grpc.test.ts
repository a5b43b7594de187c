/** What one client of the gRPC ports can cost by streams that are refused, and by calls for certificates (docs/limits.md). */
import { randomBytes } from 'node:crypto'
import { type ClientHttp2Session, connect, type OutgoingHttpHeaders } from 'node:http2'
import { type AddressInfo, connect as connectSocket } from 'node:net'
import { connect as connectTls, createServer as createTlsServer } from 'node:tls'
import { expect } from 'chai'
import { costlyChain, costlyShapes } from '../../bench/costly-chain.ts'
import { freePort } from '../../bench/ports.ts'
import { bytesField } from '../../src/xds/slab/struct.ts'
import { textField } from '../../src/xds/slab/wire.ts'
import { nodeMessage } from '../../src/xds/status/status-messages.ts'
import { messageFrame } from '../../src/xds/stream/frames.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { CertificateClient, createCertificate } from '../harness/certificate-client.ts'
import { Issuer } from '../harness/issuer.ts'
import { OwnTime } from '../harness/own-time.ts'
import { CostRecorder } from '../harness/process-cost.ts'
import { Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { requestPem } from '../harness/signing-requests.ts'
import { until } from '../harness/until.ts'
import { adsPath, sidecarNode, XdsClient } from '../harness/xds-client.ts'

/** The address of the greedy client. */
const localAddress = '127.0.0.2'

/** A request of a generator. */
const generatedRequest = (GENERATOR: string, typeUrl: string) =>
  Buffer.concat([
    bytesField(2, nodeMessage({ id: 'sidecar~10.0.0.9~a.ns~ns.svc.cluster.local', metadata: { GENERATOR }, locality: '' })),
    textField(4, typeUrl),
  ])

describe('one client of the gRPC ports', () => {
  const service = new Service({ env: { PILOT_DEBOUNCE_AFTER: '20ms' } })
  const made = new ServingCertificates(service.dir)
  const sessions = new Set<ClientHttp2Session>()
  let issuer: Issuer
  /** The server of `TOKEN_ISSUER`, which presents a chain that is costly to verify. */
  const costly = createTlsServer(costlyChain(costlyShapes.names, Date.now()))
  let costlyName = ''
  let securePort = 0
  let witness: XdsClient
  let changes = 0

  before(async () => {
    issuer = await new Issuer('https://issuer.test').rotateOnly('RS256')
    service.env.JWT_RULE = JSON.stringify({ issuer: issuer.name, jwks: issuer.jwks, audiences: ['mesh-ca'] })
    await new Promise<void>((resolve) => void costly.on('tlsClientError', () => undefined).listen(0, '127.0.0.1', resolve))
    costlyName = `https://127.0.0.1:${(costly.address() as AddressInfo).port}`
    Object.assign(service.env, { TOKEN_ISSUER: costlyName, AUDIENCE: 'mesh-ca', PILOT_JWKS_ALLOWED_ADDRESSES: '127.0.0.1' })
    made.authority('ca')
    made.issue('server', 'ca')
    service.write('a.yaml', serviceEntry('a'))
    securePort = await freePort()
    service.flags.push('--writers', '1', '--secureGRPCAddr', `127.0.0.1:${securePort}`, ...made.servingFlags())
    await service.start()
    witness = new XdsClient(service.grpcPort, sidecarNode('10.7.0.9', 'witness', 'ns'), true).connect()
    await until('the witness to be served', () => witness.responses.has(clusterType))
  })
  afterEach(() => {
    for (const session of sessions) session.destroy()
    sessions.clear()
  })
  after(async () => {
    witness?.close()
    await service.dispose()
    costly.close()
  })

  const connected = (port: number, isSecure: boolean, certificate: object = {}): Promise<ClientHttp2Session> =>
    new Promise((resolve, reject) => {
      const raw = connectSocket({ host: '127.0.0.1', port, localAddress })
      const createConnection = () => (isSecure ? connectTls({ socket: raw, rejectUnauthorized: false, ALPNProtocols: ['h2'], ...certificate }) : raw)
      const session = connect(`http://127.0.0.1:${port}`, { createConnection, maxSessionMemory: 1000 })
      sessions.add(session)
      session.once('connect', () => resolve(session)).once('error', reject)
      session.on('error', () => undefined).on('close', () => sessions.delete(session))
    })
  const ask = (session: ClientHttp2Session, headers: OutgoingHttpHeaders, body?: Buffer) =>
    session
      .request({ ':method': 'POST', 'content-type': 'application/grpc', te: 'trailers', ...headers })
      .on('error', () => undefined)
      .resume()
      .end(body)

  /** The time until the witness has a change, in milliseconds. */
  async function change(): Promise<number> {
    const name = `s${changes++}`
    const watch = new OwnTime()
    service.write('b.yaml', serviceEntry(name, '10.0.0.2'))
    await until('the change', () => [...(witness.resources.get(clusterType)?.keys() ?? [])].some((cluster) => cluster.includes(`|${name}.`)))
    return watch.ms()
  }

  for (const [what, isSecure, path] of [
    ['streams without a credential', true, adsPath],
    ['calls of unknown methods', false, '/no.such.Service/Method'],
  ] as const)
    it(`that opens ${what} all the time loses its connection after 1,000, and others are served`, async () => {
      const port = isSecure ? securePort : service.grpcPort
      const cost = new CostRecorder(service.pid)
      let isOver = false
      let connections = 0
      const flood = async () => {
        while (!isOver) {
          const session = await connected(port, isSecure).catch(() => undefined)
          if (!session) continue
          connections++
          const closed = new Promise((resolve) => session.once('close', resolve))
          for (let index = 0; index < 2000; index++) ask(session, { ':path': path })
          await closed
        }
      }
      const floods = [flood(), flood(), flood()]
      try {
        await until('several connections to be closed', () => connections > 6)
        const times = [await change(), await change(), await change()]
        expect(Math.max(...times), 'the longest time to a change in milliseconds').to.be.below(2000)
        await service.output.says(`connection from ${localAddress} ended: too many of its streams were refused`)
        expect(witness.closed).to.equal(undefined)
        const { mib, descriptors } = cost.stop()
        expect(mib, 'memory in MiB').to.be.below(100)
        expect(descriptors, 'open files').to.be.below(30)
      } finally {
        isOver = true
        for (const session of sessions) session.destroy()
        await Promise.all(floods)
      }
    })

  it('has 8 streams on a connection over TLS until a token of it is accepted, and none more for a forged one', async () => {
    const claims = { sub: 'system:serviceaccount:shop:cart', aud: 'mesh-ca' }
    const token = await issuer.token(claims)
    const session = await connected(securePort, true)
    const streams = () => session.remoteSettings.maxConcurrentStreams
    const answered = (bearer: string) =>
      new Promise((resolve) =>
        ask(session, { ':path': createCertificate, authorization: `Bearer ${bearer}` }, messageFrame(textField(1, requestPem()))).on(
          'close',
          resolve,
        ),
      )
    await until('the settings', () => streams() === 8)
    await answered(`${token.slice(0, -8)}AAAAAAAA`)
    expect(streams()).to.equal(8)
    await answered(token)
    await until('the settings of known clients', () => streams() === 100_000)
    made.workload('pod', 'ca', ['spiffe://cluster.local/ns/shop/sa/cart'])
    const certified = await connected(securePort, true, { cert: made.text('pod.pem'), key: made.text('pod-key.pem') })
    await until('the settings of a client with a certificate', () => certified.remoteSettings.maxConcurrentStreams === 100_000)
  })

  it('that asks for the status of clients all the time does not keep a change from others', async () => {
    const greedy = await Promise.all(Array.from({ length: 4 }, () => connected(service.grpcPort, false)))
    const cost = new CostRecorder(service.pid)
    let ended = 0
    for (const session of greedy)
      for (let index = 0; index < 900; index++)
        ask(session, { ':path': '/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus' }, messageFrame(Buffer.alloc(0))).on(
          'close',
          () => ended++,
        )
    const times = [await change(), await change()]
    await until('all calls to be answered or refused', () => ended === 3600)
    const { mib } = cost.stop()
    expect(Math.max(...times), 'the longest time to a change in milliseconds').to.be.below(2000)
    expect(mib, 'memory in MiB').to.be.below(100)
  })

  for (const [what, path, request] of [
    ['streams the status of clients', '/envoy.service.status.v3.ClientStatusDiscoveryService/StreamClientStatus', Buffer.alloc(0)],
    ['asks for reflection', '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo', textField(7, '*')],
    ['asks for the state of all proxies on discovery streams', adsPath, generatedRequest('event', 'mesh.io/debug/syncz')],
    ['asks for configuration objects, which are not for it', adsPath, generatedRequest('api', 'networking.mesh.io/v1/ServiceEntry')],
  ] as const)
    it(`that ${what} all the time, and reads no answer, does not keep a change from others`, async () => {
      const greedy = await Promise.all(Array.from({ length: 4 }, () => connected(service.grpcPort, false)))
      const cost = new CostRecorder(service.pid)
      const messages = Buffer.concat(Array.from({ length: 100 }, () => messageFrame(request)))
      let answered = 0
      for (const session of greedy)
        for (let index = 0; index < 900; index++) {
          const stream = session.request({ ':method': 'POST', 'content-type': 'application/grpc', te: 'trailers', ':path': path })
          stream.on('error', () => undefined).on('response', () => answered++)
          stream.write(messages)
        }
      const times = [await change(), await change()]
      await until('the streams to be answered', () => answered > 100)
      const { mib } = cost.stop()
      expect(Math.max(...times), 'the longest time to a change in milliseconds').to.be.below(2000)
      expect(mib, 'memory in MiB').to.be.below(100)
    })

  it('that sends tokens of TOKEN_ISSUER, whose keys cost much to fetch, does not keep out another one', async () => {
    let asked = 0
    costly.on('connection', () => asked++)
    const token = await issuer.token({ sub: 'system:serviceaccount:shop:cart', aud: 'mesh-ca' })
    const claims = { iss: costlyName, aud: 'mesh-ca', sub: 'system:serviceaccount:shop:cart' }
    const body = messageFrame(textField(1, requestPem()))
    const good = new CertificateClient(securePort, { roots: made.text('ca.pem'), token })
    try {
      const greedy = await Promise.all(Array.from({ length: 3 }, () => connected(securePort, true)))
      const cost = new CostRecorder(service.pid)
      for (const session of greedy)
        for (let index = 0; index < 100; index++)
          ask(session, { ':path': createCertificate, authorization: `Bearer ${await issuer.token(claims, { kid: `${index}` })}` }, body)
      await until('the keys to be asked for', () => asked > 0)
      let slowest = 0
      for (let times = 0; times < 20; times++) {
        const watch = new OwnTime()
        expect(await good.ask(requestPem())).to.have.property('chain')
        slowest = Math.max(slowest, watch.ms())
      }
      expect(slowest, 'the longest time to a certificate in milliseconds').to.be.below(2000)
      const { mib, descriptors } = cost.stop()
      expect(mib, 'memory in MiB').to.be.below(100)
      expect(descriptors, 'open files').to.be.below(60)
    } finally {
      good.close()
    }
  })

  it('that asks for more certificates than are made at a time does not keep out another one', async () => {
    const token = await issuer.token({ sub: 'system:serviceaccount:shop:cart', aud: 'mesh-ca' })
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const unsigned = `${part({ alg: 'RS256', kid: `${issuer.name}-1` })}.${part({ iss: issuer.name, aud: 'mesh-ca', sub: 'system:serviceaccount:shop:cart', exp: 9e9 })}`
    const body = messageFrame(textField(1, requestPem()))
    const good = new CertificateClient(securePort, { roots: made.text('ca.pem'), token })
    try {
      expect(await good.obtain(requestPem())).to.have.property('chain')
      const greedy = await Promise.all(Array.from({ length: 6 }, () => connected(securePort, true)))
      const cost = new CostRecorder(service.pid)
      for (const session of greedy)
        for (let index = 0; index < 900; index++)
          ask(session, { ':path': createCertificate, authorization: `Bearer ${unsigned}.${randomBytes(256).toString('base64url')}` }, body)
      let slowest = 0
      for (let times = 0; times < 20; times++) {
        const watch = new OwnTime()
        expect(await good.ask(requestPem())).to.have.property('chain')
        slowest = Math.max(slowest, watch.ms())
      }
      expect(slowest, 'the longest time to a certificate in milliseconds').to.be.below(2000)
      const { mib } = cost.stop()
      expect(mib, 'memory in MiB').to.be.below(100)
    } finally {
      good.close()
    }
  })
})
