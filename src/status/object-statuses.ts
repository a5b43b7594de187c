/**
 * What the status of each configuration object has to say, and which one is to be written next (docs/status.md, S1 to S9). An object has at most one place
 * among those that are due, and what is written is worked out when it is its turn: however often it changes, its last state is written.
 */
import type {
  AnalysisMessage,
  AskedGeneration,
  CountedProxies,
  HeldStatus,
  MeshObject,
  OthersCounted,
  PatchOperation,
  PublishedObject,
  StatusOutcome,
  StatusWriterConfig,
  WithdrawnHere,
  WithdrawnObject,
} from '../../protocols/messages/object-status.ts'
import { type Pauses, pauseAfter } from '../model/back-off.ts'
import { RequestBudget } from '../orchestrator/request-budget.ts'
import { isNewer } from '../orchestrator/resource-versions.ts'
import { conditionMessage, isSaid, isSaidReconciled, longestFault, statusPatch, type WantedCondition, type WantedStatus } from './object-status.ts'

/** Pauses after failures: of all writes or of those of one resource, and of one object. */
const pauses: { readonly shared: Pauses; readonly object: Pauses } = {
  shared: { firstMs: 1000, longestMs: 30_000, jitter: 0.2 },
  object: { firstMs: 1000, longestMs: 300_000, jitter: 0.2 },
}
/**
 * How long proxies may take before it is written that they have not all got a generation; the least time between two writes of an object; and how
 * long the next count of an object that is not reconciled waits, doubled by each, in milliseconds.
 */
const times = { behindMs: 1000, againMs: 1000, progress: { firstMs: 5000, longestMs: 300_000 } }

/** The number of objects that are looked at in one go. */
const mostLooks = 500
/** The number of objects of which the other replicas are asked at a time, and of which they are told that proxies refuse them. */
const most = { asked: 200, refused: 1000 }

/** A write that is to be made. */
export interface DueStatus {
  readonly id: string
  /** The object as it was when the write was made up. */
  readonly object: MeshObject
  readonly patch: readonly PatchOperation[]
  /** What the status says then. */
  readonly status: HeldStatus
  /** The push of which it gives counts that may grow; undefined: of none. */
  readonly openPush: number | undefined
}

/** The push that has a generation of an object. */
interface Published {
  readonly uid: string
  readonly generation: number
  readonly push: number
  readonly at: number
}

interface Entry {
  object: MeshObject
  /** The version that was written last: what the server tells of earlier ones says nothing of the status. */
  writtenVersion: string | undefined
  /** The push with which it was reconciled, which is not judged again, and what is said of that; empty: an earlier process has said it. */
  reconciled: { readonly push: number; readonly message: string } | undefined
  isUnderWay: boolean
  /** The next write is not before this time. */
  notBefore: number
  failures: number
  /** The version of which the server says that the object is gone: nothing is written to it. */
  goneVersion: string | undefined
  /** The push of which counts were written, how often, and when the next ones may be. */
  progress: { readonly push: number; readonly writes: number; readonly next: number } | undefined
  /** The proxies that had it when it was judged last, and all of them. */
  counted: { readonly have: number; readonly all: number } | undefined
}

/** How many proxies have a push or a later one, by the numbers of pushes, which are sorted. */
interface Reached {
  readonly pushes: Float64Array
  readonly proxies: Float64Array
}

/** The proxies of this replica from which patches of an object are withdrawn, and the pushes that they have otherwise. */
interface Refusing extends WithdrawnObject {
  readonly reached: Reached
}

/** What the condition of an object has to say, from when on. */
interface Judgement {
  readonly condition: WantedCondition | undefined
  readonly at: number
  readonly openPush?: number
}

const nothing: Judgement = { condition: undefined, at: Number.NEGATIVE_INFINITY }

