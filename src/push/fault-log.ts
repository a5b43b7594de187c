/** Faults as lines of the log: one object may spoil thousands of resources in the same way, and a few of them say it all. */
import type { ResourceFault } from '../model/faults.ts'

/** How many lines are written in a window of so many milliseconds: of one reason for one set of objects, and of all. */
const bounds = { alike: 5, all: 200, windowMs: 10_000 }

/** Words faults, and bounds how many are told. */
export class FaultLog {
  readonly #alike = new Map<string, number>()
  #all = 0
  #windowEnd = 0

  /** The line for a fault that was found now (monotonic milliseconds), or undefined when enough was said. */
  line({ type, resource, reason, consequence, objects }: ResourceFault, now: number): string | undefined {
    if (now >= this.#windowEnd) {
      this.#windowEnd = now + bounds.windowMs
      this.#alike.clear()
      this.#all = 0
    }
    const kind = JSON.stringify([type, objects, reason])
    const alike = (this.#alike.get(kind) ?? 0) + 1
    if (alike > bounds.alike || this.#all >= bounds.all) return undefined
    this.#alike.set(kind, alike)
    this.#all++
    const more = alike === bounds.alike || this.#all === bounds.all ? '; what more there is of it is on /debug/push_status' : ''
    return `${type} ${resource}: ${reason}; ${consequence}${more}`
  }
}
