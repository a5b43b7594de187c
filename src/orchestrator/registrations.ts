/**
 * The registration of workloads by one replica: which WorkloadEntry is to be created, taken over, marked or deleted next, and what its status has to
 * say (docs/registration.md, R1 to R13). One call of an entry is under way at a time, and what is written is worked out when it is its turn. Whether
 * a time has passed is measured from when this replica saw a state: the times that are written into entries are not read.
 */
import type {
  EntryOrder,
  EntryOutcome,
  PresenceAnswer,
  RegisteringWorkload,
  RegistrarConfig,
  ReportedHealth,
  WorkloadEntryData,
  WorkloadGroupData,
} from '../../protocols/messages/registration.ts'
import { type Pauses, pauseAfter } from '../model/back-off.ts'
import { status } from '../model/status-codes.ts'
import { DueEntries } from './due-entries.ts'
import { EntryCounts } from './entry-counts.ts'
import { LiveReplicas, presenceTimes } from './live-replicas.ts'
import { disconnection, entryName, healthPatch, newEntry, saysHealth, takeOver } from './registered-entry.ts'
import { accountOf, faultOf, otherOwner, quoted, sharedBy, sharedElsewhere } from './registration-faults.ts'
import { RequestBudget } from './request-budget.ts'
import { isNewer } from './resource-versions.ts'

/**
 * Pauses after failures of all calls, of those of one entry, after conflicts, which the next state of the entry ends, and after the server has
 * refused to create an entry: its workload connects again, perhaps with other labels.
 */
const pauses: { readonly [Of in 'shared' | 'entry' | 'conflict' | 'refusal']: Pauses } = {
  shared: { firstMs: 500, longestMs: 15_000, jitter: 0.2 },
  entry: { firstMs: 1000, longestMs: 300_000, jitter: 0.2 },
  conflict: { firstMs: 100, longestMs: 5000, jitter: 0.5 },
  refusal: { firstMs: 1000, longestMs: 15_000, jitter: 0.2 },
}
/** The number of entries that the server has refused to create of which that is kept. */
const mostRefusals = 1000
/** Calls a second, and at once. */
const rate = { perSecond: 20, burst: 20 }
/**
 * How long a workload may be away before its entry is marked, how much later a replica deletes an entry that another one has marked, and the least time between two writes of
 * the health of an entry, in milliseconds. After the API server was away nothing is deleted for the grace period, at least for `outageMs`, which is longer than a replica waits
 * before it tries to take an entry over again; a list of Leases that comes more than `listMs` after the one before tells of such a time. The entry of a dead replica is kept for
 * `orphanMs` at least: its agent notices after 40 s that a replica has stopped without a word (docs/agent.md, X8), and its replica was dead after 20 s. For each entry that the
 * dead replica kept that is `orphanEachMs` longer: another one may be taking over all of them, with other calls between.
 */
const times = {
  ...{ awayMs: 1000, othersMs: 2000, healthMs: 1000, outageMs: 30_000, listMs: presenceTimes.everyMs + 3000 },
  ...{ orphanMs: 60_000, orphanEachMs: 2000 / rate.perSecond },
  /** A connection that has ended without a word is noticed before. */
  elsewhereMs: 60_000,
}
/** How long after it has connected a workload with a probe may report nothing before its entry is no longer healthy: agents report at once what they know. */
const silentMs = 3000
const healthy: ReportedHealth = { isHealthy: true, message: '' }
const silent: ReportedHealth = { isHealthy: false, message: 'the workload has connected again and has not reported that it is healthy' }
/** After so many other calls in a row, one that writes health is next, where one waits. */
const othersInARow = 3

/** What a call does. */
export type EntryChange = 'create' | 'take over' | 'mark' | 'delete' | 'health'

/** A call that is to be made. */
export interface DueCall {
  readonly id: string
  readonly change: EntryChange
  readonly order: EntryOrder
}

/** A connection whose stream ends, because its workload cannot be registered. */
export interface RefusedWorkload {
  readonly writer: string
  readonly connection: string
  readonly code: number
  readonly reason: string
}

