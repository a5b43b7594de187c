/**
 * The push queue: consumes what sources say (`SourceEvent`) and which proxies come and go (`WriterEvent`), debounces, makes
 * what changed, and emits pushes to the writers (`WriterCommand`). When it dies its sources say everything again and the
 * writers name their proxies again; meanwhile they keep serving what they have.
 */

import type { PushQueueConfig } from '../../../protocols/messages/config.ts'
import { unsyncedNote } from '../../../protocols/messages/notes.ts'
import type {
  KeySetEvent,
  PushContent,
  PushInfo,
  ResolverCommand,
  SourceEvent,
  WriterCommand,
  WriterEvent,
} from '../../../protocols/messages/push.ts'
import type { Features } from '../../../src/config/features.ts'
import { defaultMeshConfig, type MeshConfig, type MeshNetworks, withTrustDomain } from '../../../src/config/mesh-config.ts'
import type { ResourceFault } from '../../../src/model/faults.ts'
import { meshNames } from '../../../src/names/mesh-names.ts'
import { FaultLog } from '../../../src/push/fault-log.ts'
import { Balance } from '../../../src/push/pacing/balance.ts'
import { Debounce } from '../../../src/push/pacing/debounce.ts'
import { Takers } from '../../../src/push/pacing/takers.ts'
import { Planner } from '../../../src/push/planner.ts'
import { registryName } from '../../../src/registry/merged-services.ts'
import { isNothing } from '../../../src/snapshot/snapshot.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../runtime/actor.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { Peer } from '../../runtime/link.ts'
import { after, every, type Timer } from '../../runtime/timers.ts'
import { sourceObjects } from '../source-events.ts'
import { debugAnswers } from './push-queue-debug.ts'
import { faultMetrics, pushQueueMetrics } from './push-queue-metrics.ts'

type Message = SourceEvent | WriterEvent | KeySetEvent

/** How often connections are looked at for being spread evenly, in milliseconds. */
const balanceMs = 2000
/** While more than this share of all connections comes or goes between two looks, none is moved. */
const unsettledShare = 0.02
/** How long the first push waits for key sets, in milliseconds. */
const keysMs = 6000
/** How long a push may stay untaken before the next goes out all the same, in milliseconds. */
const takenMs = 1000

/** What is made ahead of the first proxy, if none comes for a moment: for so many milliseconds at a time, up to so many bytes. */
const preparation = { afterMs: 200, sliceMs: 5, bytes: 32 * 1024 * 1024 }

class PushQueue implements Behaviour<Message, WriterCommand | ResolverCommand> {
  readonly asks: Behaviour<Message>['asks']
  readonly objects = sourceObjects as Behaviour<Message>['objects']
  readonly #context: ActorContext<PushQueueConfig>
  readonly #planner: Planner
  readonly #debounce: Debounce
  readonly #edsDebounced: boolean
  readonly #writers = new Map<string, Peer<WriterCommand>>()
  /** Connections of each writer, with the numbers of their transports. */
  readonly #connections = new Map<string, Map<string, number>>()
  readonly #balancing = new Balance()
  readonly #balanceTimer: Timer
  /** Connections at the last look. */
  #lastTotal = 0
  readonly #unsynced: Set<string>
  #reasons = new Set<string>()
  #startedAt = 0
  #timer: Timer | undefined
  #sweepTimer: Timer | undefined
  /** When the timer is set to, in monotonic milliseconds. */
  #sweepAt: number | undefined
  #connectTimer: NodeJS.Immediate | undefined
  #prepareTimer: Timer | undefined
  #pushId = 0
  readonly #takers = new Takers()
  #takenTimer: Timer | undefined
  #ready = false
  /** Ledgers that writers were told since anything changed for them. */
  readonly #told = new Set<string>()
  #resolver: Peer<ResolverCommand> | undefined
  /** Key sets that were asked for, and those that nothing has been heard of. */
  #wantedKeys: ReadonlySet<string> = new Set()
  readonly #awaitedKeys = new Set<string>()
  #keysTimer: Timer | undefined
  #askTimer: NodeJS.Immediate | undefined
  readonly #metrics

