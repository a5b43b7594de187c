/**
 * The push queue: consumes events of sources (`SourceEvent`) and of connecting and disconnecting proxies (`WriterEvent`), debounces them,
 * generates the resources that changed, and emits pushes to the writers (`WriterCommand`), what it pushed (`PushEvent`, `ObjectsPublished`, `ObjectsWithdrawn`), and the names of the
 * mesh to all that verify identities (`MeshNamesChanged`). After a crash, the sources replay their state
 * to the new push queue and the writers announce their proxies again; meanwhile the writers keep serving what they have.
 */

import type { ConfigObject } from '../../../protocols/data.ts'
import type { InForceEvent } from '../../../protocols/messages/analysis.ts'
import type { PushQueueConfig } from '../../../protocols/messages/config.ts'
import type { PushEvent } from '../../../protocols/messages/distribution.ts'
import type { MeshNamesEvent } from '../../../protocols/messages/identity.ts'
import type { MeshSettingsEvent } from '../../../protocols/messages/injection.ts'
import { heardNote, syncedNote, unsyncedNote } from '../../../protocols/messages/notes.ts'
import type { ObjectsPublished, ObjectsWithdrawn } from '../../../protocols/messages/object-status.ts'
import type {
  KeySetEvent,
  PushInfo,
  ResolverCommand,
  SettingOrigin,
  SourceEvent,
  WriterCommand,
  WriterEvent,
} from '../../../protocols/messages/push.ts'
import { actorOfSource } from '../../../src/config/config-sources.ts'
import type { Features } from '../../../src/config/features.ts'
import { kindOfKey } from '../../../src/config/kinds.ts'
import { defaultMeshConfig, type MeshConfig, type MeshNetworks, withTrustDomain } from '../../../src/config/mesh-config.ts'
import { readOptOuts } from '../../../src/config/opt-outs.ts'
import { checkedPolicies, checkedPolicyLines } from '../../../src/config/policy-checks.ts'
import { EffectLog } from '../../../src/config/without-effect.ts'
import { count } from '../../../src/model/counts.ts'
import type { ResourceFault } from '../../../src/model/faults.ts'
import { meshNames } from '../../../src/names/mesh-names.ts'
import { IdentityShares } from '../../../src/push/classes/identity-shares.ts'
import { FaultLog } from '../../../src/push/fault-log.ts'
import { Planner } from '../../../src/push/planner.ts'
import { registryName } from '../../../src/registry/merged-services.ts'
import type { GivenSettings } from '../../../src/snapshot/given-settings.ts'
import { isNothing } from '../../../src/snapshot/snapshot.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../runtime/actor.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { Peer } from '../../runtime/link.ts'
import { every, type Timer } from '../../runtime/timers.ts'
import { sourceObjects, sourceOfActor } from '../events/source-events.ts'
import { AnalyzedMesh } from './analyzed-mesh.ts'
import { DeferredRemovals, Preparation, Retries } from './idle-work.ts'
import { MeshSettings, type SettledMesh } from './mesh-settings.ts'
import { ProcessingMetrics } from './processing-metrics.ts'
import { Proxies } from './proxies.ts'
import { PublishedObjects } from './published-objects.ts'
import { debugAnswers } from './push-queue-debug.ts'
import { faultMetrics, pushQueueMetrics } from './push-queue-metrics.ts'
import { type MadePush, PushReports } from './push-report.ts'
import { PushSchedule } from './push-schedule.ts'
import { ServedObjects } from './served-objects.ts'
import { UnselectedAtStart } from './unselected-at-start.ts'
import { WantedKeys } from './wanted-keys.ts'
import { WithdrawnObjects } from './withdrawn-objects.ts'
import { Writers } from './writers.ts'

type Message = SourceEvent | WriterEvent | KeySetEvent

/** Interval of the maintenance work (balancing connections, releasing unused state), in milliseconds. */
const maintenanceMs = 2000
/** Maximum memory for the nodes of the proxies of one identity, in bytes: about 13,000 ordinary proxies. */
const identityNodeBytes = 128 * 1024 * 1024
/** Number of identities on `/debug/identityz`. */
const shownShares = 100

type Sent = InForceEvent | WriterCommand | ResolverCommand | PushEvent | MeshNamesEvent | MeshSettingsEvent | ObjectsPublished | ObjectsWithdrawn

