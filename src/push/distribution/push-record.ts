/** The last pushes of changes, and what became of each at the proxies that it concerned. Memory is bounded by the number of pushes that are kept. */
import type { PublishedPush, PushProxy, PushRefusal, PushState, PushTally, PushUpdates } from '../../../protocols/messages/distribution.ts'
import { AnswerTimes } from './answer-times.ts'
import type { KnownProxy, ReportedNow } from './proxy-versions.ts'

/** How many of the slowest proxies, and of those that owe an answer, are named for each namespace. */
const mostNamed = 10
/** Maximum number of refusals that are kept for a push and a namespace; the others are counted. */
const mostRefusals = 20
/** Maximum number of proxies whose blamed objects are remembered. */
const mostBlamed = 1000

type Person = Pick<KnownProxy, 'connection' | 'nodeId' | 'namespace'>

/** What became of a push at the proxies of one namespace. */
interface Tally {
  acknowledged: number
  refused: number
  gone: number
  bytesSent: number
  readonly classes: Set<string>
  /** By writer and connection. */
  readonly outstanding: Map<string, Person>
  /** The slowest first. */
  readonly slowest: PushProxy[]
  readonly times: AnswerTimes
  readonly refusals: (PushRefusal & { readonly key: string })[]
}

/** A push that is kept. */
interface Kept {
  readonly id: number
  /** Undefined until the push queue has told of it. */
  push: PublishedPush | undefined
  /** The number of pushes before it, and the number of the last change of this record. */
  readonly ordinal: number
  sequence: number
  /** The number of proxies that owe an answer. */
  outstanding: number
  isApplied: boolean
  readonly tallies: Map<string, Tally>
}

/** What became of a push at all proxies. */
export interface PushOutcome {
  readonly acknowledged: number
  readonly refused: number
  readonly gone: number
  readonly outstanding: number
  /** The time until the slowest of those that acknowledged it, from the start of the push, in milliseconds. */
  readonly slowestMs: number
  /** Some of the refusals, and node ids of some proxies that owe an answer. */
  readonly refusals: readonly PushRefusal[]
  readonly waiting: readonly string[]
}

/** Records pushes. */
export class PushRecord {
  readonly #keep: number
  readonly #run: string
  readonly #kept = new Map<number, Kept>()
  readonly #blamed = new Map<string, readonly string[]>()
  #ordinal = 0
  #sequence = 0

  /** `keep`: the number of pushes that are kept. `run` distinguishes the cursors of this record from those of others. */
  constructor(keep: number, run: string) {
    this.#keep = keep
    this.#run = run
  }

  /** The number of the last change. */
  get sequence(): number {
    return this.#sequence
  }