/** The keeper of what statuses have to say. Times are monotonic milliseconds. */
export class ObjectStatuses {
  readonly #parts: Omit<StatusWriterConfig, 'settleMs'>
  readonly #budget: RequestBudget
  readonly #objects = new Map<string, Entry>()
  /** The objects of a key: one in each spelling of the group. */
  readonly #ids = new Map<string, Set<string>>()
  readonly #published = new Map<string, Published>()
  /** The objects of which patches are withdrawn from proxies of this replica, and from those of the others. */
  #withdrawn: ReadonlyMap<string, Refusing> = new Map()
  #withdrawnThere: ReadonlyMap<string, WithdrawnObject> = new Map()
  readonly #analysed = new Map<string, readonly AnalysisMessage[]>()
  /** The objects that not all proxies have. */
  readonly #open = new Set<string>()
  /** The objects whose status is to be looked at: the first one first. */
  readonly #ready = new Set<string>()
  /** When those are due that wait. */
  readonly #waiting = new Map<string, number>()
  /** None of those is due before this time. */
  #wakeAt = Number.POSITIVE_INFINITY
  /** Failures of all writes (empty), or of those of a resource. */
  readonly #blocked = new Map<string, { readonly failures: number; readonly until: number }>()
  #reached: Reached | undefined
  /** What the other replicas count. */
  #others: { readonly all: number; readonly silent: readonly string[]; readonly have: ReadonlyMap<string, number> } | undefined
  /** The objects of which the other replicas have not said anything yet. */
  readonly #unasked = new Set<string>()
  readonly #judgesFrom: number

  /** `judgesFrom`: nothing is said of what proxies have before this time. */
  constructor(parts: Omit<StatusWriterConfig, 'settleMs'>, judgesFrom: number, now: number) {
    this.#parts = parts
    this.#judgesFrom = judgesFrom
    this.#budget = new RequestBudget(parts.perSecond, parts.burst, now)
  }