class PushQueue implements Behaviour<Message, Sent> {
  readonly asks: Behaviour<Message>['asks']
  readonly objects = sourceObjects as Behaviour<Message>['objects']
  readonly #context: ActorContext<PushQueueConfig>
  readonly #planner: Planner
  readonly #schedule: PushSchedule
  readonly #writers: Writers
  readonly #proxies: Proxies
  readonly #reports = new PushReports()
  readonly #unselected: UnselectedAtStart
  readonly #published: PublishedObjects
  readonly #withdrawn: WithdrawnObjects
  readonly #analyzed: AnalyzedMesh
  readonly #mesh: MeshSettings
  readonly #keys: WantedKeys
  readonly #preparation: Preparation
  readonly #removals: DeferredRemovals
  readonly #served: ServedObjects
  readonly #retries: Retries
  /** The sources that the first push waits for. */
  readonly #unsynced: Set<string>
  /** The sources of the mesh configuration, by the names of their actors, that have not finished a replay and that nothing waits for. */
  readonly #late = new Set<string>()
  /** The sources that have finished a replay. */
  readonly #synced = new Set<string>()
  /** The names of the actors of the sources of the mesh configuration, in their order. */
  #configured: readonly string[] = []
  readonly #maintenanceTimer: Timer
  #connectTimer: NodeJS.Immediate | undefined
  readonly #effects = new EffectLog()
  readonly #faults = new FaultLog()
  /** Whether the first push has been published. */
  #ready = false
  readonly #metrics
  readonly #processing: ProcessingMetrics

