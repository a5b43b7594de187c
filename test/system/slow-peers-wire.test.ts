import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { endpointType } from '../../src/xds/type-urls.ts'
import { Authority } from '../harness/certificates.ts'
import { OwnTime } from '../harness/own-time.ts'
import { Service } from '../harness/service.ts'
import { SlowPeer, type SlowPeerOptions } from '../harness/slow-peer.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const kib = 1024
const mib = 1024 * kib

/** A DestinationRule that adds the given number of subset clusters to a service, about half a kilobyte each. */
const subsets = (name: string, count: number) =>
  `apiVersion: networking.mesh.io/v1\nkind: DestinationRule\nmetadata: {name: ${name}, namespace: ns}\nspec:\n  host: ${name}.ns.svc.cluster.local\n  trafficPolicy: {connectionPool: {tcp: {maxConnections: 100}}, outlierDetection: {consecutive5xxErrors: 5, interval: 10s}}\n  subsets:\n${Array.from({ length: count }, (_, index) => `  - {name: v${index}, labels: {version: v${index}}}`).join('\n')}\n`
const entry = (name: string, address = '10.0.0.9') =>
  `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: ${name}, namespace: ns}\nspec: {hosts: [${name}.ns.svc.cluster.local], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: ${address}}]}\n`

interface Slow {
  readonly connectionId: string
  readonly stillMs: number
  readonly releasedEarly: boolean
  readonly outstanding: number
}

/** A discovery service with 240 KB of clusters for each of `services`, and its peers, optionally over TLS. */
function slowPeers(services: number, env: Record<string, string>, flags: readonly string[] = [], tls = false) {
  const service = new Service({ env: { XDS_AUTH: 'false', PILOT_DEBOUNCE_AFTER: '20ms', ...env }, flags })
  const peers: SlowPeer[] = []
  const clients: XdsClient[] = []
  before(async () => {
    for (let index = 0; index < services; index++) {
      service.write(`big-${index}.yaml`, entry(`big-${index}`))
      service.write(`rule-${index}.yaml`, subsets(`big-${index}`, 500))
    }
    service.write('small.yaml', entry('small'))
    if (tls) {
      const { chain, key } = authority().issue('server', 'spiffe://cluster.local/ns/system/sa/discovery')
      securePort = await freePort()
      service.flags.push('--secureGRPCAddr', `127.0.0.1:${securePort}`, '--tlsCertFile', chain, '--tlsKeyFile', key)
    }
    await service.start()
  })
  afterEach(() => {
    for (const peer of peers.splice(0)) peer.end()
    for (const client of clients.splice(0)) client.close()
  })
  after(async () => {
    await service.dispose()
    made?.dispose()
  })
  let securePort = 0
  let made: Authority | undefined
  const authority = () => (made = new Authority())
  let change = 0
  return {
    service,
    peer(options: Omit<SlowPeerOptions, 'port'>): SlowPeer {
      const peer = new SlowPeer({ port: tls ? securePort : service.grpcPort, tls, ...options })
      peers.push(peer)
      return peer
    },
    async client(name: string): Promise<XdsClient> {
      const client = new XdsClient(service.grpcPort, sidecarNode('10.1.0.1', name, 'ns'), true).connect()
      clients.push(client)
      return client.ready()
    },
    /** Changes an endpoint. Resolves to the milliseconds until all clients have it. */
    async changed(): Promise<{ passed: number; own: number }> {
      const address = `10.7.0.${++change}`
      const time = new OwnTime()
      service.write('small.yaml', entry('small', address))
      const name = 'outbound|80||small.ns.svc.cluster.local'
      await until('the change at all', () => clients.every((client) => client.resources.get(endpointType)?.get(name)?.includes(address) === true))
      return { passed: time.passed(), own: time.ms() }
    },
    slow: async (name: string) => (await service.debug<Slow[]>('slowz')).find(({ connectionId }) => connectionId.includes(`~${name}.ns`)),
    metric: async (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(await service.metrics())?.[1]),
  }
}

