/**
 * Formats faults as log lines. One object may break thousands of resources in the same way, so the number of lines with the same cause is
 * limited.
 */
import { LineBounds } from '../logging/line-bounds.ts'
import type { ResourceFault } from '../model/faults.ts'

/** The maximum number of losses that are remembered as told. */
const mostTold = 10_000

/** Formats faults and limits how many are logged. A loss is logged once, however often the proxies that have it leave and come again. */
export class FaultLog {
  readonly #bounds = new LineBounds()
  /** The losses that were logged, the latest last. */
  readonly #told = new Set<string>()

  /** Returns the log line for a fault found at `now` (monotonic milliseconds), or undefined when the limit is reached. */
  line({ type, resource, reason, consequence, objects, proxy, otherProxies = 0, isLoss }: ResourceFault, now: number): string | undefined {
    const loss = isLoss && JSON.stringify([type, resource, objects, reason])
    if (loss && this.#told.has(loss)) return undefined
    const allowed = this.#bounds.take(JSON.stringify([type, objects, reason]), now)
    if (allowed === 'no') return undefined
    if (loss) this.#remember(loss)
    const more = allowed === 'last' ? '; further faults of this kind are shown at /debug/push_status only' : ''
    const others = otherProxies === 0 ? '' : ` and ${otherProxies} other ${otherProxies === 1 ? 'proxy' : 'proxies'}`
    return `${type} ${resource}${proxy === undefined ? '' : ` by ${proxy}${others}`}: ${reason}; ${consequence}${more}`
  }
  #remember(loss: string): void {
    this.#told.add(loss)
    if (this.#told.size <= mostTold) return
    const [oldest] = this.#told
    if (oldest !== undefined) this.#told.delete(oldest)
  }
}
