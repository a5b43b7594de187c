/** The answer about pushes, of which `mesh.admin.v1.AdminService` and `/debug/pushz` are two views. */
import type {
  PublishedPush,
  PushedType,
  PushProxy,
  PushRefusal,
  PushState,
  PushTally,
  PushUpdates,
} from '../../../protocols/messages/distribution.ts'
import type { ReplicaState } from '../../../protocols/messages/replicas.ts'
import { readCursors, writeCursors } from '../../../src/orchestrator/replica-cursors.ts'
import { AnswerTimes } from '../../../src/push/distribution/answer-times.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { Sees } from './mesh-answers.ts'
import type { OtherReplicas } from './other-replicas.ts'
import type { PageSources, Placed } from './page-sources.ts'

/** How many of the slowest proxies are named. */
const mostNamed = 10

/** How often the other replicas are asked while an answer waits for a change, in milliseconds. A change here ends the wait at once. */
const lookMs = 1000

/** The longest time for which an answer waits for a change, in milliseconds. */
const longestWaitMs = 3000

/** A push as a caller sees it. */
export interface PushAnswer
  extends Pick<PublishedPush, 'id' | 'makingMs' | 'reasons' | 'objects' | 'otherObjects' | 'resources' | 'bytes'>,
    Pick<PushTally, 'acknowledged' | 'refused' | 'outstanding' | 'classes' | 'bytesSent'> {
  readonly startedAt: string
  readonly publishedAfterMs: number
  readonly disconnected: number
  readonly isApplied: boolean
  readonly types: readonly PushedType[]
  /** The times within which half of those that acknowledged it did so, and 99 of 100, and all. */
  readonly halfMs: number
  readonly mostMs: number
  readonly allMs: number
  readonly slowest: readonly (PushProxy & { readonly outstanding: boolean })[]
  readonly refusals: readonly PushRefusal[]
}

/** Pushes as a caller sees them, each of the replica that made it for its proxies, and where to ask on from. */
export interface PushAnswers extends Pick<PushUpdates, 'cursor' | 'dropped'> {
  readonly pushes: readonly Placed<PushAnswer>[]
  /** Those that were asked; none where other replicas are not asked. The cursor of one that has not answered stays. */
  readonly replicas: readonly ReplicaState[]
}

/** The pushes of this replica of which something changed after a cursor of it; if nothing has, waits for it up to `waitMs` milliseconds. */
export const ownPushes = (sources: PageSources, after: string, waitMs: number): Promise<PushUpdates> =>
  sources.distribution<PushUpdates>('pushes', after, waitMs)

/** The pushes of all replicas of which something changed after a cursor; if nothing has, waits for it up to `waitMs` milliseconds. */
export async function pushesOf(sources: PageSources, sees: Sees, after: string, waitMs: number): Promise<PushAnswers> {
  const { others } = sources
  const { updates, cursor, replicas } = others ? await updatesOfAll(sources, others, after, waitMs) : await updatesHere(sources, after, waitMs)
  const pushes = updates.flatMap(({ replica, pushes: made }) =>
    made.flatMap((push) => seenBy(push, sees) ?? []).map((push) => (replica === undefined ? push : { ...push, replica })),
  )
  pushes.sort((one, other) => Date.parse(one.startedAt) - Date.parse(other.startedAt))
  return { pushes, cursor, dropped: updates.reduce((sum, { dropped }) => sum + dropped, 0), replicas }
}

/** What changed after a cursor, by replica. */
interface UpdatesOfAll extends Pick<PushAnswers, 'cursor' | 'replicas'> {
  readonly updates: readonly Placed<PushUpdates>[]
}

async function updatesHere(sources: PageSources, after: string, waitMs: number): Promise<UpdatesOfAll> {
  const updates = await ownPushes(sources, after, waitMs)
  return { updates: [updates], cursor: updates.cursor, replicas: [] }
}

async function updatesOfAll(sources: PageSources, others: OtherReplicas, after: string, waitMs: number): Promise<UpdatesOfAll> {
  const until = monotonicMs() + Math.min(waitMs, longestWaitMs)
  const cursors = new Map(readCursors(after))
  for (;;) {
    const after = (replica: string) => cursors.get(replica) ?? ''
    const [own, there] = await Promise.all([
      ownPushes(sources, after(others.own), 0),
      others.askEach<PushUpdates>('pushes', (replica) => [after(replica)]),
    ])
    const updates = [{ ...own, replica: others.own }, ...there.answers.map(({ replica, value }) => ({ ...value, replica }))]
    const replicas = [{ name: others.own, answered: true, reason: '' }, ...there.replicas]
    for (const { replica, cursor } of updates) cursors.set(replica, cursor)
    // A replica that is gone has no part in the cursor.
    const known = new Set(replicas.map(({ name }) => name))
    for (const replica of cursors.keys()) if (!known.has(replica)) cursors.delete(replica)
    const restMs = until - monotonicMs()
    if (updates.some(({ pushes, dropped }) => pushes.length > 0 || dropped > 0) || !(restMs > 0))
      return { updates, cursor: writeCursors(cursors), replicas }
    await ownPushes(sources, after(others.own), Math.min(restMs, lookMs))
  }
}

/**
 * A push as a caller sees it: objects and proxies of its namespaces. Undefined where it sees none of them. The totals of the resources that
 * were made are for callers who see everything; no namespace has an empty name.
 */
function seenBy(
  { tallies, startedAt, objects, otherObjects, resources, bytes, types = [], isApplied = true, ...push }: PushState,
  sees: Sees,
): PushAnswer | undefined {
  const seen = tallies.filter(({ namespace }) => sees(namespace))
  const named = objects.filter(({ namespace }) => sees(namespace))
  const seesAll = sees('')
  if (!seesAll && seen.length === 0 && named.length === 0) return undefined
  const sum = (count: (tally: PushTally) => number) => seen.reduce((total, tally) => total + count(tally), 0)
  const bySlowness = (one: PushProxy, other: PushProxy) => other.ms - one.ms
  const slowest = [
    ...seen.flatMap(({ waiting }) => waiting.map((proxy) => ({ ...proxy, outstanding: true }))),
    ...seen.flatMap((tally) => tally.slowest.map((proxy) => ({ ...proxy, outstanding: false }))).sort(bySlowness),
  ]
  const times = new AnswerTimes(...seen.map((tally) => tally.times ?? []))
  const allMs = Math.max(0, ...seen.map((tally) => tally.slowest[0]?.ms ?? 0))
  return {
    ...push,
    isApplied,
    ...{ halfMs: Math.min(times.within(0.5), allMs), mostMs: Math.min(times.within(0.99), allMs), allMs },
    startedAt: new Date(startedAt).toISOString(),
    objects: named,
    otherObjects: otherObjects + objects.length - named.length,
    ...(seesAll ? { resources, bytes, types } : { resources: 0, bytes: 0, types: [] }),
    ...{ classes: sum(({ classes }) => classes), bytesSent: sum(({ bytesSent }) => bytesSent) },
    ...{ acknowledged: sum(({ acknowledged }) => acknowledged), refused: sum(({ refused }) => refused) },
    ...{ disconnected: sum(({ gone }) => gone), outstanding: sum(({ outstanding }) => outstanding) },
    slowest: slowest.slice(0, mostNamed),
    refusals: seen.flatMap(({ refusals }) => refusals),
  }
}
