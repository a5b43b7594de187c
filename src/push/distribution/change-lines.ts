/**
 * The lines of the log that say what changes of configuration did (docs/operation.md, "What a change did"): one at once, further ones of the
 * same second summed up.
 */
import type { ConfigChanges } from '../../../protocols/messages/distribution.ts'
import { count, someOf } from '../../model/counts.ts'
import { nameOfNode } from '../../model/proxy.ts'
import { shortType } from '../../xds/type-urls.ts'
import { changesText } from './config-changes.ts'
import type { PushOutcome } from './push-record.ts'

/** The least time between two lines, and the time after which a change that has not arrived is told, in milliseconds. */
export const changeTimes = { lineMs: 1000, lateMs: 10_000 }

/** Maximum number of changes whose outcome is awaited; the oldest are forgotten. */
const mostOpen = 100
/** Maximum number of refusals, of proxies that have not answered, and of objects that select none, in a line. */
const mostNamed = 3

/** A change whose outcome is not known yet. */
interface Open {
  readonly changes: ConfigChanges
  readonly startedAt: number
  isLate: boolean
}

/** A change with its outcome; undefined: it changed nothing of what any proxy is sent. */
interface Ended {
  readonly changes: ConfigChanges
  readonly outcome: PushOutcome | undefined
}

/** What is known of pushes. */
export interface PushOutcomes {
  /** The number of proxies that owe an answer; undefined when the push is no longer kept. */
  outstandingOf(push: number): number | undefined
  outcome(push: number): PushOutcome | undefined
  /** Whether all that are to acknowledge it are known. */
  isApplied(push: number): boolean
  /** The number of connected proxies. */
  readonly proxies: number
}

/** A line and its level. */
export interface ChangeLine {
  readonly level: 'info' | 'warn'
  readonly text: string
}

/** Collects changes until there is a line to write about them. */
export class ChangeLines {
  readonly #outcomes: PushOutcomes
  readonly #open = new Map<number, Open>()
  #ended: Ended[] = []
  #toldAt = Number.NEGATIVE_INFINITY

  constructor(outcomes: PushOutcomes) {
    this.#outcomes = outcomes
  }

  /** A push with changes was published; `startedAt` in monotonic milliseconds. */
  published(push: number, startedAt: number, changes: ConfigChanges): void {
    this.#open.set(push, { changes, startedAt, isLate: false })
    if (this.#open.size > mostOpen) this.#open.delete(this.#open.keys().next().value as number)
  }

  /** Changes were made that no push has. */
  unneeded(changes: ConfigChanges): void {
    this.#ended.push({ changes, outcome: undefined })
  }

  /** When there may be a line to write, in monotonic milliseconds; undefined: nothing is awaited. */
  get nextAt(): number | undefined {
    return this.#open.size + this.#ended.length === 0 ? undefined : this.#toldAt + changeTimes.lineMs
  }

  /** Returns the line that is due at `now` (monotonic milliseconds); undefined if there is none. Takes time for each change that is awaited. */
  take(now: number): ChangeLine | undefined {
    if (now < this.#toldAt + changeTimes.lineMs) return undefined
    for (const [push, open] of this.#open) {
      const outstanding = this.#outcomes.outstandingOf(push)
      const isSettled = outstanding === undefined || (outstanding === 0 && this.#outcomes.isApplied(push))
      const isLate = !open.isLate && now - open.startedAt >= changeTimes.lateMs
      if (!isSettled && !isLate) continue
      const outcome = this.#outcomes.outcome(push)
      if (outcome) this.#ended.push({ changes: open.changes, outcome })
      if (isSettled) this.#open.delete(push)
      else open.isLate = true
    }
    if (this.#ended.length === 0) return undefined
    const ended = this.#ended
    this.#ended = []
    this.#toldAt = now
    return lineOf(ended, this.#outcomes.proxies)
  }
}

function lineOf(ended: readonly Ended[], proxies: number): ChangeLine {
  const outcomes = ended.flatMap(({ outcome }) => outcome ?? [])
  const refused = [
    ...new Set(
      outcomes.flatMap(({ refusals }) =>
        refusals.map(({ nodeId, typeUrl, reason }) => `${nameOfNode(nodeId)} refused ${shortType(typeUrl)}: ${reason}`),
      ),
    ),
  ]
  const silent = [...new Set(outcomes.flatMap(({ waiting }) => waiting.map(nameOfNode)))]
  const gone = outcomes.reduce((sum, outcome) => sum + outcome.gone, 0)
  const selectingNone = proxies === 0 ? [] : [...new Set(ended.flatMap(({ changes }) => changes.selectingNone))]
  const parts = [
    `${changesText(ended.map(({ changes }) => changes))}; ${arrival(outcomes, proxies)}`,
    ...(selectingNone.length > 0 ? [`no connected proxy is selected by ${someOf(selectingNone, mostNamed)}`] : []),
    ...(refused.length > 0 ? [someOf(refused, mostNamed)] : []),
    ...(silent.length > 0 ? [`no answer after ${changeTimes.lateMs / 1000} s from ${someOf(silent, mostNamed)}`] : []),
    ...(gone > 0 ? [`${count(gone, 'proxy', 'proxies')} disconnected before the answer`] : []),
  ]
  return { level: refused.length + silent.length > 0 ? 'warn' : 'info', text: parts.join('; ') }
}

/** Says how many of the proxies that changes concern have them. */
function arrival(outcomes: readonly PushOutcome[], proxies: number): string {
  const concerned = outcomes.map(({ acknowledged, refused, gone, outstanding }) => acknowledged + refused + gone + outstanding)
  const most = Math.max(0, ...concerned)
  if (most === 0) return proxies === 0 ? 'no proxy is connected' : `nothing differs for any of ${count(proxies, 'proxy', 'proxies')}`
  const have = outcomes.map(({ acknowledged }) => acknowledged)
  const slowest = Math.max(...outcomes.map(({ slowestMs }) => slowestMs))
  const after = have.some((number) => number > 0) ? ` after ${Math.round(slowest)} ms` : ''
  const [only, ...others] = outcomes
  if (only && others.length === 0) return `${only.acknowledged} of ${count(most, 'proxy has', 'proxies have')} it${after}`
  const isComplete = have.every((number, index) => number === concerned[index])
  return `${isComplete ? 'all' : 'not all'} proxies concerned (${most} at most) have them${after}`
}
