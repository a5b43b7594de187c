/**
 * Formats faults as log lines. One object may break thousands of resources in the same way, so the number of lines with the same cause is
 * limited.
 */
import { LineBounds } from '../logging/line-bounds.ts'
import type { ResourceFault } from '../model/faults.ts'

/** Formats faults and limits how many are logged. */
export class FaultLog {
  readonly #bounds = new LineBounds()

  /** Returns the log line for a fault found at `now` (monotonic milliseconds), or undefined when the limit is reached. */
  line({ type, resource, reason, consequence, objects, proxy, otherProxies = 0 }: ResourceFault, now: number): string | undefined {
    const allowed = this.#bounds.take(JSON.stringify([type, objects, reason]), now)
    if (allowed === 'no') return undefined
    const more = allowed === 'last' ? '; further faults of this kind are shown at /debug/push_status only' : ''
    const others = otherProxies === 0 ? '' : ` and ${otherProxies} other ${otherProxies === 1 ? 'proxy' : 'proxies'}`
    return `${type} ${resource}${proxy === undefined ? '' : ` by ${proxy}${others}`}: ${reason}; ${consequence}${more}`
  }
}
