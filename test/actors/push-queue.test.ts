import { expect } from 'chai'
import { sourceObjects } from '../../actors/discovery/events/source-events.ts'
import { keptSecrets } from '../../actors/discovery/own-keys/process-secrets.ts'
import { actor as pushQueue } from '../../actors/discovery/push-queue/push-queue.ts'
import { actor as xdsWriter } from '../../actors/discovery/xds-writer/xds-writer.ts'
import { monotonicMs } from '../../actors/runtime/clock.ts'
import { ObjectRegister } from '../../actors/runtime/register.ts'
import { every } from '../../actors/runtime/timers.ts'
import { freePort } from '../../bench/ports.ts'
import type { ResolverCommand, SourceEvent, WriterCommand, WriterEvent } from '../../protocols/messages/push.ts'
import { readFeatures } from '../../src/config/features.ts'
import { configKey } from '../../src/config/kinds.ts'
import { defaultMeshConfig } from '../../src/config/mesh-config.ts'
import { parseConfigFile } from '../../src/config/parse.ts'
import { readNode } from '../../src/model/proxy.ts'
import { meshNames } from '../../src/names/mesh-names.ts'
import { GroupBuilder } from '../../src/push/group-builder.ts'
import { permitWords } from '../../src/push/pacing/permits.ts'
import { proxySlotWords } from '../../src/push/pacing/proxy-slots.ts'
import { mockServices } from '../../src/registry/mock.ts'
import { knownAddressWords } from '../../src/transport/known-addresses.ts'
import { RecordingPeer, startActor } from '../harness/actor.ts'
import { OwnTime } from '../harness/own-time.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const { features } = readFeatures({})
const names = meshNames(features.MESH_DOMAIN)
type Publish = Extract<WriterCommand, { type: 'PublishPush' }>

/** A push queue with one source of ten services, and two writers that acknowledge a push after the given milliseconds. */
async function queueWithWriters(takeMs: number) {
  const queue = await startActor(pushQueue, {
    features,
    secrets: keptSecrets('').secrets,
    trustDomain: '',
    domain: 'cluster.local',
    plugins: [],
    sources: ['source/mock'],
  })
  const source = new RecordingPeer('source/mock')
  const writers = ['xds-writer/0', 'xds-writer/1'].map((name) => new RecordingPeer<WriterCommand>(name))
  for (const writer of writers) {
    writer.onReceived = (command) => {
      if (command.type === 'PublishPush') setTimeout(() => queue.receive({ type: 'PushApplied', push: command.push.id }, writer as never), takeMs)
    }
    queue.linked?.(writer as never)
  }
  const settings = {
    services: 10,
    endpoints: 2,
    namespaces: 2,
    proxiesPerService: 0,
    churnPerSecond: 0,
    largeServices: 0,
    largeEndpoints: 0,
    seed: 1,
    domain: 'cluster.local',
    cluster: 'c',
  }
  const services = mockServices(settings)
  for (const { service, slices } of services)
    queue.receive(
      { type: 'ServiceChanged', registry: service, key: `${service.namespace}/${service.hostname}`, service, slices, at: monotonicMs() },
      source as never,
    )
  queue.synced?.(source as never)
  let address = 0
  let proxies = 0
  return {
    queue,
    writers,
    pushes: (writer: number) =>
      (writers[writer] as RecordingPeer<WriterCommand>).received.filter((command): command is Publish => command.type === 'PublishPush'),
    /** Changes the endpoints of a service. Returns the time. */
    change(): number {
      const { service, slices } = services[0] as (typeof services)[number]
      const at = monotonicMs()
      const { key, endpoints } = slices[0] as (typeof slices)[number]
      const slice = { key, version: '', endpoints: endpoints.map((endpoint) => ({ ...endpoint, address: `10.200.0.${++address % 250}` })) }
      queue.receive(
        { type: 'EndpointsChanged', registry: service, key: `${service.namespace}/${service.hostname}`, part: key, slice, at },
        source as never,
      )
      return at
    },
    connect(writer = 0, transport = proxies): void {
      const number = proxies++
      const { id, metadata } = sidecarNode(`10.9.${number >> 8}.${number & 255}`, `pod-${number}`, `ns-${number % 5}`)
      const node = readNode({ id, metadata, locality: undefined }, names, false)
      queue.receive({ type: 'ProxyConnected', connection: `${id}-${number}`, transport, node }, writers[writer] as never)
    },
  }
}

