import { type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2'
import { connect as tcpConnect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { create, toBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { DeltaDiscoveryRequestSchema, DiscoveryRequestSchema } from '../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { messageFrame } from '../../src/xds/stream/frames.ts'
import { clusterType, endpointType } from '../../src/xds/type-urls.ts'
import type { GoodProxyData, GoodProxyReport, LateChange } from '../harness/good-proxy.ts'
import { endHeaders, frame, frameType, preface, requestHeaders } from '../harness/http2-frames.ts'
import { Service } from '../harness/service.ts'
import { patienceMs, until } from '../harness/until.ts'
import { adsPath, type ClientNode, sidecarNode, XdsClient } from '../harness/xds-client.ts'

const object = (kind: string, name: string, spec: string, group = 'networking') =>
  `apiVersion: ${group}.mesh.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ns}\nspec: ${spec}\n`
const service = (name: string, more = '') =>
  object(
    'ServiceEntry',
    name,
    `{hosts: [${name}.ns.svc.cluster.local], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.9}]${more}}`,
  )

/** Documents that once crashed an actor of the control plane, and similar ones. */
const oddDocuments = [
  object('VirtualService', 'odd', '{hosts: [many-1], http: [{timeout: {seconds: abc}, route: [{destination: {host: many-1}}]}]}'),
  object(
    'VirtualService',
    'odd',
    '{hosts: [many-1], http: [{timeout: {seconds: .inf}, retries: {attempts: .nan}, route: [{destination: {host: many-1}}]}]}',
  ),
  object('DestinationRule', 'odd', '{host: many-1, trafficPolicy: {connectionPool: {tcp: {maxConnections: 1.5, connectTimeout: {seconds: 1e300}}}}}'),
  object('Gateway', 'odd', '{servers: [{hosts: ["*"]}]}'),
  object('Gateway', 'odd', '{servers: [{port: null, hosts: ["*"]}, 7, {port: {number: -1}}]}'),
  object('Sidecar', 'odd', '{ingress: [{}, {port: {}}], egress: [{hosts: []}]}'),
  object('AuthorizationPolicy', 'odd', '{rules: [{when: [{values: [a]}]}]}', 'security'),
  object('EnvoyFilter', 'odd', '{configPatches: [{applyTo: HTTP_FILTER, patch: {operation: MERGE, value: {typed_config: {"@type": 7}}}}, {}]}'),
  'apiVersion: [\n---\n: :\n---\n\u0000',
]

/** Of so few changes the latencies say something. On a busy machine a change takes longer, and fewer are made in the same time. */
const fewest = 4

/** A node with an unused namespace, many labels and nearly the maximum size. */
const madeUp = (index: number): ClientNode =>
  sidecarNode(`10.9.${index >> 8}.${index & 255}`, `made-up-${index}`, `nowhere-${index}`, {
    LABELS: Object.fromEntries(Array.from({ length: 20 }, (_, label) => [`label-${label}`, `${index}-${label}`])),
    FILLER: 'x'.repeat(30_000),
  })

describe('a well-behaved proxy gets its changes in time', () => {
  let control: Service
  const stops: (() => void)[] = []
  let over = false
  const session = (): ClientHttp2Session => {
    const made = connect(`http://127.0.0.1:${control.grpcPort}`, { settings: { initialWindowSize: 65_535 } })
    made.on('error', () => undefined)
    stops.push(() => made.destroy())
    return made
  }
  const stream = (on: ClientHttp2Session): ClientHttp2Stream => {
    const made = on.request({ ':method': 'POST', ':path': adsPath, 'content-type': 'application/grpc' })
    made.on('error', () => undefined)
    return made
  }
  const request = ({ id, metadata }: ClientNode, typeUrl: string, resourceNames: string[] = []) =>
    messageFrame(
      toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, { node: { id, metadata: metadata as never }, typeUrl, resourceNames })),
    )

  /** Each group of tests has a service of its own: what one leaves connected is no part of the next. */
  async function start(): Promise<void> {
    over = false
    control = new Service()
    control.write('many.yaml', Array.from({ length: 300 }, (_, index) => service(`many-${index}`)).join('---\n'))
    await control.start()
  }
  async function stop(): Promise<void> {
    over = true
    for (const end of stops.splice(0)) end()
    await control.dispose()
  }

  /**
   * Runs `disturb` beside the well-behaved proxy, again until that has had {@link fewest} changes beside it, and returns its report. `isMoved` says
   * whether it has connected again.
   */
  async function besides(disturb: (isMoved: () => boolean) => Promise<void>): Promise<GoodProxyReport> {
    const worker = new Worker(new URL('../harness/good-proxy.ts', import.meta.url), {
      workerData: { port: control.grpcPort, dir: control.dir } satisfies GoodProxyData,
    })
    let isReady = false
    let isMoved = false
    let changes = 0
    let report: GoodProxyReport | undefined
    worker.on('message', (message: 'ready' | 'changed' | 'moved' | LateChange | GoodProxyReport) => {
      if (message === 'ready') isReady = true
      else if (message === 'changed') changes++
      else if (message === 'moved') isMoved = true
      else if ('late' in message) void tellLate(message)
      else report = message
    })
    await until('the good proxy', () => isReady)
    const deadline = performance.now() + patienceMs
    do await disturb(() => isMoved)
    while (changes < fewest && performance.now() < deadline)
    worker.postMessage('stop')
    // A change that never arrives is given up after the time limit of one `until`.
    await until('the report of the good proxy', () => report !== undefined, 2 * patienceMs)
    await worker.terminate()
    return report as unknown as GoodProxyReport
  }

  /** Writes to the output of the run what the proxy and the control plane know of a change that does not arrive. */
  async function tellLate(late: LateChange): Promise<void> {
    const pages = await Promise.all(
      ['pushz', 'syncz', 'adsz', 'push_status', 'filez', 'configz', 'endpointz', 'slowz', 'actorsz'].map(async (page) => {
        const shown = await control.debug<unknown>(page).catch((error: Error) => error.message)
        return `${page}: ${JSON.stringify(shown, (_, value) => (Array.isArray(value) && value.length > 60 ? value.slice(0, 60) : value))}`
      }),
    )
    console.log(
      [
        `change ${late.late} has not arrived: ${JSON.stringify(late)}`,
        ...pages.map((page) => page.slice(0, 20_000)),
        ...control.output.soFar().split('\n').slice(-60),
      ].join('\n'),
    )
  }

  /** Asserts that the proxy got its changes with a median below 300 ms and a maximum below 1500 ms, and that no actor restarted. */
  async function isServed({ latencies, closed }: GoodProxyReport): Promise<void> {
    const sorted = [...latencies].sort((one, other) => one - other)
    const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] as number
    const seen = `${latencies.length} changes: median ${Math.round(at(0.5))}, most ${Math.round(at(1))} ms`
    if (process.env.SHOW_LATENCY) console.log(`      ${seen}`)
    // First, since it would explain all that follows.
    expect(closed, seen).to.equal(undefined)
    expect(latencies.length, seen).to.be.at.least(fewest)
    expect(at(0.5), seen).to.be.below(300)
    expect(at(1), seen).to.be.below(1500)
    const actors = await control.debug<{ name: string; restarts: number }[]>('actorsz')
    expect(actors.filter((actor) => actor.restarts > 0)).to.deep.equal([])
  }

  describe('beside other proxies', () => {
    before(start)
    after(stop)

    it('beside proxies that send their requests in one-byte DATA frames', async () => {
      await isServed(
        await besides(async () => {
          const bytes = request(
            sidecarNode('10.8.0.1', 'crumbs', 'ns'),
            endpointType,
            Array.from({ length: 5000 }, (_, index) => `nobody-${index}`),
          )
          const crumbs = Buffer.concat([...bytes.subarray(0, 60_000)].map((byte) => frame(frameType.data, 0, 1, Buffer.of(byte))))
          for (let round = 0; round < 10; round++) {
            const socket = tcpConnect(control.grpcPort, '127.0.0.1')
            socket.on('error', () => undefined).resume()
            stops.push(() => socket.destroy())
            socket.write(Buffer.concat([preface, frame(frameType.headers, endHeaders, 1, requestHeaders), crumbs]))
            await pause(400)
          }
        }),
      )
    })

    it('beside proxies that never acknowledge', async () => {
      await isServed(
        await besides(async () => {
          for (let index = 0; index < 100; index++) {
            const silent = new XdsClient(control.grpcPort, sidecarNode(`10.7.0.${index}`, `silent-${index}`, 'ns'), index % 2 === 0)
            silent.silent = true
            silent.connect()
            stops.push(() => silent.close())
          }
          for (let round = 0; round < 8; round++) {
            control.write(`new-${round}.yaml`, service(`new-${round}`))
            await pause(500)
          }
        }),
      )
    })

    it('beside proxies that read ten kilobytes a second, or nothing', async () => {
      await isServed(
        await besides(async () => {
          for (let index = 0; index < 60; index++) {
            const slow = stream(session())
            slow.write(request(sidecarNode(`10.6.0.${index}`, `slow-${index}`, 'ns'), clusterType))
            slow.pause()
            if (index % 2 === 0) continue
            const reading = setInterval(() => slow.read(1000), 100)
            stops.push(() => clearInterval(reading))
          }
          await pause(4000)
        }),
      )
    })

    it('beside proxies that connect with fabricated nodes and disconnect', async () => {
      await isServed(
        await besides(async () => {
          for (let index = 0; index < 400 && !over; index++) {
            const own = session()
            const made = stream(own)
            made.write(request(madeUp(index), clusterType))
            made.write(request(madeUp(index), endpointType, [`outbound|80||many-${index % 300}.ns.svc.cluster.local`, `made-up-${index}`]))
            if (index % 4 !== 0) made.once('data', () => own.destroy())
            await pause(10)
          }
        }),
      )
    })

    it('beside proxies that subscribe and unsubscribe endlessly, by name and with *', async () => {
      await isServed(
        await besides(async () => {
          const names = Array.from({ length: 300 }, (_, index) => `outbound|80||many-${index}.ns.svc.cluster.local`)
          const change = (add: string[], remove: string[]) =>
            toBinary(
              DeltaDiscoveryRequestSchema,
              create(DeltaDiscoveryRequestSchema, { typeUrl: endpointType, resourceNamesSubscribe: add, resourceNamesUnsubscribe: remove }),
            )
          const loopers = await Promise.all(
            Array.from({ length: 10 }, (_, index) =>
              new XdsClient(control.grpcPort, sidecarNode(`10.5.0.${index}`, `loop-${index}`, 'ns'), true).connect().ready(),
            ),
          )
          for (const looper of loopers) stops.push(() => looper.close())
          for (let round = 0; round < 100; round++) {
            for (const [index, looper] of loopers.entries()) {
              looper.sendRaw(change([...names.slice(round + index), '*'], []))
              looper.sendRaw(change([], [...names.slice(round), '*']))
            }
            await pause(30)
          }
          expect(loopers.every(({ closed }) => !closed)).to.equal(true)
        }),
      )
    })
  })

  describe('beside the balance of connections', () => {
    before(start)
    after(stop)

    it('while its own connection is moved to another writer', async () => {
      const crowd = await Promise.all(
        Array.from({ length: 80 }, (_, index) =>
          new XdsClient(control.grpcPort, sidecarNode(`10.4.0.${index}`, `crowd-${index}`, 'ns'), true).connect(),
        ),
      )
      for (const one of crowd) stops.push(() => one.close())
      await until('the crowd', () => crowd.every(({ responses }) => responses.has(clusterType)))
      const report = await besides(async (isMoved) => {
        const writers = (await control.debug<{ name: string }[]>('actorsz')).filter(({ name }) => name.startsWith('xds-writer/')).length
        const { clients } = await control.debug<{ clients: { connectionId: string }[] }>('adsz')
        const placed = new Map(
          clients.map(({ connectionId }) => {
            const [, name, number] = /~([^~.]+)\.ns~.*-(\d+)$/.exec(connectionId) ?? []
            return [name, Number(number) % writers]
          }),
        )
        // The proxy is the newest on its writer, the only one with connections: it is among the first to be moved.
        for (const [index, one] of crowd.entries()) if (placed.get(`crowd-${index}`) !== placed.get('good')) one.close()
        await until('the proxy to be moved', isMoved)
        await pause(1000)
      })
      await isServed(report)
    })
  })

  describe('beside documents', () => {
    before(start)
    after(stop)

    it('while documents become invalid', async () => {
      await isServed(
        await besides(async () => {
          for (let round = 0; round < 2; round++)
            for (const document of oddDocuments) {
              control.write('odd.yaml', document)
              await pause(250)
            }
        }),
      )
    })
  })
})
