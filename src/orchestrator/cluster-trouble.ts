/** What is wrong with a cluster that is followed, as its row on `/debug/clusterz` says it (docs/operation.md, J6). */
import { count } from '../model/counts.ts'

/** A server that is connected is heard of every 15 s, since it is pinged. */
const longestSilenceMs = 30_000
/** The number of reasons that are told. */
const mostReasons = 3

/** What is known of a followed cluster. */
export interface FollowedState {
  /** How long ago its server was last heard of, answers to pings included, in milliseconds; undefined: never. */
  readonly silentMs: number | undefined
  /** Unix milliseconds. */
  readonly now: number
  /** The number of objects that are kept. */
  readonly objects: number
  /** Whether it has been read whole. */
  readonly isComplete: boolean
  /** Which attempts fail and why, each reason once. */
  readonly reasons: readonly string[]
}

/** Returns since when nothing was heard, what stays, and which attempts fail; empty where nothing is wrong. */
export function clusterTrouble({ silentMs, now, objects, isComplete, reasons }: FollowedState): string {
  const lines: string[] = []
  if (silentMs !== undefined && silentMs > longestSilenceMs) {
    const since = new Date(now - silentMs).toISOString()
    const kept = isComplete ? `; its last state stays (${count(objects, 'object')})` : ''
    lines.push(`nothing has been heard of its API server since ${since} (${Math.round(silentMs / 1000)} s)${kept}`)
  }
  const more = reasons.length - mostReasons
  return [...lines, ...reasons.slice(0, mostReasons), ...(more > 0 ? [count(more, 'more reason')] : [])].join('; ')
}