describe('the push queue', () => {
  it('does not delay changes while over a hundred proxies a second connect', async () => {
    const { queue, pushes, change, connect } = await queueWithWriters(30)
    const connects = every(6, () => connect())
    try {
      await until('proxies to be there', () => pushes(0).some(({ assignments }) => assignments.length > 0))
      const lags: number[] = []
      for (let round = 0; round < 5; round++) {
        const [changed, at] = [new OwnTime(), change()]
        await until('the change to reach the writers', () => [0, 1].every((writer) => pushes(writer).some(({ push }) => push.startedAt === at)))
        lags.push(changed.ms())
      }
      expect(Math.max(...lags)).to.be.lessThan(features.PILOT_DEBOUNCE_AFTER + 300)
    } finally {
      connects.cancel()
      await queue.drain?.()
    }
  })

  it('does not increase the push number for a connect', async () => {
    const { queue, pushes, connect } = await queueWithWriters(1)
    const [first] = pushes(0)
    connect()
    await until('the class', () => pushes(0).some(({ assignments }) => assignments.length > 0))
    expect(pushes(0).map(({ push }) => push.id)).to.deep.equal([first?.push.id, first?.push.id])
    await queue.drain?.()
  })

  it('tries an advance that failed again without another change', async () => {
    const { queue, pushes, change, connect } = await queueWithWriters(1)
    connect()
    await until('the class', () => pushes(0).some(({ assignments }) => assignments.length > 0))
    const advance = GroupBuilder.prototype.advance
    let failures = 0
    GroupBuilder.prototype.advance = () => {
      failures++
      throw new Error('a passing one')
    }
    try {
      change()
      await until('the attempt to fail', () => failures === 1)
      GroupBuilder.prototype.advance = advance
      const before = pushes(0).flatMap(({ groups }) => groups).length
      await until('the change to be sent', () => pushes(0).flatMap(({ groups }) => groups).length > before)
    } finally {
      GroupBuilder.prototype.advance = advance
      await queue.drain?.()
    }
  })

  it('balances writers by connections, not by streams', async () => {
    const { queue, writers, connect } = await queueWithWriters(1)
    const released = () => writers.map(({ received }) => received.filter((command) => command.type === 'ReleaseConnections'))
    try {
      for (let stream = 0; stream < 99; stream++) connect(0, 1000)
      for (let proxy = 0; proxy < 30; proxy++) connect(1)
      await until('connections to be let go', () => released().some((commands) => commands.length > 0))
      expect(released()).to.deep.equal([[], [{ type: 'ReleaseConnections', count: 3 }]])
    } finally {
      await queue.drain?.()
    }
  })

  it('sends nothing after it was drained', async () => {
    const { queue, pushes, connect, change } = await queueWithWriters(1)
    await until('the first push', () => pushes(0).length > 0)
    const before = pushes(0).length
    connect()
    change()
    await queue.drain?.()
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
    expect(pushes(0).length).to.equal(before)
  })

  it('waits once for a writer that does not acknowledge, and not at every push', async () => {
    const { queue, writers, pushes, change, connect } = await queueWithWriters(1)
    const [hung] = writers as [RecordingPeer<WriterCommand>]
    hung.onReceived = () => {}
    connect(1)
    await until('the proxy to have its class', () => pushes(1).some(({ assignments }) => assignments.length > 0))
    const lag = async () => {
      const [changed, at] = [new OwnTime(), change()]
      await until('the change', () => pushes(1).some(({ push }) => push.startedAt === at))
      return changed.ms()
    }
    await lag()
    const lags = [await lag(), await lag(), await lag()]
    expect(lags.filter((lag) => lag > features.PILOT_DEBOUNCE_AFTER + 300)).to.have.length.at.most(1)
    await queue.drain?.()
  })

  it('sends the whole state to a writer that rejected a patch', async () => {
    const { queue, writers, pushes, connect, change } = await queueWithWriters(1)
    connect(0)
    const at = change()
    await until('the change', () => pushes(0).some(({ push }) => push.startedAt === at))
    const before = pushes(1).length
    queue.receive({ type: 'FullStateRequested' }, writers[0] as never)
    const whole = pushes(0).at(-1)
    expect([whole?.whole, whole?.groups.every(({ base }) => base === 0), whole?.assignments.length, pushes(1).length]).to.deep.equal([
      true,
      true,
      1,
      before,
    ])
    await queue.drain?.()
  })
})

