/** Faults as lines of the log: one object may spoil thousands of resources in the same way, and a few of them say it all. */
import { LineBounds } from '../logging/line-bounds.ts'
import type { ResourceFault } from '../model/faults.ts'

/** Words faults, and bounds how many are told. */
export class FaultLog {
  readonly #bounds = new LineBounds()

  /** The line for a fault that was found now (monotonic milliseconds), or undefined when enough was said. */
  line({ type, resource, reason, consequence, objects }: ResourceFault, now: number): string | undefined {
    const told = this.#bounds.take(JSON.stringify([type, objects, reason]), now)
    if (told === 'no') return undefined
    const more = told === 'last' ? '; what more there is of it is on /debug/push_status' : ''
    return `${type} ${resource}: ${reason}; ${consequence}${more}`
  }
}
