/** Ends connections of proxies of which this replica of discovery serves more than its share, so that they come back at others (docs/operation.md, R3). */
import { ProxySpread, type ReplicaLoad, spreadTimes } from '../../../src/orchestrator/proxy-spread.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import type { Supervisor } from '../../runtime/supervisor.ts'
import { every } from '../../runtime/timers.ts'
import type { OtherReplicas } from './other-replicas.ts'

/** What spreading depends on. */
export interface SpreadingParts {
  readonly supervisor: Supervisor
  readonly others: OtherReplicas
  /** The load of this replica. */
  readonly load: () => Promise<ReplicaLoad>
  /** The most connections that are ended a second (`MESHD_SPREAD_RATE`). */
  readonly perSecond: number
  readonly log: ScopedLogger
}

/** The load of this replica, as it is told to the others. */
export async function loadOf(supervisor: Supervisor, isReady: () => boolean, most: number): Promise<ReplicaLoad> {
  const counts = await Promise.all(writersOf(supervisor).map((name) => supervisor.ask<number>(name, 'proxies')))
  return { proxies: counts.reduce((sum, count) => sum + count, 0), isReady: isReady(), most }
}

/** Looks at the loads of all replicas again and again. Returns what ends that. */
export function spreadProxies(parts: SpreadingParts): { close(): void } {
  const spread = new ProxySpread(parts.perSecond)
  const { supervisor, others, log } = parts
  let [due, atOnce, isLooking, wasSpreading] = [0, 0, false, false]
  const look = async () => {
    const [own, there] = await Promise.all([parts.load(), others.ask<ReplicaLoad>('load')])
    const loads = new Map(there.answers.map(({ replica, value }) => [replica, value]))
    due = spread.next(
      own,
      there.replicas.map(({ name }) => ({ name, load: loads.get(name) })),
      monotonicMs(),
    )
    atOnce = Math.ceil((due * 1000) / spreadTimes.lookMs)
    const isSpreading = due > 0
    const all = [own, ...loads.values()].reduce((sum, { proxies }) => sum + proxies, 0)
    if (isSpreading && !wasSpreading)
      log.info(
        `this replica serves ${own.proxies} of the ${all} proxies of ${loads.size + 1} replicas: it ends at most ${parts.perSecond} connections a second, so that others get their share (MESHD_SPREAD_RATE)`,
      )
    if (!isSpreading && wasSpreading)
      log.info(`this replica serves ${own.proxies} of the ${all} proxies of ${loads.size + 1} replicas and ends no more connections`)
    wasSpreading = isSpreading
  }
  const looks = every(spreadTimes.lookMs, () => {
    due = 0
    if (isLooking) return
    isLooking = true
    void look()
      // Writers that start again are asked the next time.
      .catch((error: Error) => log.debug(`the proxies of all replicas are not spread at present: ${error.message}`))
      .finally(() => (isLooking = false))
  }).unref()
  const ends = every(1000, () => {
    const count = Math.min(due, atOnce)
    due -= count
    if (count > 0) void endSome(supervisor, count).catch((error: Error) => log.debug(`no connections were ended: ${error.message}`))
  }).unref()
  return {
    close() {
      looks.cancel()
      ends.cancel()
    },
  }
}

/** Ends connections of the writers with the most. */
async function endSome(supervisor: Supervisor, count: number): Promise<void> {
  const writers = await Promise.all(writersOf(supervisor).map(async (name) => ({ name, proxies: await supervisor.ask<number>(name, 'proxies') })))
  writers.sort((one, other) => other.proxies - one.proxies)
  let rest = count
  for (const { name } of writers) if (rest > 0) rest -= await supervisor.ask<number>(name, 'spread', rest)
}

const writersOf = (supervisor: Supervisor): string[] =>
  supervisor.states().flatMap(({ name, state }) => (name.startsWith('xds-writer/') && state === 'running' ? [name] : []))