describe('the messages to a writer', () => {
  /** The classes and groups that a writer has after some pushes. */
  const held = (pushes: readonly Publish[]) => {
    const [classes, groups] = [new Set<string>(), new Set<string>()]
    for (const push of pushes) {
      if (push.whole) for (const known of [classes, groups]) known.clear()
      for (const { classId } of push.manifests) classes.add(classId)
      for (const id of push.retiredClasses) classes.delete(id)
      for (const { group } of push.groups) groups.add(group)
      for (const id of push.retiredGroups) groups.delete(id)
    }
    return { classes: classes.size, own: [...groups].filter((id) => id.includes('ns-')).map((id) => id.match(/ns-\d/)?.[0]), groups: groups.size }
  }
  const ownOf = (pushes: readonly Publish[]) => [...new Set(held(pushes).own)].sort()

  it('contain the classes of its own proxies with their groups', async () => {
    const { queue, pushes, connect, change } = await queueWithWriters(1)
    try {
      // Proxies are in five namespaces in turn, each with a class of its own.
      for (const writer of [0, 1, 1, 0]) connect(writer)
      await until('the classes', () => [0, 1].every((writer) => held(pushes(writer)).classes === 2))
      expect([ownOf(pushes(0)), ownOf(pushes(1))]).to.deep.equal([
        ['ns-0', 'ns-3'],
        ['ns-1', 'ns-2'],
      ])
      const at = change()
      await until('the change', () => [0, 1].every((writer) => pushes(writer).some(({ push }) => push.startedAt === at)))
      const [one, other] = [0, 1].map((writer) => pushes(writer).find(({ push }) => push.startedAt === at))
      expect(one?.groups, 'what both need comes to both').to.deep.equal(other?.groups)
      expect(one?.slabs).to.deep.equal(other?.slabs)
    } finally {
      await queue.drain?.()
    }
  })

  it('contain nothing after its restart, until its proxies connect', async () => {
    const { queue, writers, pushes, connect } = await queueWithWriters(1)
    const [first] = writers as [RecordingPeer<WriterCommand>]
    try {
      for (const writer of [0, 1, 1, 0]) connect(writer)
      await until('the classes', () => held(pushes(0)).classes === 2)
      queue.unlinked?.(first as never)
      const before = pushes(0).length
      queue.linked?.(first as never)
      const [whole] = pushes(0).slice(before)
      expect([whole?.whole, held(pushes(0)).groups, whole?.slabs]).to.deep.equal([true, 0, []])
      connect(0)
      await until('the class of the proxy that came', () => held(pushes(0)).classes === 1)
      expect(ownOf(pushes(0))).to.deep.equal(['ns-4'])
      expect(ownOf(pushes(1))).to.deep.equal(['ns-1', 'ns-2'])
    } finally {
      await queue.drain?.()
    }
  })

  it('retire a class without proxies at this writer after the grace period, although another writer has some', async () => {
    const { queue, writers, pushes, connect } = await queueWithWriters(1)
    try {
      const { id } = sidecarNode('10.9.0.0', 'pod-0', 'ns-0')
      for (const writer of [0, 1, 1, 1, 1, 1]) connect(writer)
      await until('the classes', () => held(pushes(1)).classes === 5)
      queue.receive({ type: 'ProxyDisconnected', connection: `${id}-0` }, writers[0] as never)
      await until('its class to go', () => held(pushes(0)).classes === 0)
      expect([held(pushes(0)).groups, held(pushes(1)).classes]).to.deep.equal([0, 5])
    } finally {
      await queue.drain?.()
    }
  })
}).timeout(120_000)

describe('the first push', () => {
  it('does not wait for a source that was removed for good', async () => {
    const config = { features, secrets: keptSecrets('').secrets, trustDomain: '', domain: 'cluster.local', plugins: [] }
    const [kept, removed] = [new RecordingPeer('source/kept'), new RecordingPeer('source/removed')]
    const queue = await startActor(pushQueue, { ...config, sources: [kept.name, removed.name] })
    const writer = new RecordingPeer<WriterCommand>('xds-writer/0')
    const isPushed = () => writer.received.some(({ type }) => type === 'PublishPush')
    queue.linked?.(writer as never)
    queue.synced?.(kept as never)
    expect(isPushed()).to.equal(false)
    queue.forgotten?.(removed as never)
    expect(isPushed()).to.equal(true)
    await queue.drain?.()
  })
})