describe('readers at any rate, with a send timeout of five seconds', () => {
  const { peer, service, metric } = slowPeers(20, {})

  it('are kept if their window is smaller than the kernel buffers or they read at least 300 KB/s', async () => {
    const paces: [name: string, bytesPerSecond: number, window: number][] = [
      ['10k-64k', 10_000, 64 * kib],
      ['100k-64k', 100_000, 64 * kib],
      ['1m-64k', 1_000_000, 64 * kib],
      ['10k-1m', 10_000, mib],
      ['100k-1m', 100_000, mib],
      ['1m-1m', 1_000_000, mib],
      ['1m-256m', 1_000_000, 256 * mib],
    ]
    const started = performance.now()
    const readers = paces.map(([name, bytesPerSecond, window]) => ({ name, bytesPerSecond, peer: peer({ window, bytesPerSecond, names: [name] }) }))
    // Twice the timeout of the slowest reader: 120 KB at 10 KB/s.
    await until('all of them to have read', () => readers.every(({ name, peer: { read } }) => (read.get(name) ?? 0) > 120_000))
    expect(performance.now() - started).to.be.above(10_000)
    for (const { peer: reader } of readers) expect([reader.closed, [...reader.resets]]).to.deep.equal([false, []])
    expect(await metric('pilot_xds_write_timeout')).to.equal(0)
    service.output.lacks('DeadlineExceeded')
  })
})

/** Settings with which the named thread blocks for a number of milliseconds on command, or dies. */
function disturbed(thread: string) {
  const file = join(process.env.TMPDIR ?? '/tmp', `mesh-block-${process.pid}`)
  const hook = fileURLToPath(new URL('../harness/block-thread.cjs', import.meta.url))
  const command = (ms: number) => {
    writeFileSync(`${file}.tmp`, String(ms))
    renameSync(`${file}.tmp`, file)
    return until('the thread to have read the command', () => !existsSync(file))
  }
  return {
    env: { NODE_OPTIONS: `--require ${hook}`, BLOCK_THREAD: thread, BLOCK_FILE: file },
    block: command,
    kill: () => command(0),
  }
}

describe('proxies that read slowly', () => {
  const { peer, service, slow, metric } = slowPeers(40, { PILOT_XDS_SEND_TIMEOUT: '2s' }, [
    '--keepaliveInterval',
    '1s',
    '--keepaliveTimeout',
    '2s',
    '--writers',
    '2',
  ])

  it('are not disconnected by keepalive while its ping waits behind megabytes that they read', async () => {
    const reader = peer({ window: 256 * mib, bytesPerSecond: 1_200_000, names: ['behind'] })
    await until('eight megabytes', () => (reader.read.get('behind') ?? 0) > 8_000_000)
    expect(reader.pings).to.be.above(0)
    expect([reader.closed, [...reader.resets]]).to.deep.equal([false, []])
  })

  it('are disconnected when their socket stands still, with log line and metric, and are listed as slow until then', async () => {
    const before = await metric('pilot_xds_write_timeout')
    const reader = peer({ window: 256 * mib, bytesPerSecond: 10_000_000, names: ['stopped'] })
    await until('something', () => (reader.read.get('stopped') ?? 0) > 0)
    reader.bytesPerSecond = 0
    // In one check: it stands still for as long as the send timeout only.
    await until('it on the page and in the metrics', async () => {
      const seen = await slow('stopped')
      const metrics = await service.metrics()
      const isCounted = /^pilot_xds_standing_still 1$/m.test(metrics) && /^pilot_xds_permits_released_early 1$/m.test(metrics)
      return isCounted && seen !== undefined && seen.stillMs >= 500 && seen.releasedEarly && seen.outstanding > mib
    })
    await until('the timeout', async () => (await metric('pilot_xds_write_timeout')) === before + 1)
    await service.output.says(/stopped\.ns\S* ended with DeadlineExceeded: the client read no data within the send timeout/)
    expect(await slow('stopped')).to.equal(undefined)
    reader.bytesPerSecond = 100_000_000
    await until('the connection to be over', () => reader.closed || reader.resets.has('stopped'))
  })

  it('are disconnected at 10 or 100 KB/s with a window of 256 MiB: the kernel buffer outlasts the timeout', async () => {
    const before = await metric('pilot_xds_write_timeout')
    const readers = [10_000, 100_000].map((bytesPerSecond) => peer({ window: 256 * mib, bytesPerSecond, names: [`step-${bytesPerSecond}`] }))
    await until('both to read', () => readers.every(({ read }) => [...read.values()].some((bytes) => bytes > 0)))
    await until('both to be ended', async () => (await metric('pilot_xds_write_timeout')) === before + 2)
    for (const name of ['step-10000', 'step-100000'])
      await service.output.says(new RegExp(`${name}\\.ns\\S* ended with DeadlineExceeded: the client read no data within the send timeout`))
  })

  it('are reset alone if another stream of the connection reads', () => endsTheSilentAlone(peer))
})