  constructor(context: ActorContext<PushQueueConfig>) {
    const features = context.config.features as Features
    const { PILOT_DEBOUNCE_AFTER, PILOT_DEBOUNCE_MAX, PILOT_ENABLE_EDS_DEBOUNCE } = features
    this.#context = context
    this.#planner = makePlanner(context, this.#faults)
    this.#unselected = new UnselectedAtStart(this.#planner, context.log('processing'))
    this.#processing = new ProcessingMetrics(context.metrics, this.#planner)
    const debounce = { after: PILOT_DEBOUNCE_AFTER, max: PILOT_DEBOUNCE_MAX }
    this.#schedule = new PushSchedule(debounce, PILOT_ENABLE_EDS_DEBOUNCE, () => this.#push(), this.#processing)
    this.#writers = new Writers(this.#planner.present, firstPush())
    this.#analyzed = new AnalyzedMesh(this.#planner.state)
    this.#published = new PublishedObjects(this.#planner.state.objects, () => this.#writers.lastPush, features.PILOT_ENABLE_STATUS)
    this.#withdrawn = new WithdrawnObjects(this.#planner)
    const shares = new IdentityShares({
      streams: features.PILOT_XDS_IDENTITY_STREAMS,
      classes: features.PILOT_XDS_IDENTITY_CLASSES,
      nodeBytes: identityNodeBytes,
    })
    this.#proxies = new Proxies(this.#planner, shares)
    this.#keys = new WantedKeys(this.#planner.state)
    this.#preparation = new Preparation(this.#planner)
    this.#removals = new DeferredRemovals(
      () => this.#planner.builder.nextLeaving(),
      () => {
        this.#planner.sweep(monotonicMs())
        this.#writers.send(this.#pushInfo(['service']), this.#planner.takePush())
      },
    )
    this.#retries = new Retries(() => this.#schedule.changed('retry', monotonicMs(), false))
    this.#unsynced = new Set(context.config.sources)
    const { meshes, networks } = this.#planner.state
    const { sources, settingSources = sources } = context.config
    this.#mesh = new MeshSettings({
      ...{ sources: settingSources, hasCluster: context.config.hasCluster !== false, inForce: () => this.#settledMesh() },
      ...{ note: (name, value) => context.note(name, value), warn: (line) => context.log('validation').warn(line) },
    })
    for (const settings of [meshes, networks]) settings.order(context.config.sources.map(sourceOfActor))
    this.#metrics = pushQueueMetrics(context.metrics, this.#planner)
    this.#maintenanceTimer = every(maintenanceMs, () => this.#maintain()).unref()
    this.#served = new ServedObjects(this.#planner.state, features.MESH_DOMAIN, () => this.#ready)
    const waitNoLonger = (name: string) => this.#waitNoLonger(name)
    const own = { waitNoLonger, pushAgain: () => this.#pushAgain(), shares: () => shares.largest(shownShares), ...this.#served.answers }
    this.asks = debugAnswers(this.#planner, own, (digest) => this.#writers.isLastSent(digest))
    this.#sourcesMayDiffer()
  }

  linked(peer: Peer<Sent>): void {
    this.#mesh.linked(peer)
    if (peer.kind === 'jwks-resolver') this.#keys.linked(peer)
    if (peer.kind === 'distribution') for (const part of [this.#reports, this.#withdrawn]) part.linked(peer)
    if (peer.kind === 'status-writer') this.#published.linked(peer)
    if (peer.kind === 'analyzer') this.#analyzed.linked(peer)
    if (peer.kind !== 'xds-writer') return
    this.#writers.add(peer)
    this.#proxies.addWriter(peer.name)
    if (!this.#ready) return
    this.#sendFullState(peer.name)
    peer.tell({ type: 'OpenListener' })
  }

  unlinked(peer: Peer): void {
    const { kind, name } = peer
    this.#mesh.unlinked(peer)
    if (kind === 'jwks-resolver') this.#keys.unlinked()
    if (kind === 'distribution') for (const part of [this.#reports, this.#withdrawn]) part.unlinked()
    if (kind === 'status-writer') this.#published.unlinked()
    if (kind === 'analyzer') this.#analyzed.unlinked()
    if (kind !== 'xds-writer') return
    this.#writers.remove(name)
    this.#schedule.gone(name)
    this.#proxies.removeWriter(name)
  }

  receive(message: Message, from: Peer): void {
    switch (message.type) {
      case 'ProxyConnected':
        this.#connect(message, from as Peer<WriterCommand>)
        this.#unselected.connected(message.node)
        this.#sendLater()
        return
      case 'ProxyDisconnected':
        this.#writers.disconnected(from.name, message.connection)
        this.#withdrawn.changed()
        return this.#proxies.disconnected(from.name, message.connection)
      case 'ResourcesRefused':
        this.#withdrawn.changed()
        if (this.#proxies.refused(from.name, message)) this.#sendLater()
        return this.#reports.refused(from.name, message, this.#proxies.blamed(from.name, message.connection))
      case 'ResourcesAccepted':
        this.#withdrawn.changed()
        if (this.#proxies.accepted(from.name, message)) this.#sendLater()
        return
      case 'KeySetChanged':
      case 'KeySetDropped':
        return this.#takeKeys(message)
      case 'PushApplied':
        return this.#schedule.answered(from.name, message.push)
      case 'FullStateRequested':
        this.#context
          .log('ads')
          .warn(`${from.name} could not apply an update, since it lacks the state that the update changes; the complete state is sent to it again`)
        if (this.#ready) this.#sendFullState(from.name)
        return
      default:
        this.#apply(message, from)
    }
  }

  #takeKeys(event: KeySetEvent): void {
    const { source } = event
    const hasChanged = event.type === 'KeySetDropped' ? this.#keys.dropped(source) : this.#keys.received(source, event.keys)
    if (hasChanged) this.#record(true, 'keys', monotonicMs())
    if (!this.#ready) this.#startWhenComplete()
  }

  /** Sends the writers what was generated for proxies: one message for all proxies that connected within one turn of the event loop. */
  #sendLater(): void {
    this.#connectTimer ??= setImmediate(() => {
      this.#connectTimer = undefined
      if (!this.#ready) return
      if (this.#writers.send(this.#pushInfo(['proxy']), this.#planner.takePush())) this.#metrics.triggered(['proxy'])
      if (this.#planner.isBehind) this.#retries.needed()
    })
  }

  #connect(message: Extract<Message, { type: 'ProxyConnected' }>, writer: Peer<WriterCommand>): void {
    const reason = this.#proxies.connected(writer.name, message)
    if (reason !== undefined) writer.tell({ type: 'RefuseProxy', connection: message.connection, reason })
  }

  async drain(): Promise<void> {
    this.#maintenanceTimer.cancel()
    clearImmediate(this.#connectTimer)
    for (const part of [
      this.#schedule,
      this.#reports,
      this.#withdrawn,
      this.#keys,
      this.#preparation,
      this.#removals,
      this.#retries,
      this.#unselected,
    ])
      part.close()
  }

  /** A source has finished its first replay. The first push waits for all sources. */
  synced({ name }: Peer): void {
    this.#mesh.heard(name)
    this.#synced.add(name)
    this.#waitNoLonger(name)
  }

  /** A source was removed for good, so that the first push does not wait for it. */
  forgotten({ name }: Peer): void {
    this.#synced.delete(name)
    // Objects that it had and could not use are not among those that were withdrawn before.
    this.#decided(this.#planner.state.withdrawSource(name))
    this.#waitNoLonger(name)
  }

  #settledMesh(): SettledMesh {
    const mesh = this.#planner.state.meshes.inForce.value
    return { ...mesh, configSources: mesh.configSources ?? [...(this.#context.config.configSources ?? [])] }
  }

  /** The mesh configuration may name other sources: the first push waits for those that it names before, and no push for later ones. */
  #sourcesMayDiffer(): void {
    const { configSources } = this.#settledMesh()
    const before = this.#configured
    this.#configured = configSources.map(actorOfSource)
    const { syncedBefore } = this.#context.config
    for (const name of this.#configured)
      if (!before.includes(name) && !this.#synced.has(name))
        (!this.#ready && (syncedBefore?.includes(name) ?? true) ? this.#unsynced : this.#late).add(name)
    for (const name of before) if (!this.#configured.includes(name)) this.#waitNoLonger(name)
    this.#decided(this.#planner.state.setSources([...this.#context.config.sources, ...this.#configured]))
    this.#noteSources()
  }

  #noteSources(): void {
    this.#context.note(unsyncedNote, [...this.#unsynced, ...this.#late])
    this.#context.note(heardNote, [...this.#synced])
    if (this.#ready) this.#context.note(syncedNote, [...this.#synced])
  }

  #waitNoLonger(name: string): void {
    this.#unsynced.delete(name)
    this.#late.delete(name)
    this.#noteSources()
    this.#keys.subscribe()
    this.#startWhenComplete()
  }

  #apply(event: SourceEvent, { name: source }: Peer): void {
    const { state } = this.#planner
    this.#processing.event()
    switch (event.type) {
      case 'ConfigChanged':
        this.#metrics.inbound.inc({ type: 'config' })
        return this.#setConfig(event, source)
      case 'ConfigUnusable': {
        const hasChanged = state.keepConfig(event.key, event.standIn, source)
        this.#served.changed(event.key)
        if (hasChanged) this.#reports.object(event.key, state.object(event.key), state.object(event.key))
        if (hasChanged) this.#published.changed(event.key)
        this.#analyzed.changed(event.key)
        return this.#record(hasChanged, reasonFor(event.key), event.at)
      }
      case 'ServiceChanged':
        this.#metrics.inbound.inc({ type: event.service ? 'svc' : 'svcdelete' })
        return this.#recordService(
          state.services.set(registryName(event.registry), event.key, event.service && { service: event.service, slices: event.slices }),
          'service',
          event,
        )
      case 'EndpointsChanged':
        this.#metrics.inbound.inc({ type: 'eds' })
        return this.#recordService(state.services.setSlice(registryName(event.registry), event.key, event.part, event.slice), 'endpoint', event)
      case 'MeshChanged':
        this.#setSetting(state.meshes, event, this.#withFlags(event.mesh as MeshConfig | undefined), 'global')
        this.#mesh.heard(source)
        this.#mesh.changed()
        return this.#sourcesMayDiffer()
      case 'NetworksChanged':
        return this.#setSetting(state.networks, event, event.networks as MeshNetworks | undefined, 'networks')
      case 'SettingUnusable':
        return event.setting === 'mesh' ? this.#mesh.heard(source) : undefined
    }
  }

  #recordService(changed: boolean, reason: string, { registry, key, at }: Extract<Message, { type: 'ServiceChanged' | 'EndpointsChanged' }>): void {
    if (changed) this.#reports.service(registry, key)
    this.#record(changed, reason, at)
  }

  /** A mesh configuration of any source with what the flags of the command overrule. */
  #withFlags(mesh: MeshConfig | undefined): MeshConfig | undefined {
    return mesh && withTrustDomain(mesh, this.#context.config.trustDomain)
  }

  /** Sets or withdraws the mesh configuration or the networks of a source, and says so if another source's count. */
  #setSetting<T>(settings: GivenSettings<T>, { source, place, at }: SettingOrigin & { at: number }, value: T | undefined, reason: string): void {
    const before = settings.inForce
    this.#record(this.#planner.state.settingsMayDiffer(settings.set(source, place, value)), reason, at)
    const { inForce, overruled } = settings
    const what = reason === 'global' ? 'mesh configuration' : 'networks'
    if (inForce.source !== before.source || inForce.place !== before.place)
      this.#context.log('default').info(`${what} in force: ${inForce.source === '' ? 'the default' : `that of ${inForce.source} (${inForce.place})`}`)
    if (overruled.some((given) => given.source === source))
      this.#context.log('default').warn(`${what} of ${source} (${place}) not in force: those of ${inForce.source} (${inForce.place}) come first`)
  }

  #setConfig({ key, object, at }: Extract<Message, { type: 'ConfigChanged' }>, source: string): void {
    const { state } = this.#planner
    const before = state.object(key)
    const hasChanged = state.setConfig(key, object, source)
    this.#served.changed(key)
    this.#published.received(key, object, source, hasChanged)
    this.#analyzed.changed(key)
    if (hasChanged) {
      this.#faults.changed(key)
      this.#reports.object(key, state.object(key), before)
    }
    this.#record(hasChanged, reasonFor(key), at)
    this.#warnWithoutEffect(key, state.objects.get(key))
    if (this.#ready) this.#keys.subscribeLater()
  }

  /** Records the objects of which another definition counts, because the sources or their order changed. */
  #decided(keys: readonly string[]): void {
    this.#served.allMayDiffer()
    for (const key of keys) {
      const now = this.#planner.state.objects.get(key)
      this.#faults.changed(key)
      this.#published.changed(key)
      this.#analyzed.changed(key)
      this.#reports.object(key, now, now)
      this.#warnWithoutEffect(key, now)
    }
    if (keys.length === 0) return
    this.#record(true, 'config', monotonicMs())
    if (this.#ready) this.#keys.subscribeLater()
  }

  /** Records a change for the next push. An event that changed nothing is counted as an avoided push. */
  #record(changed: boolean, reason: string, at: number): void {
    if (changed) this.#schedule.changed(reason, at, this.#planner.state.onlyEndpoints)
    else this.#metrics.avoided.inc()
  }

  /** Publishes the first push when all sources are synced; waits a limited time for key sets. */
  #startWhenComplete(): void {
    if (this.#ready || this.#unsynced.size > 0 || this.#keys.delaysFirstPush(() => this.#startWhenComplete())) return
    this.#push()
  }

  #push(): void {
    const began = monotonicMs()
    const { reasons, startedAt, events } = this.#schedule.begin()
    let made: MadePush | undefined
    const wasBehind = this.#planner.isBehind
    const changes = this.#planner.advance(monotonicMs())
    this.#retries.ended(!this.#planner.isBehind)
    if (!this.#ready || wasBehind || !isNothing(changes)) {
      const info = { startedAt, reasons, digest: this.#planner.digest }
      const content = this.#planner.takePush()
      if (this.#writers.publish(info, { ...content, whole: !this.#ready })) {
        const publishedAt = monotonicMs()
        const typeOf = (group: string) => this.#planner.builder.typeOf(group)
        made = { id: this.#writers.lastPush, startedAt, publishedAt, makingMs: publishedAt - began, reasons, groups: content.groups, typeOf }
        this.#metrics.triggered(reasons)
        this.#processing.published(events)
        this.#context
          .log('processing')
          .debug(
            `push ${this.#writers.lastPush}: ${count(events, 'change')} (${reasons.join(', ')}), ${Math.round(monotonicMs() - startedAt)} ms after the first`,
          )
      } else this.#metrics.avoided.inc(events)
    } else this.#metrics.avoided.inc(events)
    this.#reports.published(made, (keys) => this.#planner.selectingNone(keys))
    this.#published.published()
    this.#withdrawn.changed()
    this.#analyzed.published(changes)
    if (!this.#ready) this.#becomeReady()
    this.#schedule.sent(this.#writers.lastPush, made ? this.#writers.names : [])
    this.#removals.schedule()
  }

  #becomeReady(): void {
    this.#ready = true
    this.#noteSources()
    this.#writers.openListeners()
    this.#preparation.start()
    // The messages to the writers are sent first.
    setImmediate(() => this.#logChecks())
  }

  /** Logs how many objects have no effect, and which are concerned by stricter checks of policies. */
  #logChecks(): void {
    const { state, snapshot } = this.#planner
    const summary = this.#effects.summary()
    if (summary !== undefined) this.#context.log('validation').warn(summary)
    // A check in force is a note for those who upgrade. One that is disabled is warned of at the start (`optOutWarnings`).
    for (const line of checkedPolicyLines(checkedPolicies(state.objects.all(), snapshot.settings.optOuts)))
      this.#context.log('authorization').info(line)
  }

  /** Warns about the fields of an object that have no effect, once per object and field, where the analyzer does not. */
  #warnWithoutEffect(key: string, object: ConfigObject | undefined): void {
    const lines = this.#effects.lines(key, object, this.#planner.snapshot.settings.names.domain)
    if ((this.#context.config.features as Features).PILOT_ENABLE_ANALYSIS) return
    for (const line of lines) this.#context.log('validation').warn(line)
  }

  #pushInfo(reasons: readonly string[]): PushInfo {
    return { id: this.#writers.lastPush, startedAt: monotonicMs(), reasons, digest: this.#planner.digest }
  }

  #sendFullState(writer: string): void {
    const push = this.#pushInfo(['proxy'])
    this.#writers.send(push, this.#planner.takePush())
    this.#writers.sendFullState(writer, push, this.#planner.assignments())
  }

  #maintain(): void {
    this.#writers.closeConnections(this.#proxies.surplus())
    this.#planner.collect(monotonicMs())
    // Needed without new changes, too: a class may have lost its last connection at one writer only.
    if (this.#ready) this.#writers.send(this.#pushInfo(['proxy']), this.#planner.takePush())
  }

  #pushAgain(): number {
    this.#writers.pushAgain(this.#pushInfo(['debug']))
    this.#metrics.triggered(['debug'])
    return this.#planner.proxies().length
  }
}

/** Why an object that changed leads to a push: a pod concerns its proxy, a node its endpoints. */
function reasonFor(key: string): string {
  const kind = kindOfKey(key)
  return kind === 'Pod' ? 'proxy' : kind === 'Node' ? 'endpoint' : 'config'
}

/**
 * The number before the first push: milliseconds of the monotonic clock, so that a push queue that replaces a crashed one uses greater numbers.
 * A push takes more than a millisecond on average.
 */
const firstPush = (): number => Math.floor(monotonicMs())

/** Creates the planner, with faults counted and logged. */
function makePlanner({ config, log, metrics }: ActorContext<PushQueueConfig>, faultLog: FaultLog): Planner {
  const features = config.features as Features
  const { domain, secrets, plugins, trustDomain } = config
  const countFault = faultMetrics(metrics)
  let planner: Planner | undefined
  const placeOf = (key: string) => {
    const { place, source } = planner?.state.reference(key) ?? { place: '', source: '' }
    return place === '' ? undefined : `${place} of ${source}`
  }
  const report = (fault: ResourceFault) => {
    countFault(fault)
    const line = faultLog.line(fault, monotonicMs(), placeOf)
    if (line !== undefined) log('model')[fault.isLoss ? 'info' : 'warn'](line, fault.objects.length > 0 ? { objects: fault.objects.join(',') } : {})
  }
  const optOuts = readOptOuts(features.MESH_POLICY_OPT_OUTS)
  const settings = { features, names: meshNames(features.MESH_DOMAIN), domain, ...secrets, plugins, optOuts }
  // Slabs and updates are numbered from the current time on, so that a planner that replaces a crashed one uses greater numbers: it uses
  // fewer than one number per microsecond.
  planner = new Planner(settings, report, Math.floor(monotonicMs() * 1000))
  // The default mesh configuration is in force until `MeshChanged` arrives, and stays in force while the mesh file cannot be read.
  planner.state.setMesh(withTrustDomain(defaultMeshConfig(), trustDomain))
  planner.state.setSources(config.sources)
  return planner
}

/** The actor definition of the push queue. */
export const actor: ActorDefinition<PushQueueConfig, Message, Sent> = {
  kind: 'push-queue',
  start: (context) => new PushQueue(context),
}
