/** The answer about pushes, of which `mesh.admin.v1.AdminService` and `/debug/pushz` are two views. */
import type { PublishedPush, PushProxy, PushRefusal, PushState, PushTally, PushUpdates } from '../../../protocols/messages/distribution.ts'
import type { Sees } from './mesh-answers.ts'
import type { PageSources } from './page-sources.ts'

/** How many of the slowest proxies are named. */
const mostNamed = 10

/** A push as a caller sees it. */
export interface PushAnswer
  extends Pick<PublishedPush, 'id' | 'makingMs' | 'reasons' | 'objects' | 'otherObjects' | 'resources' | 'bytes'>,
    Pick<PushTally, 'acknowledged' | 'refused' | 'outstanding' | 'classes' | 'bytesSent'> {
  readonly startedAt: string
  readonly publishedAfterMs: number
  readonly disconnected: number
  readonly slowest: readonly (PushProxy & { readonly outstanding: boolean })[]
  readonly refusals: readonly PushRefusal[]
}

/** Pushes as a caller sees them, and where to ask on from. */
export interface PushAnswers extends Pick<PushUpdates, 'cursor' | 'dropped'> {
  readonly pushes: readonly PushAnswer[]
}

/** The pushes of which something changed after a cursor; if nothing has, waits for it up to `waitMs` milliseconds. */
export async function pushesOf(sources: PageSources, sees: Sees, after: string, waitMs: number): Promise<PushAnswers> {
  const { pushes, cursor, dropped } = await sources.distribution<PushUpdates>('pushes', after, waitMs)
  return { pushes: pushes.flatMap((push) => seenBy(push, sees) ?? []), cursor, dropped }
}

/**
 * A push as a caller sees it: objects and proxies of its namespaces. Undefined where it sees none of them. The totals of the resources that
 * were made are for callers who see everything; no namespace has an empty name.
 */
function seenBy({ tallies, startedAt, objects, otherObjects, resources, bytes, ...push }: PushState, sees: Sees): PushAnswer | undefined {
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
  return {
    ...push,
    startedAt: new Date(startedAt).toISOString(),
    objects: named,
    otherObjects: otherObjects + objects.length - named.length,
    ...(seesAll ? { resources, bytes } : { resources: 0, bytes: 0 }),
    ...{ classes: sum(({ classes }) => classes), bytesSent: sum(({ bytesSent }) => bytesSent) },
    ...{ acknowledged: sum(({ acknowledged }) => acknowledged), refused: sum(({ refused }) => refused) },
    ...{ disconnected: sum(({ gone }) => gone), outstanding: sum(({ outstanding }) => outstanding) },
    slowest: slowest.slice(0, mostNamed),
    refusals: seen.flatMap(({ refusals }) => refusals),
  }
}
