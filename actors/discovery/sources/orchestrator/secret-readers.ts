/** The decisions of the API server on the readers of Secrets, kept for a short time and made again (docs/resources.md, K11). */
import type { SecretReader } from '../../../../protocols/messages/secrets.ts'
import { pauseAfter } from '../../../../src/model/back-off.ts'
import { chance } from '../../../runtime/chance.ts'
import { after, type Timer } from '../../../runtime/timers.ts'

/** When a decision is made again, in milliseconds, and the pauses between attempts that fail. */
const times = { allowedMs: 15_000, deniedMs: 5000, pauses: { firstMs: 1000, longestMs: 10_000, jitter: 0.5 } }

/** What a {@link SecretReaders} needs. */
export interface ReaderParts {
  /** Asks the API server. Rejects when it cannot decide. */
  mayList(reader: SecretReader): Promise<boolean>
  /** Whether the reader still wants Secrets: if not, its decision is forgotten. */
  isWanted(reader: SecretReader): boolean
  /** The decision on a reader was made, or is another than before. */
  changed(reader: SecretReader): void
}

interface Decision {
  allowed: boolean | undefined
  failures: number
  timer: Timer | undefined
}

/** Decides which service accounts may read the Secrets of their namespaces. */
export class SecretReaders {
  readonly #parts: ReaderParts
  readonly #times: typeof times
  readonly #decisions = new Map<string, Decision>()

  constructor(parts: ReaderParts, given = times) {
    this.#parts = parts
    this.#times = given
  }

  /** Whether a reader may; undefined while that is not known, and then {@link ReaderParts.changed} follows. */
  may(reader: SecretReader): boolean | undefined {
    const key = keyOf(reader)
    const known = this.#decisions.get(key)
    if (known) return known.allowed
    const decision: Decision = { allowed: undefined, failures: 0, timer: undefined }
    this.#decisions.set(key, decision)
    void this.#ask(reader, decision)
    return undefined
  }

  close(): void {
    for (const { timer } of this.#decisions.values()) timer?.cancel()
    this.#decisions.clear()
  }

  async #ask(reader: SecretReader, decision: Decision): Promise<void> {
    const before = decision.allowed
    let pauseMs: number
    try {
      decision.allowed = await this.#parts.mayList(reader)
      decision.failures = 0
      pauseMs = decision.allowed ? this.#times.allowedMs : this.#times.deniedMs
    } catch {
      // The main thread has told the reason. The last decision stays.
      decision.failures++
      pauseMs = pauseAfter(decision.failures, this.#times.pauses, chance())
    }
    if (this.#decisions.get(keyOf(reader)) !== decision) return
    decision.timer = after(pauseMs, () => {
      if (this.#parts.isWanted(reader)) void this.#ask(reader, decision)
      else this.#decisions.delete(keyOf(reader))
    }).unref()
    if (decision.allowed !== before) this.#parts.changed(reader)
  }
}

const keyOf = ({ namespace, account }: SecretReader): string => `${namespace}/${account}`