interface Connected {
  readonly writer: string
  readonly connection: string
  readonly workload: RegisteringWorkload
  readonly since: number
  /** What was reported last. */
  health: ReportedHealth | undefined
  /** The entry of its workload, once it is known that there may be one. */
  entry: string | undefined
}

/** An entry that exists, or is to exist. */
interface Entry {
  readonly id: string
  /** As it was last seen; undefined: there is none. */
  seen: WorkloadEntryData | undefined
  /** Since when it is kept as it is: by this replica or another, with its workload connected or not. */
  since: number
  readonly connections: Set<Connected>
  /** When the last connection here ended. */
  leftAt: number
  /** Whether a workload has connected here since the entry was last taken over: then it is taken over from whoever keeps it. */
  isClaimed: boolean
  healthFrom: number
  isUnderWay: boolean
  notBefore: number
  failures: number
  isConflicting: boolean
}

/** The connection whose workload counts: of several with one entry the one that came last. */
const lastOf = ({ connections }: Entry): Connected | undefined => [...connections].at(-1)

/** The server does not create an entry as it is. */
interface Refusal {
  readonly reason: string
  readonly failures: number
  /** Until when it is not asked again. */
  readonly until: number
}

/** What is to be done with an entry, and from when on. */
interface Wanted {
  readonly change: EntryChange
  readonly at: number
}

/** The settings of registrations. */
export type RegistrationSettings = Omit<RegistrarConfig, 'writers'>

/** The registrations of one replica. Times are monotonic milliseconds. */
export class Registrations {
  readonly replicas: LiveReplicas
  readonly #settings: RegistrationSettings
  readonly #budget: RequestBudget
  /** Groups by namespace and name, in each spelling of the API group, the own one first. */
  readonly #groups = new Map<string, Map<string, WorkloadGroupData>>()
  readonly #groupKeys = new Map<string, string>()
  readonly #entries = new Map<string, Entry>()
  readonly #connections = new Map<string, Connected>()
  readonly #refused: RefusedWorkload[] = []
  readonly #refusals = new Map<string, Refusal>()
  /** Entries that are to be looked at, and those of which only the health is to be written. */
  readonly #ready = new DueEntries()
  readonly #unhealthy = new DueEntries()
  readonly #waiting = new Map<string, number>()
  #wakeAt = Number.POSITIVE_INFINITY
  #others = 0
  #blocked: { readonly failures: number; readonly until: number } = { failures: 0, until: Number.NEGATIVE_INFINITY }
  /** Whether all groups and entries were told, and all connections. */
  #knowsObjects = false
  #knowsConnections = false
  /** Whether this replica has a Lease: without one, others would take it for dead. */
  #isPresent = false
  /** When the Leases were last listed; at first, the start. */
  #listedAt: number
  /** Since when the API server answers without a break, as far as this replica knows: at first since its start, of before it knows nothing. */
  #answersSince: number
  /** The numbers of entries by their groups (`<namespace>/<name>`), and by the replicas that keep them. */
  readonly #byGroup = new EntryCounts()
  readonly #byKeeper = new EntryCounts()
  /** What is said of entries that several machines share, by entry. */
  readonly #shared = new Map<string, string>()
  #elsewhere: readonly string[] = []

  constructor(settings: RegistrationSettings, now: number) {
    this.#settings = settings
    this.replicas = new LiveReplicas(settings.replica)
    this.#budget = new RequestBudget(rate.perSecond, rate.burst, now)
    this.#listedAt = now
    this.#answersSince = now
  }