  constructor(context: ActorContext<PushQueueConfig>) {
    const features = context.config.features as Features
    this.#context = context
    const settings = {
      features,
      names: meshNames(features.MESH_DOMAIN),
      domain: context.config.domain,
      ...context.config.secrets,
      plugins: context.config.plugins,
    }
    const countFault = faultMetrics(context.metrics)
    const faultLog = new FaultLog()
    const report = (fault: ResourceFault) => {
      countFault(fault)
      const line = faultLog.line(fault, monotonicMs())
      if (line !== undefined) context.log('model').warn(line, { objects: fault.objects.join(',') })
    }
    // Of two planners of this process, the later has the greater numbers: it makes fewer than one a microsecond.
    this.#planner = new Planner(settings, report, Math.floor(monotonicMs() * 1000))
    // In force until a mesh configuration is told: a file that cannot be read is not.
    this.#planner.state.setMesh(withTrustDomain(defaultMeshConfig(), context.config.trustDomain))
    this.#debounce = new Debounce({ after: features.PILOT_DEBOUNCE_AFTER, max: features.PILOT_DEBOUNCE_MAX })
    this.#edsDebounced = features.PILOT_ENABLE_EDS_DEBOUNCE
    this.#unsynced = new Set(context.config.sources)
    this.#metrics = pushQueueMetrics(context.metrics, this.#planner)
    this.#balanceTimer = every(balanceMs, () => this.#rest()).unref()
    this.asks = debugAnswers(
      this.#planner,
      {
        pushAgain: () => this.#pushAgain(),
      },
      (ledger) => this.#told.has(ledger),
    )
  }

  linked(peer: Peer<WriterCommand | ResolverCommand>): void {
    if (peer.kind === 'jwks-resolver') {
      this.#resolver = peer
      this.#resolver.tell({ type: 'ResolveKeySets', sources: [...this.#wantedKeys] }, 'sources')
      this.#askForKeys()
    }
    if (peer.kind !== 'xds-writer') return
    const writer: Peer<WriterCommand> = peer
    if (this.#ready) {
      this.#tellEverything(writer)
      writer.tell({ type: 'OpenListener' })
    }
    this.#writers.set(peer.name, writer)
    this.#connections.set(peer.name, new Map())
  }