describe('the mesh configuration in the push queue', () => {
  it('is that of the first source that gives one, of a removed source no longer, and last the default', async () => {
    const lines: string[] = []
    const config = { features, secrets: keptSecrets('').secrets, trustDomain: '', domain: 'cluster.local', plugins: [] }
    const queue = await startActor(
      pushQueue,
      { ...config, sources: ['source/files', 'source/other'] },
      { logged: ({ message }) => void lines.push(message) },
    )
    const root = () => (queue.asks?.mesh?.() as { rootNamespace: string } | undefined)?.rootNamespace
    const register = new ObjectRegister(sourceObjects)
    const give = (source: string, rootNamespace: string) => {
      const event = { type: 'MeshChanged', source, place: `/${source}`, mesh: { ...defaultMeshConfig(), rootNamespace }, at: monotonicMs() } as const
      register.heard(event)
      queue.receive(event, new RecordingPeer(`source/${source}`) as never)
    }
    const files = new RecordingPeer('source/files')
    for (const source of ['source/files', 'source/other']) queue.synced?.(new RecordingPeer(source) as never)
    give('other', 'others')
    give('files', 'own')
    give('other', 'others again')
    await until('the mesh configuration of the files', () => root() === 'own')
    expect(lines).to.include('mesh configuration of other (/other) not in force: those of files (/files) come first')
    const withdrawals = register.withdrawals() as SourceEvent[]
    expect(withdrawals).to.have.length(2)
    const withdraw = (source: string) =>
      queue.receive(withdrawals.find((event) => 'source' in event && event.source === source) as never, files as never)
    withdraw('files')
    await until('that of the other', () => root() === 'others again')
    withdraw('other')
    await until('the default', () => root() === defaultMeshConfig().rootNamespace)
    await queue.drain?.()
  })
})

describe('key sets in the push queue', () => {
  it('are kept while a restarted resolver cannot fetch them', async () => {
    const queue = await startActor(pushQueue, {
      features,
      secrets: keptSecrets('').secrets,
      trustDomain: '',
      domain: 'cluster.local',
      plugins: ['authn'],
      sources: ['files'],
    })
    const writer = new RecordingPeer<WriterCommand>('xds-writer/0')
    writer.onReceived = (command) => {
      if (command.type === 'PublishPush') setTimeout(() => queue.receive({ type: 'PushApplied', push: command.push.id }, writer as never), 1)
    }
    const files = new RecordingPeer('files')
    const source = 'http://issuer.example/keys'
    const configure = (text: string) => {
      for (const object of parseConfigFile('f', text, names).objects)
        queue.receive({ type: 'ConfigChanged', key: configKey(object), object, at: monotonicMs() }, files as never)
    }
    const authentication = (jwksUri: string) =>
      `apiVersion: security.mesh.io/v1\nkind: RequestAuthentication\nmetadata: {name: r, namespace: ns}\nspec: {jwtRules: [{issuer: i, jwksUri: '${jwksUri}'}]}\n`
    const { id, metadata } = sidecarNode('10.9.0.1', 'pod', 'ns')
    const resolver = () => new RecordingPeer<ResolverCommand>('jwks-resolver')
    const [first, second] = [resolver(), resolver()]
    const wanted = ({ received }: typeof first) => received.at(-1)?.sources.map((each) => each.source)
    queue.linked?.(writer as never)
    queue.linked?.(first as never)
    configure(authentication(source))
    queue.synced?.(files as never)
    expect(wanted(first)).to.deep.equal([source])
    queue.receive({ type: 'KeySetChanged', source, keys: '{"keys":[]}' }, first as never)
    queue.receive(
      { type: 'ProxyConnected', connection: id, transport: 0, node: readNode({ id, metadata, locality: undefined }, names, false) },
      writer as never,
    )
    await until('the proxy to have its class', () =>
      writer.received.some((command) => command.type === 'PublishPush' && command.assignments.length > 0),
    )
    const before = writer.received.length
    queue.unlinked?.(first as never)
    queue.linked?.(second as never)
    expect(wanted(second)).to.deep.equal([source])
    queue.receive({ type: 'KeySetChanged', source, keys: undefined }, second as never)
    // Another change causes a push, whose reasons would include the withdrawal.
    configure(
      'apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: a, namespace: ns}\nspec: {hosts: [a.com], resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.1.1.1}]}\n',
    )
    configure(authentication('http://issuer.example/others'))
    const reasons = () => writer.received.slice(before).flatMap((command) => (command.type === 'PublishPush' ? command.push.reasons : []))
    await until('the next push', () => reasons().includes('config'))
    expect(reasons()).not.to.include('keys')
    expect(wanted(second)).to.deep.equal(['http://issuer.example/others'])
    await queue.drain?.()
  })
})

/** The configuration of a single writer. */
const writerConfig = (port: number) => ({
  plain: { host: '127.0.0.1', port },
  secure: undefined,
  versionKey: 'key',
  tokenRules: [],
  ...{ reviewsTokens: false, followsClusters: false },
  statusOnLoopback: true,
  writers: 1,
  index: 0,
  permits: permitWords(1),
  proxySlots: proxySlotWords(1),
  knownAddresses: knownAddressWords(),
  connections: { keepaliveInterval: 1e4, keepaliveTimeout: 1e4, maxConnectionAge: 1e9 },
})