  /** The number of workloads that are connected here, of entries that this replica keeps, and of those that wait for a call. */
  get counts(): { readonly connected: number; readonly kept: number; readonly waiting: number } {
    const kept = [...this.#entries.values()].filter(({ seen }) => seen?.controller === this.#settings.replica).length
    return { connected: this.#connections.size, kept, waiting: this.#ready.size + this.#unhealthy.size + this.#waiting.size }
  }

  /** The replicas that entries name. */
  get keepers(): Set<string> {
    const { replica } = this.#settings
    const names = [...this.#entries.values()].map(({ seen }) => seen?.controller ?? '')
    return new Set(names.filter((name) => name !== '' && name !== replica))
  }

  /** What is said of the entries that several machines share. */
  get shared(): readonly string[] {
    return [...this.#shared.values(), ...this.#elsewhere]
  }

  /** Returns the connections that are refused since the last call. */
  takeRefused(): readonly RefusedWorkload[] {
    return this.#refused.splice(0)
  }

  /** Sets a group as the server has it; undefined: it is gone. */
  setGroup(id: string, workloadGroup: WorkloadGroupData | undefined, now: number): void {
    const key = workloadGroup ? `${workloadGroup.namespace}/${workloadGroup.name}` : (this.#groupKeys.get(id) ?? '')
    const spellings = this.#groups.get(key) ?? new Map<string, WorkloadGroupData>()
    if (workloadGroup) {
      this.#groupKeys.set(id, key)
      spellings.set(id, workloadGroup)
      this.#groups.set(key, spellings)
    } else {
      this.#groupKeys.delete(id)
      spellings.delete(id)
      if (spellings.size === 0) this.#groups.delete(key)
    }
    // With the group as it is now, entries may be permitted.
    this.#refusals.clear()
    this.#judgeAll(now)
    // An entry that was deleted with its group is made again with the next one of that name.
    for (const { entry, workload } of this.#connections.values())
      if (entry !== undefined && `${workload.namespace}/${workload.workloadGroup}` === key) this.#look(entry)
  }

  /** Sets an entry as the server has it; undefined: it is gone. */
  setEntry(id: string, seen: WorkloadEntryData | undefined, now: number): void {
    const known = this.#entries.get(id)
    const isOlder =
      seen &&
      known?.seen?.uid === seen.uid &&
      known.seen.resourceVersion !== seen.resourceVersion &&
      isNewer(known.seen.resourceVersion, seen.resourceVersion)
    if (isOlder || (!seen && !known)) return
    this.#see(known ?? this.#added(id, now), seen, now)
  }

  /** All groups and entries have been told. */
  knowsObjects(now: number): void {
    if (this.#knowsObjects) return
    this.#knowsObjects = true
    this.#judgeAll(now)
    for (const id of this.#entries.keys()) this.#look(id)
  }

  /** All writers have told of their connections. */
  knowsConnections(): void {
    if (this.#knowsConnections) return
    this.#knowsConnections = true
    for (const id of this.#entries.keys()) this.#look(id)
  }

  /** A workload is connected. What is known already is not new. */
  connected(writer: string, connection: string, workload: RegisteringWorkload, health: ReportedHealth | undefined, now: number): void {
    const key = `${writer}|${connection}`
    if (this.#connections.has(key)) return
    const connected: Connected = { writer, connection, workload, since: now, health, entry: undefined }
    this.#connections.set(key, connected)
    if (this.#knowsObjects) this.#judge(connected, now)
  }

  /** A connection has ended. */
  disconnected(writer: string, connection: string, now: number): void {
    const connected = this.#connections.get(`${writer}|${connection}`)
    if (connected) this.#leave(connected, now)
  }

  /** A writer has ended, and with it its connections. */
  ended(writer: string, now: number): void {
    for (const connected of [...this.#connections.values()]) if (connected.writer === writer) this.#leave(connected, now)
  }

  /** The agent of a connection reports the health of its workload. */
  reported(writer: string, connection: string, health: ReportedHealth): void {
    const connected = this.#connections.get(`${writer}|${connection}`)
    if (!connected) return
    connected.health = health
    if (connected.entry !== undefined) this.#look(connected.entry)
  }

  /** The Leases of all replicas were listed; see {@link LiveReplicas.listed}. */
  listed(leases: PresenceAnswer, keepers: Iterable<string>, askedAt: number, now: number): void {
    this.#isPresent = true
    if (askedAt - this.#listedAt > times.listMs) this.#answersSince = now
    this.#listedAt = now
    if (this.replicas.listed(leases, keepers, askedAt, now)) for (const id of this.#entries.keys()) this.#look(id)
    this.#elsewhere = [...this.#connections.values()].flatMap((connected) => this.#sharedElsewhere(connected, now) ?? [])
  }

  /** The Leases could not be renewed or listed. */
  unlisted(now: number): void {
    this.#answersSince = now
  }

  /** Returns the call that is next, and counts it as under way; undefined: none is due. `at`: the wall-clock time, for people. */
  next(now: number, at: string): DueCall | undefined {
    if (!this.#knowsObjects || !this.#isPresent || this.#blocked.until > now) return undefined
    this.#wake(now)
    if (this.#ready.size + this.#unhealthy.size === 0 || this.#budget.waitMs(now) > 0) return undefined
    const health = this.#others >= othersInARow ? this.#dueOf(this.#unhealthy, now, at, true) : undefined
    const due = health ?? this.#dueOf(this.#ready, now, at, false) ?? this.#dueOf(this.#unhealthy, now, at, true)
    if (!due) return undefined
    this.#others = due.change === 'health' ? 0 : this.#others + 1
    this.#budget.take(now)
    return due
  }

  /** The milliseconds until a call may be due, if nothing changes; undefined: nothing waits. */
  waitMs(now: number): number | undefined {
    const size = this.#ready.size + this.#unhealthy.size
    if (!this.#knowsObjects || !this.#isPresent || size + this.#waiting.size === 0) return undefined
    const first = size > 0 ? now + this.#budget.waitMs(now) : this.#wakeAt
    return Math.max(0, first - now, this.#blocked.until - now)
  }

  /** What came of a call. `chance`: a random number from 0 to 1. */
  answered({ id, change }: DueCall, outcome: EntryOutcome, now: number, chance: number): void {
    const entry = this.#entries.get(id)
    if (!entry) return
    entry.isUnderWay = false
    if (outcome.outcome === 'failed' && outcome.concerns === 'all') this.#block(now, chance)
    else this.#blocked = { failures: 0, until: Number.NEGATIVE_INFINITY }
    switch (outcome.outcome) {
      case 'done':
        entry.failures = 0
        if (change === 'create' || change === 'take over') entry.isClaimed = false
        if (change === 'create') this.#refusals.delete(id)
        if (change === 'health') entry.healthFrom = now + times.healthMs
        return outcome.entry ? this.setEntry(id, outcome.entry, now) : this.#see(entry, undefined, now)
      case 'gone':
        return this.#see(entry, undefined, now)
      case 'conflict':
        entry.isConflicting = true
        entry.notBefore = now + pauseAfter(++entry.failures, pauses.conflict, chance)
        break
      case 'failed':
        if (outcome.concerns === 'object') {
          entry.notBefore = now + pauseAfter(++entry.failures, pauses.entry, chance)
          if (change === 'create') this.#notCreated(entry, outcome.reason, now, chance)
        }
    }
    this.#look(id)
  }

  #added(id: string, now: number): Entry {
    const entry: Entry = {
      ...{ id, seen: undefined, since: now, connections: new Set<Connected>(), leftAt: now, isClaimed: false },
      ...{ healthFrom: now, isUnderWay: false, notBefore: now, failures: 0, isConflicting: false },
    }
    this.#entries.set(id, entry)
    return entry
  }

  #see(entry: Entry, seen: WorkloadEntryData | undefined, now: number): void {
    const state = (of: WorkloadEntryData | undefined) => of && [of.uid, of.controller, of.connectedAt, of.disconnectedAt].join('|')
    if (state(seen) !== state(entry.seen)) entry.since = now
    entry.seen = seen
    this.#count(entry)
    // What stood in the way is over.
    if (entry.isConflicting) Object.assign(entry, { isConflicting: false, notBefore: now })
    if (seen && entry.connections.size > 0) this.#checkOwner(entry, seen, now)
    this.#look(entry.id)
  }

  /** Somebody else has made an object of the name of the entry. */
  #checkOwner(entry: Entry, seen: WorkloadEntryData, now: number): void {
    for (const connected of [...entry.connections]) {
      const reason = otherOwner(seen, connected.workload.workloadGroup)
      if (reason !== undefined) this.#refuse(connected, status.failedPrecondition, reason, now)
    }
  }

  #judgeAll(now: number): void {
    if (!this.#knowsObjects) return
    for (const connected of [...this.#connections.values()]) if (connected.entry === undefined) this.#judge(connected, now)
  }

  /** Finds the entry of a workload, or refuses its connection. */
  #judge(connected: Connected, now: number): void {
    const { workload } = connected
    const workloadGroup = this.#groupOf(workload)
    const name = entryName(workload)
    const fault = faultOf(workload, workloadGroup, name)
    if (fault || !workloadGroup || name === undefined) return this.#refuse(connected, fault?.code ?? status.internal, fault?.reason ?? '', now)
    const id = `workloadentries.${workloadGroup.group} ${workload.namespace}/${name}`
    const refusal = this.#entries.has(id) ? undefined : this.#refusals.get(id)
    if (refusal && refusal.until > now) return this.#refuse(connected, status.failedPrecondition, refusal.reason, now)
    const full = this.#entries.has(id) ? undefined : this.#fullness(workloadGroup)
    if (full !== undefined) return this.#refuse(connected, status.resourceExhausted, full, now)
    const entry = this.#entries.get(id) ?? this.#added(id, now)
    connected.entry = id
    entry.connections.add(connected)
    this.#count(entry)
    entry.isClaimed = true
    this.#noteShared(entry)
    if (entry.seen) this.#checkOwner(entry, entry.seen, now)
    this.#look(id)
  }

  /** Counts an entry as one of its group, and of its replica. */
  #count({ id, seen, connections }: Entry): void {
    const [connected] = connections
    const group = seen ? seen.registeredFor : connected?.workload.workloadGroup
    const namespace = seen?.namespace ?? connected?.workload.namespace
    this.#byGroup.set(id, group ? `${namespace}/${group}` : undefined)
    this.#byKeeper.set(id, seen?.disconnectedAt === '' ? seen.controller : undefined)
  }

  /** Why the account of a group may register no more entries; undefined: it may. */
  #fullness(workloadGroup: WorkloadGroupData): string | undefined {
    const { mostEntries } = this.#settings
    const { namespace } = workloadGroup
    const account = accountOf(workloadGroup)
    let entries = 0
    for (const [key, size] of this.#byGroup.numbers) {
      if (!key.startsWith(`${namespace}/`)) continue
      const [group] = this.#groups.get(key)?.values() ?? []
      if (group && accountOf(group) === account) entries += size
    }
    if (mostEntries === 0 || entries < mostEntries) return undefined
    return `the workload cannot be registered: service account ${quoted(account)} of namespace ${quoted(namespace)} has ${entries} WorkloadEntries, and may have ${mostEntries} (PILOT_WORKLOAD_ENTRY_MAX_PER_ACCOUNT); the entries of machines that are gone are deleted after PILOT_WORKLOAD_ENTRY_GRACE_PERIOD`
  }

  #groupOf({ namespace, workloadGroup }: RegisteringWorkload): WorkloadGroupData | undefined {
    const spellings = [...(this.#groups.get(`${namespace}/${workloadGroup}`)?.values() ?? [])]
    return spellings.find(({ group }) => group.endsWith(`.${this.#settings.domain}`)) ?? spellings[0]
  }

  /** The server refuses an entry as it is. Agents connect again at once, so the refusal outlasts the entry, and no call is made meanwhile. */
  #notCreated({ id, connections }: Entry, reason: string, now: number, chance: number): void {
    const failures = (this.#refusals.get(id)?.failures ?? 0) + 1
    this.#refusals.delete(id)
    this.#refusals.set(id, { reason, failures, until: now + pauseAfter(failures, pauses.refusal, chance) })
    const [oldest] = this.#refusals.keys()
    if (oldest !== undefined && this.#refusals.size > mostRefusals) this.#refusals.delete(oldest)
    for (const connected of [...connections]) this.#refuse(connected, status.failedPrecondition, reason, now)
  }

  #refuse(connected: Connected, code: number, reason: string, now: number): void {
    const { writer, connection } = connected
    this.#leave(connected, now)
    this.#refused.push({ writer, connection, code, reason })
  }

  #leave(connected: Connected, now: number): void {
    this.#connections.delete(`${connected.writer}|${connected.connection}`)
    const entry = connected.entry === undefined ? undefined : this.#entries.get(connected.entry)
    if (!entry) return
    entry.connections.delete(connected)
    this.#noteShared(entry)
    if (entry.connections.size === 0) Object.assign(entry, { leftAt: now, isClaimed: false })
    this.#look(entry.id)
  }

  /** Two machines may have the same address: one entry is all that can stand for it. */
  #noteShared(entry: Entry): void {
    const last = lastOf(entry)
    const other = [...entry.connections].findLast(({ workload }) => workload.node !== last?.workload.node)
    if (last && other) this.#shared.set(entry.id, sharedBy(other, last))
    else this.#shared.delete(entry.id)
  }

  /** What is said where another replica has kept the entry of a connected workload for a while: another machine is connected there. */
  #sharedElsewhere(connected: Connected, now: number): string | undefined {
    const entry = this.#entries.get(connected.entry ?? '')
    if (!entry?.seen || entry.isClaimed || lastOf(entry) !== connected) return undefined
    const { controller, disconnectedAt } = entry.seen
    const isKept =
      controller !== '' && controller !== this.#settings.replica && disconnectedAt === '' && this.replicas.deadSince(controller) === undefined
    const isLong = now - Math.max(entry.since, connected.since) >= times.elsewhereMs
    return isKept && isLong ? sharedElsewhere(connected.workload, entry.seen) : undefined
  }

  /** Something may have to be done with an entry. */
  #look(id: string): void {
    const entry = this.#entries.get(id)
    this.#waiting.delete(id)
    if (!entry || entry.isUnderWay) return
    if (!entry.seen && entry.connections.size === 0) {
      this.#entries.delete(id)
      for (const counts of [this.#byGroup, this.#byKeeper]) counts.set(id, undefined)
      for (const set of [this.#ready, this.#unhealthy]) set.delete(id)
    } else this.#ready.add(id)
  }

  #wake(now: number): void {
    if (now < this.#wakeAt) return
    this.#wakeAt = Number.POSITIVE_INFINITY
    for (const [id, at] of this.#waiting)
      if (at <= now) this.#look(id)
      else this.#wakeAt = Math.min(this.#wakeAt, at)
  }

  /** Returns the first of these entries with which something is to be done now. */
  #dueOf(from: DueEntries, now: number, at: string, takesHealth: boolean): DueCall | undefined {
    for (let id = from.take(); id !== undefined; id = from.take()) {
      const entry = this.#entries.get(id)
      const wanted = entry && !entry.isUnderWay ? this.#wanted(entry) : undefined
      if (!entry || !wanted) continue
      const time = Math.max(wanted.at, entry.notBefore, wanted.change === 'delete' ? this.#deletesFrom(now) : wanted.at)
      if (time > now) {
        this.#waiting.set(id, time)
        this.#wakeAt = Math.min(this.#wakeAt, time)
      } else if (wanted.change === 'health' && !takesHealth) this.#unhealthy.add(id)
      else {
        const order = this.#orderOf(entry, wanted.change, now, at)
        if (!order) continue
        this.#ready.delete(id)
        this.#unhealthy.delete(id)
        entry.isUnderWay = true
        return { id, change: wanted.change, order }
      }
    }
    return undefined
  }

  /**
   * From when on entries may be deleted. While the API server does not answer, other replicas cannot take entries over whose workloads have connected
   * to them; nor at once when it answers again.
   */
  #deletesFrom(now: number): number {
    if (now - this.#listedAt > times.listMs) return now + 1000
    return this.#answersSince + Math.max(this.#settings.graceMs, times.outageMs)
  }

  #wanted(entry: Entry): Wanted | undefined {
    const { seen, connections } = entry
    if (connections.size > 0) return seen ? this.#ofConnected(entry, seen) : { change: 'create', at: Number.NEGATIVE_INFINITY }
    return seen && this.#ofAbsent(entry, seen)
  }

  /** What is to be done with an entry whose workload is connected here. */
  #ofConnected(entry: Entry, seen: WorkloadEntryData): Wanted | undefined {
    const { replica, checksHealth } = this.#settings
    const at = Number.NEGATIVE_INFINITY
    const isOwn = seen.controller === replica && seen.disconnectedAt === ''
    const isLeft = seen.disconnectedAt !== '' || seen.controller === '' || this.replicas.deadSince(seen.controller) !== undefined
    if (isOwn) entry.isClaimed = false
    else if (isLeft || entry.isClaimed) return { change: 'take over', at }
    if (!isOwn || !checksHealth) return undefined
    // Of an agent that began anew, what the entry says is of before.
    const last = lastOf(entry)
    if (last?.health) return saysHealth(seen, last.health) ? undefined : { change: 'health', at: entry.healthFrom }
    return last?.workload.isProbed && saysHealth(seen, healthy) ? { change: 'health', at: last.since + silentMs } : undefined
  }

  /** What is to be done with an entry whose workload is not connected here. One that no replica of this control plane keeps is left alone. */
  #ofAbsent({ since, leftAt }: Entry, seen: WorkloadEntryData): Wanted | undefined {
    const { replica, graceMs } = this.#settings
    const { controller, registeredFor, disconnectedAt } = seen
    if (registeredFor === '' || controller === '') return undefined
    if (disconnectedAt !== '') return { change: 'delete', at: since + graceMs + (controller === replica ? 0 : times.othersMs) }
    // One that has connected since the start of this actor has left; others may not have been told yet.
    if (controller === replica) return this.#knowsConnections ? { change: 'mark', at: leftAt + Math.min(times.awayMs, graceMs) } : undefined
    const deadSince = this.replicas.deadSince(controller)
    if (deadSince === undefined) return undefined
    const takenOverMs = (this.#byKeeper.numbers.get(controller) ?? 0) * times.orphanEachMs
    return { change: 'delete', at: Math.max(since, deadSince) + Math.max(graceMs, times.orphanMs + takenOverMs) }
  }

  /** Returns the call; undefined: it cannot be made, or need not. */
  #orderOf(entry: Entry, change: EntryChange, now: number, at: string): EntryOrder | undefined {
    const { replica, domain } = this.#settings
    const { seen } = entry
    if (change === 'create') return this.#creation(entry, at, now)
    if (!seen) return undefined
    const { group, version, namespace, name, uid, resourceVersion } = seen
    const place = { group, version, namespace, name }
    switch (change) {
      case 'take over':
        return { verb: 'patch', ...place, patch: takeOver(seen, { replica, at }, domain) }
      case 'mark':
        return { verb: 'patch', ...place, patch: disconnection(seen, at, domain) }
      case 'delete':
        return { verb: 'delete', ...place, uid, resourceVersion }
      case 'health': {
        const patch = healthPatch(seen, lastOf(entry)?.health ?? silent, at)
        return patch && { verb: 'health', ...place, patch }
      }
    }
  }

  /** Without its group, nothing is created until there is one again, and without a workload that this group is for. */
  #creation(entry: Entry, at: string, now: number): EntryOrder | undefined {
    for (const connected of [...entry.connections]) {
      const fault = faultOf(connected.workload, this.#groupOf(connected.workload), entryName(connected.workload))
      if (fault && fault.code !== status.notFound) this.#refuse(connected, fault.code, fault.reason, now)
    }
    const workload = lastOf(entry)?.workload
    const workloadGroup = workload && this.#groupOf(workload)
    const name = workload && entryName(workload)
    if (!workloadGroup || name === undefined) return undefined
    const { group, version, namespace } = workloadGroup
    const object = newEntry(workloadGroup, workload, name, { replica: this.#settings.replica, at }, this.#settings)
    return { verb: 'create', group, version, namespace, name, object }
  }

  #block(now: number, chance: number): void {
    this.#answersSince = now
    // Of calls that were under way together, one counts.
    if (this.#blocked.until > now) return
    const failures = this.#blocked.failures + 1
    this.#blocked = { failures, until: now + pauseAfter(failures, pauses.shared, chance) }
  }
}