  unlinked(peer: Peer): void {
    if (peer.kind === 'jwks-resolver') this.#resolver = undefined
    this.#writers.delete(peer.name)
    if (this.#takers.gone(peer.name)) this.#pushDone()
    for (const connection of this.#connections.get(peer.name)?.keys() ?? []) this.#planner.disconnect(`${peer.name}/${connection}`)
    this.#connections.delete(peer.name)
  }

  receive(message: Message, from: Peer): void {
    switch (message.type) {
      case 'ProxyConnected':
        this.#connections.get(from.name)?.set(message.connection, message.transport)
        this.#planner.connect(`${from.name}/${message.connection}`, message.node)
        this.#connectTimer ??= setImmediate(() => {
          this.#connectTimer = undefined
          if (this.#ready) this.#tellWriters(this.#info(['proxy']), this.#planner.takePush())
        })
        return
      case 'ProxyDisconnected':
        this.#connections.get(from.name)?.delete(message.connection)
        this.#planner.disconnect(`${from.name}/${message.connection}`)
        return
      case 'KeySetChanged':
        this.#awaitedKeys.delete(message.source)
        // Keys that could not be had replace none: those that are known stay until they are not wanted any more.
        if (message.keys !== undefined && this.#planner.state.setKeySet(message.source, message.keys)) this.#note(true, 'keys', monotonicMs())
        if (!this.#ready) this.#startWhenComplete()
        return
      case 'PushTaken':
        if (this.#takers.taken(from.name, message.push)) this.#pushDone()
        return
      case 'EverythingWanted':
        this.#context.log('ads').warn(`${from.name} refused a patch of a state that it does not have; it gets everything again`)
        if (this.#ready) this.#tellEverything(from as Peer<WriterCommand>)
        return
      default:
        this.#event(message)
    }
  }

  async drain(): Promise<void> {
    this.#balanceTimer.cancel()
    this.#timer?.cancel()
    this.#sweepTimer?.cancel()
    this.#takenTimer?.cancel()
    this.#prepareTimer?.cancel()
    this.#keysTimer?.cancel()
    clearImmediate(this.#askTimer)
    clearImmediate(this.#connectTimer)
  }

  /** A source has said everything; the first push waits for all of them. */
  synced({ name }: Peer): void {
    this.#unsynced.delete(name)
    this.#context.note(unsyncedNote, [...this.#unsynced])
    this.#askForKeys()
    this.#startWhenComplete()
  }

  #event(event: SourceEvent): void {
    const { state } = this.#planner
    switch (event.type) {
      case 'ConfigChanged':
        this.#metrics.inbound.inc({ type: 'config' })
        this.#note(state.setConfig(event.key, event.object), 'config', event.at)
        // Once for all events that came together: it looks at every object.
        if (event.key.startsWith('RequestAuthentication/') && this.#ready)
          this.#askTimer ??= setImmediate(() => {
            this.#askTimer = undefined
            this.#askForKeys()
          })
        return
      case 'ConfigUnusable':
        return this.#note(state.keepConfig(event.key, event.standIn), 'config', event.at)
      case 'ServiceChanged':
        this.#metrics.inbound.inc({ type: event.service ? 'svc' : 'svcdelete' })
        return this.#note(
          state.services.set(registryName(event.registry), event.key, event.service && { service: event.service, endpoints: event.endpoints }),
          'service',
          event.at,
        )
      case 'EndpointsChanged':
        this.#metrics.inbound.inc({ type: 'eds' })
        return this.#note(state.services.setEndpoints(registryName(event.registry), event.key, event.endpoints), 'endpoint', event.at)
      case 'MeshChanged':
        return this.#note(state.setMesh(event.mesh as MeshConfig), 'global', event.at)
      case 'NetworksChanged':
        return this.#note(state.setNetworks(event.networks as MeshNetworks), 'networks', event.at)
    }
  }

  /** Notes a change for the next push; one that alters nothing is counted as avoided. */
  #note(changed: boolean, reason: string, at: number): void {
    if (!changed) {
      this.#metrics.avoided.inc()
      return
    }
    this.#reasons.add(reason)
    if (this.#debounce.events === 0) this.#startedAt = at
    const { onlyEndpoints } = this.#planner.state
    this.#debounce.event(monotonicMs(), { urgent: onlyEndpoints && !this.#edsDebounced, onlyEndpoints })
    this.#arm()
  }

  /** The first push waits, for a moment, for the keys of issuers: without them proxies that were served before would refuse good tokens. */
  #startWhenComplete(): void {
    if (this.#ready || this.#unsynced.size > 0) return
    if (this.#awaitedKeys.size > 0) {
      this.#keysTimer ??= after(keysMs, () => {
        this.#awaitedKeys.clear()
        this.#startWhenComplete()
      })
      return
    }
    this.#keysTimer?.cancel()
    this.#push()
  }

  /** Tells the resolver which key sets are wanted now. */
  #askForKeys(): void {
    const wanted = this.#planner.state.keySources()
    if (!this.#resolver || (wanted.size === this.#wantedKeys.size && [...wanted].every((source) => this.#wantedKeys.has(source)))) return
    for (const source of wanted) if (!this.#wantedKeys.has(source)) this.#awaitedKeys.add(source)
    for (const source of this.#wantedKeys) if (!wanted.has(source)) this.#planner.state.setKeySet(source, undefined)
    this.#wantedKeys = wanted
    this.#resolver.tell({ type: 'ResolveKeySets', sources: [...wanted] }, 'sources')
  }

  #arm(): void {
    this.#timer?.cancel()
    if (!this.#ready) return
    const wait = this.#debounce.wait(monotonicMs())
    if (wait === undefined) return
    this.#timer = after(wait, () => (this.#debounce.wait(monotonicMs()) === 0 ? this.#push() : this.#arm()))
  }

  #push(): void {
    const { events } = this.#debounce
    this.#debounce.begin()
    const reasons = [...this.#reasons]
    this.#reasons = new Set()
    const changes = this.#planner.advance(monotonicMs())
    if (!this.#ready || !isNothing(changes)) {
      const published = this.#publish({ ...this.#info(reasons), startedAt: this.#startedAt || monotonicMs() })
      if (published) this.#metrics.triggered(reasons)
      else this.#metrics.avoided.inc(events)
    } else this.#metrics.avoided.inc(events)
    if (!this.#ready) this.#open()
    if (!this.#takers.waiting) this.#pushDone()
    this.#scheduleSweep()
  }

  #open(): void {
    this.#ready = true
    for (const writer of this.#writers.values()) writer.tell({ type: 'OpenListener' })
    this.#prepareTimer = after(preparation.afterMs, () => this.#prepare(this.#planner.prepare(), 0))
  }

  /** Uses the idle time before the first proxy comes, a slice at a time. */
  #prepare(steps: Iterator<number>, done: number): void {
    if (this.#planner.classCount > 0) return
    const until = monotonicMs() + preparation.sliceMs
    let bytes = done
    while (monotonicMs() < until) {
      const step = steps.next()
      if (step.done || bytes > preparation.bytes) return
      bytes += step.value
    }
    const { snapshot } = this.#planner
    this.#prepareTimer = after(0, () => {
      if (this.#planner.snapshot === snapshot) this.#prepare(steps, bytes)
    })
  }

  /** Sees to it that what is to go goes when its own time is over, however often anything else changes. */
  #scheduleSweep(): void {
    const due = this.#planner.generation.nextLeaving()
    if (due === undefined || (this.#sweepAt !== undefined && this.#sweepAt <= due)) return
    this.#sweepTimer?.cancel()
    this.#sweepAt = due
    this.#sweepTimer = after(due - monotonicMs(), () => {
      this.#sweepAt = undefined
      this.#planner.sweep(monotonicMs())
      this.#tellWriters(this.#info(['service']), this.#planner.takePush())
      this.#scheduleSweep()
    })
  }

  #info(reasons: readonly string[]): PushInfo {
    return { id: this.#pushId, startedAt: monotonicMs(), reasons, ledger: this.#planner.ledger }
  }

  /** Hands the changes to the writers and waits for them to be taken. Returns false when there is nothing in them. */
  #publish(info: PushInfo): boolean {
    const id = this.#pushId + 1
    const whole = !this.#ready
    if (!this.#tellWriters({ ...info, id }, { ...this.#planner.takePush(), whole })) return false
    this.#pushId = id
    this.#takers.begin(id, this.#writers.keys())
    this.#takenTimer?.cancel()
    this.#takenTimer = after(takenMs, () => {
      this.#takers.late()
      this.#pushDone()
    })
    return true
  }

  /** Tells every writer what differs for it. Returns false when there is nothing in it. */
  #tellWriters(push: PushInfo, content: PushContent): boolean {
    const { whole, ...lists } = content
    if (!whole && Object.values(lists).every((list) => list.length === 0)) return false
    this.#told.clear()
    for (const writer of this.#writers.values()) this.#tellWriter(writer, push, content)
    return true
  }

  #tellEverything(writer: Peer<WriterCommand>): void {
    const push = this.#info(['proxy'])
    this.#tellWriters(push, this.#planner.takePush())
    this.#tellWriter(writer, push, this.#planner.everything())
  }

  #tellWriter(writer: Peer<WriterCommand>, push: PushInfo, content: PushContent): void {
    this.#told.add(push.ledger)
    const assignments = content.assignments
      .filter((assignment) => assignment.connection.startsWith(`${writer.name}/`))
      .map(({ connection, classId }) => ({ connection: connection.slice(writer.name.length + 1), classId }))
    writer.tell({ type: 'PublishPush', push, ...content, assignments })
  }