describe('an XDS writer', () => {
  it('releases the newest of its present connections, with all streams', async () => {
    const port = await freePort()
    const writer = await startActor(xdsWriter, { features, ...writerConfig(port) })
    const queue = new RecordingPeer<WriterEvent>('push-queue')
    writer.linked?.(queue as never)
    writer.receive({ type: 'OpenListener' }, queue as never)
    const seen = (type: WriterEvent['type'], count: number) =>
      until(type, () => queue.received.filter((event) => event.type === type).length === count)
    const connected = async (name: string, count: number) => {
      const client = new XdsClient(port, sidecarNode('10.9.1.1', name, 'ns'), true).connect()
      await seen('ProxyConnected', count)
      return client
    }
    const [oldest, newest, gone] = [await connected('oldest', 1), await connected('newest', 2), await connected('gone', 3)]
    gone.close()
    await seen('ProxyDisconnected', 1)
    writer.receive({ type: 'ReleaseConnections', count: 1 }, queue as never)
    await until('the newest connection that is there to go', () => newest.closed !== undefined)
    expect(newest.closed).to.deep.equal({ code: 14, details: 'the connection is closed for load balancing' })
    expect(oldest.closed).to.equal(undefined)
    const transports = queue.received.flatMap((event) => (event.type === 'ProxyConnected' ? [event.transport] : []))
    expect(transports).to.deep.equal([0, 1, 2])
    for (const client of [oldest, newest]) client.close()
    await writer.drain?.()
  })

  it('drops a class without proxies when a whole state comes without it', async () => {
    const port = await freePort()
    const writer = await startActor(xdsWriter, { features, ...writerConfig(port) })
    const queue = new RecordingPeer<WriterEvent>('push-queue')
    writer.linked?.(queue as never)
    writer.receive({ type: 'OpenListener' }, queue as never)
    const client = new XdsClient(port, sidecarNode('10.9.1.1', 'pod', 'ns'), true).connect()
    await until('the proxy', () => queue.received.some(({ type }) => type === 'ProxyConnected'))
    const [connection] = queue.received.flatMap((event) => (event.type === 'ProxyConnected' ? [event.connection] : []))
    let sequence = 0
    const publish = (classId: string, { whole = false, base = 0 } = {}) =>
      writer.receive(
        {
          type: 'PublishPush',
          push: { id: 1, startedAt: 0, reasons: [], digest: '' },
          whole,
          slabs: [],
          retiredSlabs: [],
          groups: [{ group: `of ${classId}`, base, sequence: ++sequence, version: '0'.repeat(32), changed: [], removed: [] }],
          retiredGroups: [],
          manifests: base === 0 ? [{ classId, groups: { type: [{ group: `of ${classId}`, hide: [] }] } }] : [],
          retiredClasses: [],
          assignments: base === 0 ? [{ connection: connection as string, classId }] : [],
        },
        queue as never,
      )
    publish('left')
    publish('present')
    publish('present', { whole: true })
    publish('left', { base: 1 })
    expect(
      queue.received.filter(({ type }) => type === 'FullStateRequested'),
      'the patch fits nothing',
    ).to.have.length(1)
    client.close()
    await writer.drain?.()
  })

  it('requests the whole state once if a patch does not fit its state', async () => {
    const config = writerConfig(0)
    const writer = await startActor(xdsWriter, { features, ...config })
    const queue = new RecordingPeer<WriterEvent>('push-queue')
    writer.linked?.(queue as never)
    const publish = (base: number, sequence: number, whole = false) =>
      writer.receive(
        {
          type: 'PublishPush',
          push: { id: sequence, startedAt: 0, reasons: [], digest: '' },
          whole,
          slabs: [],
          retiredSlabs: [],
          groups: [{ group: 'g', base, sequence, version: '0'.repeat(32), changed: [], removed: [] }],
          retiredGroups: [],
          manifests: [],
          retiredClasses: [],
          assignments: [],
        },
        queue as never,
      )
    const asked = () => queue.received.filter(({ type }) => type === 'FullStateRequested').length
    publish(0, 1)
    expect(asked()).to.equal(0)
    publish(2, 3)
    publish(3, 4)
    expect(asked()).to.equal(1)
    publish(0, 4, true)
    publish(4, 5)
    expect(asked()).to.equal(1)
    publish(9, 10)
    expect(asked()).to.equal(2)
    // Every push was acknowledged, so nothing waits for this writer.
    expect(queue.received.filter(({ type }) => type === 'PushApplied')).to.have.length(6)
    await writer.drain?.()
  })
})
