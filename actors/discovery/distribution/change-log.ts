/** Writes the lines that say what changes of configuration did. It looks at what became of them after reports, and not at each of these. */
import type { ConfigChanges, PublishedPush } from '../../../protocols/messages/distribution.ts'
import { ChangeLines, changeTimes, type PushOutcomes } from '../../../src/push/distribution/change-lines.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { after, type Timer } from '../../runtime/timers.ts'

/** How long reports are collected before they are looked at, in milliseconds. */
const lookMs = 20

/** The log of changes. */
export class ChangeLog {
  readonly #lines: ChangeLines
  readonly #log: ScopedLogger
  #timer: Timer | undefined
  /** When the timer elapses, in monotonic milliseconds. */
  #looksAt = Number.POSITIVE_INFINITY

  constructor(outcomes: PushOutcomes, log: ScopedLogger) {
    this.#lines = new ChangeLines(outcomes)
    this.#log = log
  }

  published({ id, startedAt, changes }: PublishedPush): void {
    if (!changes) return
    this.#lines.published(id, startedAt, changes)
    this.changed()
  }

  unneeded(changes: ConfigChanges): void {
    this.#lines.unneeded(changes)
    this.changed()
  }

  /** What became of pushes may have changed. */
  changed(): void {
    const { nextAt } = this.#lines
    if (nextAt !== undefined) this.#lookAt(Math.max(monotonicMs() + lookMs, nextAt))
  }

  #lookAt(at: number): void {
    if (this.#looksAt <= at) return
    this.#timer?.cancel()
    this.#looksAt = at
    this.#timer = after(at - monotonicMs(), () => this.#look()).unref()
  }

  #look(): void {
    this.#looksAt = Number.POSITIVE_INFINITY
    const line = this.#lines.take(monotonicMs())
    if (line) this.#log[line.level](line.text)
    // Proxies that never answer are reported by nobody.
    if (this.#lines.nextAt !== undefined) this.#lookAt(monotonicMs() + changeTimes.lineMs)
  }
}
