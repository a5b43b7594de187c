import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import { create, toBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { DiscoveryRequestSchema } from '../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { messageFrame } from '../../src/xds/stream/frames.ts'
import { clusterType } from '../../src/xds/type-urls.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { adsPath, sidecarNode } from '../harness/xds-client.ts'

const entry = (name: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: ${name}, namespace: ns}\nspec: {hosts: [${name}.ns.svc.cluster.local], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.9}]}\n`

describe('slow proxies, and proxies at standstill', () => {
  const service = new Service({
    env: { PILOT_XDS_SEND_TIMEOUT: '2s', PILOT_DEBOUNCE_AFTER: '20ms' },
    flags: ['--keepaliveInterval', '1s', '--keepaliveTimeout', '1s'],
  })
  const sessions: ClientHttp2Session[] = []
  /** A connection with the given window for each stream. */
  const session = (window: number) => {
    const made = connect(`http://127.0.0.1:${service.grpcPort}`, { settings: { initialWindowSize: window } })
    made.on('error', () => undefined)
    sessions.push(made)
    return made
  }
  /** A stream that subscribes to all clusters, and its final status. */
  const subscribe = (on: ClientHttp2Session, name: string) => {
    const stream = on.request({ ':method': 'POST', ':path': adsPath, 'content-type': 'application/grpc' })
    const seen = { code: undefined as number | undefined, reset: undefined as number | undefined }
    stream.on('error', () => undefined)
    stream.on('trailers', (trailers) => (seen.code = Number(trailers['grpc-status'])))
    stream.on('close', () => (seen.reset = stream.rstCode))
    const { id, metadata } = sidecarNode('10.3.0.1', name, 'ns')
    stream.write(
      messageFrame(
        toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { typeUrl: clusterType, node: { id, metadata: metadata as never } })),
      ),
    )
    return { stream, seen }
  }
  /** Reads the given number of bytes per second. Returns a function with the number of bytes read. */
  const readSlowly = (stream: ClientHttp2Stream, bytesPerSecond: number) => {
    let read = 0
    stream.pause()
    const timer = setInterval(() => {
      const bytes = stream.read(Math.min(stream.readableLength, bytesPerSecond / 20)) as Buffer | null
      read += bytes?.length ?? 0
    }, 50)
    stream.on('close', () => clearInterval(timer))
    return () => read
  }
  const timeouts = async () => Number(/^pilot_xds_write_timeout (\d+)/m.exec(await service.metrics())?.[1])
  const connected = async (name: string) => JSON.stringify(await service.debug('adsz')).includes(`${name}.ns`)

  before(async () => {
    service.write('many.yaml', Array.from({ length: 300 }, (_, index) => entry(`many-${index}`)).join('---\n'))
    await service.start()
  })
  afterEach(() => {
    for (const made of sessions.splice(0)) made.destroy()
  })
  after(() => service.dispose())

  it('that read 20 KB/s get a response of 100 KB, however long it takes', async () => {
    const before = await timeouts()
    const started = performance.now()
    const slow = [16_384, 32_768].map((window, index) => {
      const { stream, seen } = subscribe(session(window), `slow-${index}`)
      return { seen, read: readSlowly(stream, 20_000) }
    })
    await until('all of it', () => slow.every(({ read }) => read() > 100_000))
    expect(performance.now() - started).to.be.above(4000)
    expect(slow.map(({ seen }) => seen.reset)).to.deep.equal([undefined, undefined])
    expect(await timeouts()).to.equal(before)
  })

  it('that read nothing are ended once, with a log line, without affecting other streams of their connection', async () => {
    const before = await timeouts()
    const shared = session(16_384)
    const silent = subscribe(shared, 'silent')
    const live = subscribe(shared, 'live')
    live.stream.resume()
    // In one check: it stands still for as long as the send timeout only.
    await until('the silent one on the page and in the metrics', async () => {
      const slow = await service.debug<{ connectionId: string; stillMs: number; releasedEarly: boolean; outstanding: number }[]>('slowz')
      const [own] = slow.filter(({ connectionId }) => connectionId.includes('silent.ns'))
      const metrics = await service.metrics()
      const isCounted = /^pilot_xds_standing_still 1$/m.test(metrics) && /^pilot_xds_permits_released_early 1$/m.test(metrics)
      return isCounted && own !== undefined && own.stillMs >= 500 && own.releasedEarly && own.outstanding > 50_000
    })
    await until('the silent one to be reset', () => silent.seen.reset !== undefined)
    await until('it to be forgotten', async () => !(await connected('silent')))
    expect(await connected('live')).to.equal(true)
    expect([silent.seen.reset, live.seen.reset]).to.deep.equal([8, undefined])
    expect(await timeouts()).to.equal(before + 1)
    await service.output.says(/silent\.ns\S* ended with DeadlineExceeded: the client read no data within the send timeout/)
  })
})