/** One connection with a stream that reads nothing and one that reads: only the first is reset. */
async function endsTheSilentAlone(peer: ReturnType<typeof slowPeers>['peer']): Promise<void> {
  const reader = peer({ window: 64 * kib, connectionWindow: mib, bytesPerSecond: 400_000, names: ['mute', 'live'], silent: ['mute'] })
  await until('the silent one to be reset', () => reader.resets.has('mute'))
  const then = reader.read.get('live') ?? 0
  await until('the other to read on', () => (reader.read.get('live') ?? 0) > then + 100_000 || reader.closed || reader.resets.has('live'))
  expect([[...reader.resets.keys()], reader.closed]).to.deep.equal([['mute'], false])
}

describe('proxies that read slowly, over TLS', () => {
  // At 10 KB/s a window is updated every 1.6 s, with each frame of 16 KiB, which is the only sign that such a peer reads: more than two seconds are
  // needed on a machine whose cores others use.
  const { peer, service, slow, metric } = slowPeers(40, { PILOT_XDS_SEND_TIMEOUT: '3s' }, ['--writers', '2'], true)

  it('are disconnected when their socket stands still', async () => {
    const before = await metric('pilot_xds_write_timeout')
    const reader = peer({ window: 256 * mib, bytesPerSecond: 10_000_000, names: ['stopped'] })
    await until('something', () => (reader.read.get('stopped') ?? 0) > 0)
    reader.bytesPerSecond = 0
    await until('it on the page', async () => ((await slow('stopped'))?.stillMs ?? 0) >= 500)
    await until('the timeout', async () => (await metric('pilot_xds_write_timeout')) === before + 1)
    await service.output.says(/stopped\.ns\S* ended with DeadlineExceeded: the client read no data within the send timeout/)
    reader.bytesPerSecond = 100_000_000
    await until('the connection to be over', () => reader.closed || reader.resets.has('stopped'))
  })

  it('are reset alone if another stream of the connection reads', () => endsTheSilentAlone(peer))

  it('are kept at 10 KB/s of small windows, or 1 MB/s of large ones', async () => {
    const before = await metric('pilot_xds_write_timeout')
    const readers = (
      [
        ['10k-64k', 10_000, 64 * kib],
        ['10k-1m', 10_000, mib],
        ['1m-256m', 1_000_000, 256 * mib],
      ] as const
    ).map(([name, bytesPerSecond, window]) => ({ name, peer: peer({ window, bytesPerSecond, names: [name] }) }))
    // Three timeouts of the slowest reader.
    await until('all of them to have read', () => readers.every(({ name, peer: { read } }) => (read.get(name) ?? 0) > 90_000))
    for (const { peer: reader } of readers) expect([reader.closed, [...reader.resets]]).to.deep.equal([false, []])
    const ended = service.output.soFar().match(/.* ended with DeadlineExceeded.*/g)
    expect(await metric('pilot_xds_write_timeout'), ended?.join('\n')).to.equal(before)
  })
})

describe('a proxy that reads 10 KB/s with PILOT_PUSH_THROTTLE=1', () => {
  const { peer, client, changed, slow } = slowPeers(1, { PILOT_PUSH_THROTTLE: '1' }, ['--writers', '2'])

  it('does not delay other proxies', async () => {
    peer({ window: 64 * kib, bytesPerSecond: 10_000, names: ['creeping'] })
    await until('its permit to be released', async () => (await slow('creeping'))?.releasedEarly === true)
    await Promise.all(Array.from({ length: 12 }, (_, index) => client(`fast-${index}`)))
    const times: number[] = []
    for (let round = 0; round < 12; round++) times.push((await changed()).own)
    expect((await slow('creeping'))?.releasedEarly).to.equal(true)
    // Permits without a notification came half a second late.
    expect(times.filter((ms) => ms > 450).length, times.map(Math.round).join()).to.be.below(4)
  })
})

describe('new proxies that do not read or read slowly, with PILOT_PUSH_THROTTLE=1', () => {
  const { service, peer, client, changed, slow, metric } = slowPeers(4, { PILOT_PUSH_THROTTLE: '1' }, ['--writers', '1'])

  it('never hold the permit that others wait for', async () => {
    const creeping = Array.from({ length: 12 }, (_, index) => `creeping-${index}`)
    for (const name of creeping) peer({ window: 64 * kib, bytesPerSecond: 10_000, names: [name] })
    peer({ window: 64 * kib, bytesPerSecond: 1_000_000, names: ['mute'], silent: ['mute'] })
    const all = [...creeping, 'mute']
    for (const name of all) await service.output.says(`~${name}.ns`)
    const connecting = new OwnTime()
    await client('fast')
    // Each of them would have held the permit for half a second.
    expect(connecting.ms()).to.be.below(2500)
    await until('them to be sent the rest without a permit', async () => (await metric('pilot_xds_permits_released_early')) === all.length)
    expect((await slow('creeping-0'))?.releasedEarly).to.equal(true)
    expect((await changed()).own).to.be.below(2500)
  })
})