  /** The number of proxies that owe an answer to the last push. */
  get outstanding(): number {
    return [...this.#kept.values()].at(-1)?.outstanding ?? 0
  }

  /** The number of proxies that owe an answer to a push; undefined when it is no longer kept. */
  outstandingOf(id: number): number | undefined {
    return this.#kept.get(id)?.outstanding
  }

  /** What became of a push so far; undefined when it is no longer kept. Takes time for each namespace. */
  outcome(id: number): PushOutcome | undefined {
    const kept = this.#kept.get(id)
    if (!kept) return undefined
    const tallies = [...kept.tallies.values()]
    const sum = (of: (tally: Tally) => number) => tallies.reduce((total, tally) => total + of(tally), 0)
    return {
      ...{ acknowledged: sum(({ acknowledged }) => acknowledged), refused: sum(({ refused }) => refused), gone: sum(({ gone }) => gone) },
      outstanding: kept.outstanding,
      slowestMs: tallies.reduce((slowest, tally) => Math.max(slowest, tally.slowest[0]?.ms ?? 0), 0),
      refusals: tallies.flatMap(({ refusals }) => refusals.map(({ key: _, ...refusal }) => refusal)).slice(0, mostRefusals),
      waiting: tallies.flatMap(({ outstanding }) => firstOf(outstanding)).slice(0, mostNamed),
    }
  }

  /** A push was published. */
  published(push: PublishedPush): void {
    const kept = this.#of(push.id)
    if (!kept) return
    kept.push = push
    this.#changed(kept)
  }

  /** All writers have applied the pushes up to one. */
  applied(upTo: number): void {
    for (const kept of this.#kept.values()) {
      if (kept.isApplied || kept.id > upTo) continue
      kept.isApplied = true
      this.#changed(kept)
    }
  }

  /** Whether all writers have applied a push: all proxies that are to acknowledge it are counted. */
  isApplied(id: number): boolean {
    return this.#kept.get(id)?.isApplied ?? false
  }

  /** A writer reported proxies. Pushes that are no longer kept are left out. */
  reported(writer: string, proxies: readonly ReportedNow[]): void {
    for (const proxy of proxies) {
      const key = `${writer}/${proxy.connection}`
      for (const id of proxy.owed)
        this.#at(id, proxy, (tally) => {
          if (tally.outstanding.has(key)) return false
          tally.outstanding.set(key, proxy)
          tally.classes.add(proxy.classId)
          return true
        })
      for (const [id, ms] of proxy.acknowledged)
        this.#at(id, proxy, (tally) => {
          tally.outstanding.delete(key)
          tally.classes.add(proxy.classId)
          tally.acknowledged++
          tally.times.add(ms)
          addSlow(tally.slowest, { connection: proxy.connection, nodeId: proxy.nodeId, ms })
          return true
        })
      for (const [id, bytes] of proxy.sent)
        this.#at(id, proxy, (tally) => {
          tally.bytesSent += bytes
          return true
        })
      this.#refused(key, proxy)
    }
  }

  #refused(key: string, { connection, nodeId, namespace, classId, refused }: ReportedNow): void {
    for (const { push, ...refusal } of refused)
      this.#at(push, { namespace }, (tally) => {
        tally.outstanding.delete(key)
        tally.classes.add(classId)
        tally.refused++
        const objects = this.#blamed.get(`${key}|${refusal.typeUrl}`) ?? []
        if (tally.refusals.length < mostRefusals) tally.refusals.push({ ...refusal, connection, nodeId, objects, key })
        return true
      })
  }

  /** The push queue has found the objects that may be the cause of a refusal, before or after the writer reported it. */
  blamed(writer: string, connection: string, typeUrl: string, objects: readonly string[]): void {
    const key = `${writer}/${connection}`
    this.#blamed.delete(`${key}|${typeUrl}`)
    this.#blamed.set(`${key}|${typeUrl}`, objects)
    for (const oldest of this.#blamed.keys()) {
      if (this.#blamed.size <= mostBlamed) break
      this.#blamed.delete(oldest)
    }
    for (const kept of this.#kept.values())
      for (const { refusals } of kept.tallies.values())
        for (const [index, refusal] of refusals.entries())
          if (refusal.key === key && refusal.typeUrl === typeUrl && refusal.objects.length === 0) {
            refusals[index] = { ...refusal, objects }
            this.#changed(kept)
          }
  }

  /** Proxies of a writer are closed: they will answer nothing any more. */
  left(writer: string, proxies: readonly KnownProxy[]): void {
    for (const proxy of proxies)
      for (const id of proxy.owed)
        this.#at(id, proxy, (tally) => {
          if (!tally.outstanding.delete(`${writer}/${proxy.connection}`)) return false
          tally.gone++
          return true
        })
  }

  /** The pushes that changed after a cursor, the oldest first; all that are kept without one. `now`: both clocks at present, in milliseconds. */
  since(cursor: string, now: { readonly monotonic: number; readonly wall: number }): PushUpdates {
    const [run, sequence, ordinal] = cursor.split('.')
    const [from, seen] = run === this.#run ? [Number(sequence), Number(ordinal)] : [0, 0]
    const first = this.#kept.values().next().value?.ordinal ?? this.#ordinal
    const changed = [...this.#kept.values()].filter((kept) => kept.push && !(kept.sequence <= from))
    return {
      pushes: changed.map((kept) => stateOf(kept, kept.push as PublishedPush, now)),
      cursor: `${this.#run}.${this.#sequence}.${this.#ordinal}`,
      dropped: run === this.#run ? Math.max(0, first - seen) : 0,
    }
  }

  /** The record of a push; undefined when the push is older than all that are kept. */
  #of(id: number): Kept | undefined {
    const known = this.#kept.get(id)
    if (known) return known
    const oldest = this.#kept.keys().next().value
    if (oldest !== undefined && id < oldest) return undefined
    const kept: Kept = { id, push: undefined, ordinal: this.#ordinal++, sequence: 0, outstanding: 0, isApplied: false, tallies: new Map() }
    this.#kept.set(id, kept)
    if (this.#kept.size > this.#keep) this.#kept.delete(this.#kept.keys().next().value as number)
    return kept
  }

  #at(id: number, { namespace }: Pick<Person, 'namespace'>, change: (tally: Tally) => boolean): void {
    const kept = this.#of(id)
    if (!kept) return
    let tally = kept.tallies.get(namespace)
    if (!tally) kept.tallies.set(namespace, (tally = emptyTally()))
    const before = tally.outstanding.size
    if (change(tally)) this.#changed(kept)
    kept.outstanding += tally.outstanding.size - before
  }

  #changed(kept: Kept): void {
    kept.sequence = ++this.#sequence
  }
}

/** The node ids of the first proxies. */
function firstOf(proxies: ReadonlyMap<string, Person>): string[] {
  const nodes: string[] = []
  for (const { nodeId } of proxies.values()) {
    if (nodes.length === mostNamed) break
    nodes.push(nodeId)
  }
  return nodes
}

const emptyTally = (): Tally => ({
  ...{ acknowledged: 0, refused: 0, gone: 0, bytesSent: 0 },
  ...{ classes: new Set(), outstanding: new Map(), slowest: [], times: new AnswerTimes(), refusals: [] },
})

/** Adds a proxy to the slowest, if it is one of them. */
function addSlow(slowest: PushProxy[], proxy: PushProxy): void {
  if (slowest.length >= mostNamed && (slowest.at(-1) as PushProxy).ms >= proxy.ms) return
  const place = slowest.findIndex(({ ms }) => ms < proxy.ms)
  slowest.splice(place < 0 ? slowest.length : place, 0, proxy)
  if (slowest.length > mostNamed) slowest.pop()
}

function stateOf({ tallies, isApplied }: Kept, push: PublishedPush, now: { readonly monotonic: number; readonly wall: number }): PushState {
  const { startedAt, publishedAt, changes: _, ...rest } = push
  const agoMs = Math.max(0, now.monotonic - startedAt)
  return {
    ...rest,
    startedAt: now.wall - agoMs,
    publishedAfterMs: publishedAt - startedAt,
    isApplied,
    tallies: Array.from(tallies, ([namespace, tally]): PushTally => {
      const { classes, outstanding, refusals, times, ...counts } = tally
      const waiting = [...outstanding.values()].slice(0, mostNamed).map(({ connection, nodeId }) => ({ connection, nodeId, ms: agoMs }))
      return {
        ...{ ...counts, namespace, waiting, times: times.told },
        ...{ classes: classes.size, outstanding: outstanding.size, refusals: refusals.map(({ key: _, ...refusal }) => refusal) },
      }
    }),
  }
}