  /** The number of objects, of those whose status is to be looked at or written, and of those that not all proxies have. */
  get counts(): { readonly objects: number; readonly waiting: number; readonly open: number } {
    return { objects: this.#objects.size, waiting: this.#ready.size + this.#waiting.size, open: this.#open.size }
  }

  /** Sets an object as the server has it; undefined: it is gone. */
  set(id: string, object: MeshObject | undefined): void {
    const known = this.#objects.get(id)
    if (!object || (known && known.object.uid !== object.uid)) this.#forget(id)
    if (!object) return
    const entry = this.#objects.get(id) ?? this.#added(id, object)
    const { writtenVersion } = entry
    const isOlder = writtenVersion !== undefined && writtenVersion !== object.resourceVersion && isNewer(writtenVersion, object.resourceVersion)
    entry.object = isOlder ? { ...object, status: entry.object.status } : object
    if (entry.goneVersion !== object.resourceVersion) entry.goneVersion = undefined
    this.#look(id)
  }

  /** These objects are in a push. */
  published(push: number, objects: readonly PublishedObject[], now: number): void {
    for (const { key, uid, generation, isSame } of objects) {
      const before = this.#published.get(key)
      if (generation === 0) this.#published.delete(key)
      else {
        const since = isSame && before?.uid === uid ? before : { push, at: now }
        this.#published.set(key, { uid, generation, push: since.push, at: since.at })
      }
      for (const id of this.#ids.get(key) ?? []) {
        const entry = this.#objects.get(id) as Entry
        // An earlier process has seen to it.
        if (!before && generation !== 0) this.#adopt(entry)
        this.#look(id)
      }
    }
  }

  /** Sets all objects of which patches are withdrawn from proxies of this replica. */
  withdrawn(objects: readonly WithdrawnHere[]): void {
    const before = this.#withdrawn
    this.#withdrawn = new Map(objects.map(({ key, proxies, reason, reached }) => [key, { key, proxies, reason, reached: reachedOf(reached) }]))
    const isOther = (key: string) => {
      const [one, other] = [before.get(key), this.#withdrawn.get(key)]
      return one?.proxies !== other?.proxies || one?.reason !== other?.reason
    }
    for (const key of new Set([...before.keys(), ...this.#withdrawn.keys()]))
      if (isOther(key)) for (const id of this.#ids.get(key) ?? []) this.#look(id)
  }

  /** Sets what analysis says of an object; undefined: nothing. */
  analysed(key: string, messages: readonly AnalysisMessage[] | undefined): void {
    if (messages === undefined) this.#analysed.delete(key)
    else this.#analysed.set(key, messages)
    for (const id of this.#ids.get(key) ?? []) this.#look(id)
  }

  /** Sets how many proxies have which push: pairs, sorted by the number of the push. Undefined: it is not known. */
  reached(pairs: Float64Array | undefined): void {
    const before = this.#reached
    this.#reached = pairs && reachedOf(pairs)
    const now = this.#reached
    if (!now) return
    // Those that could not be judged before.
    if (!before) for (const id of this.#objects.keys()) this.#look(id)
    const all = now.proxies[0] ?? 0
    for (const id of this.#open) {
      const { object, counted } = this.#objects.get(id) as Entry
      const have = this.#have(now, object.key, this.#published.get(object.key)?.push ?? Number.POSITIVE_INFINITY)
      // What is written of one that waits is worked out when it is its turn.
      if (have >= all || (!this.#waiting.has(id) && (have !== counted?.have || all !== counted.all))) this.#look(id)
    }
  }

  /** The generations of which the other replicas are to be asked: those of the last push that not all proxies have. */
  toAsk(): readonly AskedGeneration[] {
    const asked: AskedGeneration[] = []
    for (const id of new Set([...this.#unasked, ...this.#open])) {
      const { key, uid } = this.#objects.get(id)?.object ?? {}
      const published = key === undefined ? undefined : this.#published.get(key)
      if (key !== undefined && uid !== undefined && published?.uid === uid) asked.push({ key, uid, generation: published.generation })
      if (asked.length === most.asked) break
    }
    return asked
  }

  /** Whether nothing can be said of some objects before the other replicas have answered. */
  get waitsForOthers(): boolean {
    return this.#unasked.size > 0
  }

  /** Sets what the other replicas have answered to {@link toAsk}. */
  othersCounted(asked: readonly AskedGeneration[], { all, have, withdrawn = [], silent }: OthersCounted): void {
    this.#others = { all, silent, have: new Map(asked.map((each, index) => [generationKey(each), have[index] ?? 0])) }
    const before = this.#withdrawnThere
    this.#withdrawnThere = summed(withdrawn)
    // What is refused there and was not before is no longer reconciled. All others are open already.
    for (const key of this.#withdrawnThere.keys()) if (!before.has(key)) for (const id of this.#ids.get(key) ?? []) this.#look(id)
    for (const id of [...this.#unasked, ...this.#open]) this.#look(id)
    this.#unasked.clear()
  }

  /** The proxies of this replica, those that have generations or later ones, and what they refuse; undefined: they are not known yet. */
  counted(asked: readonly AskedGeneration[], now: number): CountedProxies | undefined {
    const reached = this.#reached
    if (!reached || now < this.#judgesFrom) return undefined
    const have = asked.map(({ key, uid, generation }) => {
      const published = this.#published.get(key)
      return published?.uid === uid && published.generation >= generation ? this.#have(reached, key, published.push) : 0
    })
    const withdrawn = Array.from(this.#withdrawn.values())
      .slice(0, most.refused)
      .map(({ key, proxies, reason }) => ({ key, proxies, reason: reason.slice(0, longestFault + 1) }))
    return { all: reached.proxies[0] ?? 0, have, withdrawn }
  }

  /** Looks at all again, without the pauses of failures: a term has begun. */
  again(): void {
    this.#blocked.clear()
    this.#withdrawnThere = new Map()
    for (const [id, entry] of this.#objects) {
      Object.assign(entry, { failures: 0, notBefore: Number.NEGATIVE_INFINITY, goneVersion: undefined, progress: undefined })
      this.#look(id)
    }
  }

  /**
   * Returns the write that is next, and counts it as under way; undefined: nothing is due, or not all has been looked at ({@link waitMs} is 0 then).
   * `date`: the date, as the API writes it.
   */
  next(now: number, date: string): DueStatus | undefined {
    if (this.#blockedUntil('') > now || this.#budget.waitMs(now) > 0) return undefined
    this.#wake(now)
    let looks = 0
    for (const id of this.#ready) {
      if (++looks > mostLooks) break
      this.#ready.delete(id)
      const due = this.#due(id, now, date)
      if (due) return due
    }
    return undefined
  }

  /** The milliseconds until something may be due, if nothing changes; undefined: nothing waits. */
  waitMs(now: number): number | undefined {
    if (this.#ready.size + this.#waiting.size === 0) return undefined
    const first = this.#ready.size > 0 ? now : this.#wakeAt
    return Math.max(0, first - now, this.#blockedUntil('') - now, this.#budget.waitMs(now))
  }

  /** What came of a write. `chance`: a random number from 0 to 1. */
  ended(due: DueStatus, outcome: StatusOutcome, now: number, chance: number): void {
    const { id, object } = due
    if (outcome.outcome === 'failed' && outcome.concerns !== 'object') this.#block(outcome.concerns === 'all' ? '' : resourceOf(object), now, chance)
    if (outcome.outcome === 'written') for (const what of ['', resourceOf(object)]) this.#blocked.delete(what)
    const entry = this.#objects.get(id)
    // Another object of this name is not told by that.
    if (!entry?.isUnderWay || entry.object.uid !== object.uid) return
    entry.isUnderWay = false
    if (outcome.outcome === 'written') this.#written(entry, due, outcome.resourceVersion, now)
    // The end of the term is told too.
    else if (outcome.outcome === 'lost') entry.notBefore = now + times.againMs
    else if (outcome.outcome === 'gone') entry.goneVersion = entry.object.resourceVersion
    // The server tells of what there is.
    else if (outcome.outcome === 'conflict' || (outcome.outcome === 'failed' && outcome.concerns === 'object'))
      entry.notBefore = now + pauseAfter(++entry.failures, pauses.object, chance)
    this.#look(id)
  }

  #written(entry: Entry, { status, openPush }: DueStatus, version: string, now: number): void {
    const { object, progress } = entry
    entry.failures = 0
    entry.notBefore = now + times.againMs
    if (openPush !== undefined) {
      const writes = progress?.push === openPush ? progress.writes + 1 : 1
      entry.progress = { push: openPush, writes, next: now + pauseAfter(writes, times.progress) }
    }
    // What was told meanwhile may be later than what was written.
    const isLater = object.resourceVersion !== version && isNewer(object.resourceVersion, version)
    if (isLater && entry.writtenVersion !== object.resourceVersion && object.status !== undefined) return
    entry.writtenVersion = version
    entry.object = { ...object, status }
  }

  #added(id: string, object: MeshObject): Entry {
    const { key } = object
    const entry: Entry = {
      ...{ object, writtenVersion: undefined, isUnderWay: false, notBefore: Number.NEGATIVE_INFINITY, failures: 0 },
      ...{ goneVersion: undefined, reconciled: undefined, progress: undefined, counted: undefined },
    }
    this.#objects.set(id, entry)
    const ids = this.#ids.get(key)
    if (ids) ids.add(id)
    else this.#ids.set(key, new Set([id]))
    this.#adopt(entry)
    return entry
  }

  /** What an earlier process has said of the generation that is in use is so. */
  #adopt(entry: Entry): void {
    const { key, uid } = entry.object
    const published = this.#published.get(key)
    if (published?.uid !== uid || !isSaidReconciled({ ...entry.object, generation: published.generation })) return
    entry.reconciled = { push: published.push, message: '' }
  }

  #forget(id: string): void {
    const key = this.#objects.get(id)?.object.key
    for (const set of [this.#open, this.#ready, this.#unasked]) set.delete(id)
    this.#waiting.delete(id)
    this.#objects.delete(id)
    if (key === undefined) return
    const ids = this.#ids.get(key)
    ids?.delete(id)
    if (ids?.size === 0) this.#ids.delete(key)
  }

  /** The status of an object may have to say something else. */
  #look(id: string): void {
    this.#waiting.delete(id)
    if (this.#objects.get(id)?.isUnderWay === false) this.#ready.add(id)
  }

  #wait(id: string, at: number): void {
    this.#waiting.set(id, at)
    this.#wakeAt = Math.min(this.#wakeAt, at)
  }

  #wake(now: number): void {
    if (now < this.#wakeAt) return
    this.#wakeAt = Number.POSITIVE_INFINITY
    for (const [id, at] of this.#waiting)
      if (at <= now) this.#look(id)
      else this.#wakeAt = Math.min(this.#wakeAt, at)
  }

  #due(id: string, now: number, date: string): DueStatus | undefined {
    const entry = this.#objects.get(id)
    if (!entry || entry.isUnderWay || entry.goneVersion !== undefined) return undefined
    const { object } = entry
    const messages = this.#parts.analysis ? this.#analysed.get(object.key) : undefined
    const { condition, at, openPush } = this.#parts.reconciled ? this.#judged(id, entry, now) : nothing
    const isSooner = at > now && messages !== undefined
    const wanted: WantedStatus = { condition: isSooner ? undefined : condition, messages }
    const isAllSaid = isSaid(object.status, wanted)
    // What is not judged yet is looked at then.
    if (isAllSaid && at > now) this.#wait(id, at)
    if (isAllSaid) return undefined
    const from = Math.max(entry.notBefore, this.#blockedUntil(resourceOf(object)), isSooner ? now : at)
    if (from > now) {
      this.#wait(id, from)
      return undefined
    }
    this.#budget.take(now)
    entry.isUnderWay = true
    return { id, object, ...statusPatch(object, wanted, date), openPush: wanted.condition && openPush }
  }

  /** Returns what the condition has to say. */
  #judged(id: string, entry: Entry, now: number): Judgement {
    const { object, progress } = entry
    const { uid, fault, key, status } = object
    const published = this.#published.get(key)
    const reached = this.#reached
    this.#open.delete(id)
    if (!reached) return nothing
    const at = this.#judgesFrom
    if (now < at) return { condition: undefined, at }
    const { others } = this.#parts
    const all = (reached.proxies[0] ?? 0) + (others ? (this.#others?.all ?? 0) : 0)
    if (fault !== '') return { condition: { isReconciled: false, message: conditionMessage(0, all, fault), generation: object.generation }, at }
    // The push queue has not had the object yet, or another object of this name is in use.
    if (published?.uid !== uid) return nothing
    // The server has a later generation than the last push while changes are collected: the status says what there is of that one
    // (`observedGeneration`). Otherwise an object that changes more often than pushes come would never have a status.
    const { push, generation } = published
    const withdrawn = summed([this.#withdrawn, this.#withdrawnThere].flatMap((of) => of.get(key) ?? [])).get(key)
    if (withdrawn) entry.reconciled = undefined
    if (generation < object.generation && (status?.observedGeneration ?? 0) > generation) return nothing
    const there = this.#others?.have.get(generationKey({ key, uid, generation }))
    if (others && there === undefined && entry.reconciled?.push !== push) {
      this.#unasked.add(id)
      return nothing
    }
    const have = this.#have(reached, key, push) + (others ? (there ?? 0) : 0)
    const silent = others ? (this.#others?.silent ?? []) : []
    if (have >= all && !withdrawn && silent.length === 0 && entry.reconciled?.push !== push)
      entry.reconciled = { push, message: conditionMessage(have, all, '') }
    if (entry.reconciled?.push === push) {
      const message = entry.reconciled.message || conditionMessage(all, all, '')
      return { condition: { isReconciled: true, message, generation }, at }
    }
    this.#open.add(id)
    entry.counted = { have: this.#have(reached, key, push), all: reached.proxies[0] ?? 0 }
    const from = Math.max(at, published.at + times.behindMs, progress?.push === push ? progress.next : at)
    return { condition: { isReconciled: false, message: conditionMessage(have, all, '', silent, withdrawn), generation }, at: from, openPush: push }
  }

  /** The number of proxies of this replica that have an object in a push or a later one. One that refuses it has not, and counts once if it is behind, too. */
  #have(reached: Reached, key: string, push: number): number {
    const refusing = this.#withdrawn.get(key)
    return proxiesFrom(reached, push) - (refusing ? proxiesFrom(refusing.reached, push) : 0)
  }

  #blockedUntil(what: string): number {
    return this.#blocked.get(what)?.until ?? Number.NEGATIVE_INFINITY
  }

  #block(what: string, now: number, chance: number): void {
    // Of writes that were under way together, one counts.
    if (this.#blockedUntil(what) > now) return
    const failures = (this.#blocked.get(what)?.failures ?? 0) + 1
    this.#blocked.set(what, { failures, until: now + pauseAfter(failures, pauses.shared, chance) })
  }
}

/** The name of a generation among those that are asked for. */
const generationKey = ({ key, uid, generation }: AskedGeneration): string => `${key}|${uid}|${generation}`

/** What is withdrawn, by object: the proxies of all replicas, and what the first of them says. */
function summed(objects: readonly WithdrawnObject[]): ReadonlyMap<string, WithdrawnObject> {
  const sums = new Map<string, WithdrawnObject>()
  for (const each of objects) {
    const before = sums.get(each.key)
    sums.set(each.key, before ? { ...before, proxies: before.proxies + each.proxies } : each)
  }
  return sums
}

const resourceOf = ({ plural, group }: MeshObject): string => `${plural}.${group}`

function reachedOf(pairs: Float64Array): Reached {
  const length = pairs.length / 2
  const [pushes, proxies] = [new Float64Array(length), new Float64Array(length)]
  for (let at = length - 1, sum = 0; at >= 0; at--) {
    pushes[at] = pairs[2 * at] as number
    sum += pairs[2 * at + 1] as number
    proxies[at] = sum
  }
  return { pushes, proxies }
}

/** The number of proxies that have a push or a later one. */
function proxiesFrom({ pushes, proxies }: Reached, push: number): number {
  let [low, high] = [0, pushes.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((pushes[middle] as number) < push) low = middle + 1
    else high = middle
  }
  return proxies[low] ?? 0
}