  /** What is looked at from time to time: how connections are spread, and what nobody needs any more. */
  #rest(): void {
    this.#balance()
    if (this.#planner.collect(monotonicMs()) && this.#ready) this.#tellWriters(this.#info(['proxy']), this.#planner.takePush())
  }

  #balance(): void {
    const counts = new Map([...this.#connections].map(([writer, connections]) => [writer, new Set(connections.values()).size]))
    const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
    const settled = Math.abs(total - this.#lastTotal) <= total * unsettledShare
    this.#lastTotal = total
    if (!settled) return
    for (const [writer, count] of this.#balancing.moves(counts)) this.#writers.get(writer)?.tell({ type: 'ReleaseConnections', count }, 'release')
  }

  #pushDone(): void {
    this.#takenTimer?.cancel()
    this.#debounce.done()
    this.#arm()
  }

  #pushAgain(): number {
    for (const writer of this.#writers.values()) writer.tell({ type: 'PushAgain', push: this.#info(['debug']) })
    this.#metrics.triggered(['debug'])
    return this.#planner.proxies().length
  }
}

/** The push queue as an actor. */
export const actor: ActorDefinition<PushQueueConfig, Message, WriterCommand | ResolverCommand> = {
  kind: 'push-queue',
  start: (context) => new PushQueue(context),
}
