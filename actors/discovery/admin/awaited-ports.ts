/** Whether a replica that starts waits for the certificates of its ports, because ready replicas have theirs (docs/certificates.md, V2). */
import type { ScopedLogger } from '../../runtime/logger.ts'
import { type AskHeld, HeldElsewhere } from '../cluster/held-elsewhere.ts'

/** What a ready replica answers whose ports are all open. */
export const ports = 'ports'

/** Judges for a replica that has not been ready yet. */
export class AwaitedPorts {
  readonly #elsewhere: HeldElsewhere
  readonly #log: ScopedLogger
  #isAnswered = false
  #told = ''

  /** `ask`: asks the other replicas for what they have; undefined: there are none. */
  constructor(ask: AskHeld | undefined, log: ScopedLogger) {
    this.#log = log
    this.#elsewhere = new HeldElsewhere(ask, () => {
      this.#isAnswered = true
    })
  }

  /** Why the replica is not ready before ports of it are open, by the reasons why they are not; nothing: it does not wait for them. */
  readonly why = (unopened: readonly string[]): readonly string[] => {
    if (unopened.length === 0) return []
    const isFirst = this.#elsewhere.asks() && !this.#isAnswered
    const has = this.#elsewhere.has(ports)
    if (has === 'no' && !isFirst) return []
    const who = has === 'yes' ? 'ready replicas have open ports' : 'replicas that have not answered may have open ports'
    const line = `${who}: this one is not ready before it has the certificates of its own`
    if (isFirst) return [line]
    if (line !== this.#told) this.#log.warn(`${line} (${unopened.join('; ')})`)
    this.#told = line
    return [line]
  }
}