describe('a writer thread that is blocked for longer than the send timeout', () => {
  const { env, block } = disturbed('xds-writer/0')
  const { peer, client, changed, metric } = slowPeers(20, { ...env, PILOT_XDS_SEND_TIMEOUT: '5s' }, [
    '--keepaliveInterval',
    '3s',
    '--keepaliveTimeout',
    '3s',
    '--writers',
    '1',
  ])

  it('disconnects none of its peers', async () => {
    const readers = [10_000, 1_000_000].map((bytesPerSecond) => peer({ window: mib, bytesPerSecond, names: ['waits'] }))
    await client('idle')
    await until('something to be under way', () => readers.every(({ read }) => (read.get('waits') ?? 0) > 10_000))
    await block(6000)
    expect((await changed()).passed).to.be.above(4000)
    for (const reader of readers) {
      const then = reader.read.get('waits') ?? 0
      await until('it to read on', () => (reader.read.get('waits') ?? 0) > then + 10_000)
      expect([reader.closed, [...reader.resets]]).to.deep.equal([false, []])
    }
    expect(await metric('pilot_xds_write_timeout')).to.equal(0)
  })
})

describe('a writer thread that is blocked when the answer to a ping is nearly due', () => {
  const { env, block } = disturbed('xds-writer/0')
  const { service, peer } = slowPeers(20, env, ['--keepaliveInterval', '8s', '--keepaliveTimeout', '8s', '--writers', '1'])

  it('does not disconnect a peer whose answer to a ping arrived meanwhile', async () => {
    const reader = peer({ window: mib, bytesPerSecond: 100_000_000, names: ['quiet'], holdsPings: true })
    await until('a ping', () => reader.pings > 0)
    // So late within the eight seconds for an answer that the time charged for the block exceeds them.
    const late = performance.now() + 5000
    await until('the answer to be late', () => performance.now() > late)
    await block(5000)
    const { pings } = reader
    reader.answerPings()
    await until('the next ping, or the end', () => reader.pings > pings || reader.closed)
    expect(reader.closed).to.equal(false)
    service.output.lacks('did not answer a keepalive ping')
  })
})

describe('a writer that dies while one of its responses holds the only permit', () => {
  const { env, kill } = disturbed('xds-writer/0')
  const { service, peer, client, changed, slow } = slowPeers(4, { ...env, PILOT_PUSH_THROTTLE: '1' }, ['--writers', '2'])

  it('has its permit reclaimed, so that all other proxies continue', async () => {
    let holders = 0
    /** Whether a proxy is connected to the writer that dies. Connections are numbered in steps of the number of writers. */
    const isThere = async (name: string) => {
      const [, id = ''] = await service.output.says(new RegExp(`new connection (\\S*~${name}\\.ns\\S*)`))
      return Number(id.split('-').at(-1)) % 2 === 0
    }
    /** A reader at that writer. It takes nine seconds for its response, and may hold the permit for two of them. */
    const holder = async () => {
      for (;;) {
        const name = `holder-${holders++}`
        const reader = peer({ window: 64 * kib, bytesPerSecond: 100_000, names: [name] })
        if (await isThere(name)) return reader
        reader.end()
      }
    }
    let reader: SlowPeer
    do {
      reader = await holder()
      await until('its response to be under way', () => [...reader.read.values()].some((bytes) => bytes > 100_000))
      // On a busy machine the reader may have paused for half a second.
    } while ((await slow([...reader.read.keys()].join()))?.releasedEarly)
    await kill()
    await until('its connection to be over', () => reader.closed)
    await until('the writer to be back', async () => {
      const actors = await service.debug<{ name: string; state: string; restarts: number }[]>('actorsz')
      return actors.some(({ name, state, restarts }) => name === 'xds-writer/0' && state === 'running' && restarts === 1)
    })
    // Until one proxy is at the restarted writer, which would wait for its own permit.
    for (let index = 0; index === 0 || !(await isThere(`after-${index - 1}`)); index++) await client(`after-${index}`)
    for (let round = 0; round < 3; round++) await changed()
  })
})
