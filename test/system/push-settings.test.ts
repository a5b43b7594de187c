import { connect } from 'node:http2'
import { connect as tcpConnect } from 'node:net'
import { create, toBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { DiscoveryRequestSchema } from '../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { trialBytes } from '../../src/push/pacing/permit-timeout.ts'
import { messageFrame } from '../../src/xds/stream/frames.ts'
import { clusterType, endpointType, routeType } from '../../src/xds/type-urls.ts'
import { OwnTime } from '../harness/own-time.ts'
import { Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const ads = '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources'
const clusterRequest = (name: string) => {
  const node = sidecarNode('10.7.0.9', name, 'ns')
  return messageFrame(
    toBinary(
      DiscoveryRequestSchema,
      create(DiscoveryRequestSchema, { typeUrl: clusterType, node: { id: node.id, metadata: node.metadata as never } }),
    ),
  )
}

/** Returns the milliseconds from a change until the condition holds: elapsed time for lower limits, own time for upper limits. */
async function timeOf(change: () => void, there: () => boolean): Promise<{ passed: number; own: number }> {
  const time = new OwnTime()
  change()
  await until('the change', there)
  return { passed: time.passed(), own: time.ms() }
}

/** Runs the function with a service of its own. */
async function withService(
  options: { env?: Record<string, string>; flags?: readonly string[]; files?: Record<string, string> },
  use: (service: Service) => Promise<void>,
): Promise<void> {
  const service = new Service(options)
  for (const [name, text] of Object.entries({ 'a.yaml': serviceEntry('a'), ...options.files })) service.write(name, text)
  try {
    await service.start()
    await use(service)
  } finally {
    await service.dispose()
  }
}

const clientOf = (service: Service, name = 'one') => new XdsClient(service.grpcPort, sidecarNode('10.7.0.1', name, 'ns'), true).connect().ready()
const has = (client: XdsClient, service: string) => client.resources.get(clusterType)?.has(`outbound|80||${service}.ns.svc.cluster.local`) ?? false
const endpointIs = (client: XdsClient, service: string, address: string) =>
  client.resources.get(endpointType)?.get(`outbound|80||${service}.ns.svc.cluster.local`)?.includes(address) ?? false

describe('settings of the push path', () => {
  it('PILOT_ENABLE_EDS_DEBOUNCE=false: endpoint changes do not wait for the quiet period', () =>
    withService({ env: { PILOT_DEBOUNCE_AFTER: '1500ms', PILOT_ENABLE_EDS_DEBOUNCE: 'false' } }, async (service) => {
      const client = await clientOf(service)
      const endpoint = await timeOf(
        () => service.write('a.yaml', serviceEntry('a', '10.0.0.2')),
        () => endpointIs(client, 'a', '10.0.0.2'),
      )
      expect(endpoint.own).to.be.below(1000)
      const added = await timeOf(
        () => service.write('b.yaml', serviceEntry('b')),
        () => has(client, 'b'),
      )
      expect(added.passed).to.be.above(1400)
      client.close()
    }))

  it('PILOT_DEBOUNCE_AFTER and PILOT_DEBOUNCE_MAX: endpoints wait for a quiet period, and continuous changes up to the maximum', () =>
    withService({ env: { PILOT_DEBOUNCE_AFTER: '700ms', PILOT_DEBOUNCE_MAX: '1500ms' } }, async (service) => {
      const client = await clientOf(service)
      const endpoint = await timeOf(
        () => service.write('a.yaml', serviceEntry('a', '10.0.0.2')),
        () => endpointIs(client, 'a', '10.0.0.2'),
      )
      expect(endpoint.passed).to.be.above(650)
      let round = 0
      const busy = setInterval(() => service.write('busy.yaml', serviceEntry(`busy-${round++}`)), 100)
      const took = await timeOf(
        () => undefined,
        () => [...(client.resources.get(clusterType)?.keys() ?? [])].some((name) => name.includes('busy-')),
      )
      clearInterval(busy)
      expect(took.passed).to.be.above(1200)
      expect(took.own).to.be.below(3000)
      client.close()
    }))

  for (const [throttle, blocked] of [
    ['1', true],
    ['100', false],
  ] as const) {
    it(`PILOT_PUSH_THROTTLE=${throttle}: a proxy that stops reading after its trial ${blocked ? 'holds the only permit for a moment' : 'delays nobody'}`, () => {
      const files = Object.fromEntries(Array.from({ length: 600 }, (_, index) => [`many-${index}.yaml`, serviceEntry(`many-${index}`)]))
      const env = { PILOT_PUSH_THROTTLE: throttle, PILOT_XDS_SEND_TIMEOUT: '2s', PILOT_DEBOUNCE_AFTER: '20ms' }
      return withService({ env, files, flags: ['--writers', '1'] }, async (service) => {
        const client = await clientOf(service)
        const window = trialBytes + 1000
        const session = connect(`http://127.0.0.1:${service.grpcPort}`, { settings: { initialWindowSize: window } })
        session.on('connect', () => session.setLocalWindowSize(window)).on('error', () => undefined)
        const stream = session.request({ ':method': 'POST', ':path': ads, 'content-type': 'application/grpc' })
        stream.on('error', () => undefined)
        const asked = new OwnTime()
        stream.write(clusterRequest('deaf'))
        await until('the deaf one to be known', async () => JSON.stringify(await service.debug('adsz')).includes('deaf.ns'))
        const took = await timeOf(
          () => service.write('a.yaml', serviceEntry('a', '10.0.0.2')),
          () => endpointIs(client, 'a', '10.0.0.2'),
        )
        // Since the proxy asked: on a busy machine its permit is gone before it is known and the change is written.
        if (blocked) expect(asked.passed()).to.be.above(350)
        expect(took.own).to.be.below(blocked ? 2000 : 350)
        session.destroy()
        client.close()
      })
    })
  }

  it('PILOT_XDS_CACHE_STATS and PILOT_XDS_CACHE_SIZE: reads and evictions are counted, and the size is respected', () =>
    withService({ env: { PILOT_XDS_CACHE_STATS: 'true', PILOT_XDS_CACHE_SIZE: '3' }, flags: ['--writers', '1'] }, async (service) => {
      const clients = [await clientOf(service, 'one'), await clientOf(service, 'two')]
      const metrics = await service.metrics()
      const value = (name: string) => Number(new RegExp(`^${name.replace(/[{}"]/g, '\\$&')} (\\d+)`, 'm').exec(metrics)?.[1] ?? 0)
      expect(value('xds_cache_reads{type="miss"}')).to.be.above(3)
      expect(value('xds_cache_size')).to.equal(3)
      expect(value('xds_cache_evictions')).to.be.above(0)
      for (const client of clients) client.close()
    }))

  it('PILOT_ENABLE_XDS_CACHE: responses for one proxy are cached for the next, and not with false', async () => {
    for (const [enabled, hits] of [
      ['true', true],
      ['false', false],
    ] as const) {
      await withService({ env: { PILOT_XDS_CACHE_STATS: 'true', PILOT_ENABLE_XDS_CACHE: enabled }, flags: ['--writers', '1'] }, async (service) => {
        const clients = [await clientOf(service, 'one'), await clientOf(service, 'two')]
        expect(/^xds_cache_reads\{type="hit"\} [1-9]/m.test(await service.metrics())).to.equal(hits)
        for (const client of clients) client.close()
      })
    }
  })

  it('MESH_GPRC_MAXSTREAMS: is announced to a connection as its maximum of concurrent streams', () =>
    withService({ env: { MESH_GPRC_MAXSTREAMS: '3' } }, async (service) => {
      const session = connect(`http://127.0.0.1:${service.grpcPort}`)
      await new Promise((resolve) => session.once('remoteSettings', resolve))
      expect(session.remoteSettings.maxConcurrentStreams).to.equal(3)
      session.destroy()
    }))

  it('keepalive flags: set the ping interval, the timeout for a silent peer, and the maximum connection age', () =>
    withService({ flags: ['--keepaliveInterval', '1s', '--keepaliveTimeout', '1s', '--keepaliveMaxServerConnectionAge', '4s'] }, async (service) => {
      const alive = connect(`http://127.0.0.1:${service.grpcPort}`)
      let pings = 0
      alive.on('ping', () => pings++)
      const goaway = new Promise((resolve) => alive.on('goaway', resolve))
      const halfOpen = tcpConnect(service.grpcPort, '127.0.0.1')
      halfOpen.on('error', () => undefined)
      halfOpen.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
      halfOpen.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]))
      const started = new OwnTime()
      await new Promise((resolve) => halfOpen.on('close', resolve).resume())
      expect(started.passed()).to.be.above(1500)
      expect(started.ms()).to.be.below(3500)
      await goaway
      expect(pings, 'one each second').to.be.within(2, started.passed() / 1000 + 1)
      expect(started.passed()).to.be.above(3500)
      expect(started.ms()).to.be.below(6000)
      alive.destroy()
    }))

  it('pilot_proxy_convergence_time: ends with the last type, including routes that wait for the ACK of new clusters', () =>
    withService({ env: { PILOT_DEBOUNCE_AFTER: '20ms' } }, async (service) => {
      const client = await clientOf(service)
      const read = async () => {
        const metrics = await service.metrics()
        const value = (name: string) =>
          [...metrics.matchAll(new RegExp(`^pilot_proxy_convergence_time_${name} (\\S+)$`, 'gm'))].reduce((sum, [, text]) => sum + Number(text), 0)
        return { sum: value('sum'), count: value('count') }
      }
      const before = await read()
      const waiting = new OwnTime()
      client.silent = true
      const routes = client.responses.get(routeType)
      service.write('b.yaml', serviceEntry('b'))
      const clusters = client.responses.get(clusterType)
      await until('the clusters', () => client.responses.get(clusterType) !== clusters)
      expect(await read()).to.deep.equal(before)
      await until('the routes', () => client.responses.get(routeType) !== routes)
      await until('the push to be counted', async () => (await read()).count === before.count + 1)
      const seconds = (await read()).sum - before.sum
      expect(seconds).to.be.above(4.9)
      expect(seconds * waiting.share(), 'seconds of own time').to.be.below(8)
      client.close()
    }))

  it('histograms of the push path: agree with what proxies observe', () =>
    withService({ env: { PILOT_DEBOUNCE_AFTER: '300ms' } }, async (service) => {
      const clients = await Promise.all(Array.from({ length: 20 }, (_, index) => clientOf(service, `pod-${index}`)))
      const read = async () => {
        const metrics = await service.metrics()
        const sum = (name: string) =>
          [...metrics.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'))].reduce((all, [, value]) => all + Number(value), 0)
        return Object.fromEntries(
          ['pilot_proxy_convergence_time', 'pilot_proxy_queue_time', 'pilot_xds_push_time', 'pilot_xds_send_time'].map((name) => [
            name,
            { sum: sum(`${name}_sum`), count: sum(`${name}_count`) },
          ]),
        ) as Record<string, { sum: number; count: number }>
      }
      const before = await read()
      const changing = new OwnTime()
      const seen: number[] = []
      for (let round = 1; round <= 5; round++) {
        const started = performance.now()
        service.write('a.yaml', serviceEntry('a', `10.0.1.${round}`))
        await Promise.all(
          clients.map(async (client) => {
            await until('the endpoint', () => endpointIs(client, 'a', `10.0.1.${round}`))
            seen.push(performance.now() - started)
          }),
        )
      }
      await until(
        'all pushes to be counted',
        async () => ((await read()).pilot_proxy_convergence_time?.count ?? 0) >= (before.pilot_proxy_convergence_time?.count ?? 0) + 100,
      )
      const after = await read()
      const mean = (name: string) => ((after[name]?.sum ?? 0) - (before[name]?.sum ?? 0)) / ((after[name]?.count ?? 0) - (before[name]?.count ?? 0))
      const clientMean = seen.reduce((sum, ms) => sum + ms, 0) / seen.length / 1000
      expect((after.pilot_proxy_convergence_time?.count ?? 0) - (before.pilot_proxy_convergence_time?.count ?? 0)).to.equal(100)
      // The measured time begins with the change and ends before its client, which polls, has noticed it.
      expect(mean('pilot_proxy_convergence_time')).to.be.within(0.3, clientMean + 0.02)
      expect(mean('pilot_proxy_queue_time') * changing.share()).to.be.below(0.1)
      for (const name of ['pilot_xds_push_time', 'pilot_xds_send_time']) {
        expect((after[name]?.count ?? 0) - (before[name]?.count ?? 0)).to.be.at.least(100)
        expect(mean(name)).to.be.below(mean('pilot_proxy_convergence_time'))
      }
      for (const client of clients) client.close()
    }))
})
