/**
 * Formats faults as log lines. One object may break thousands of resources in the same way, so the number of lines with the same cause is
 * limited.
 */
import { LineBounds } from '../logging/line-bounds.ts'
import type { ResourceFault } from '../model/faults.ts'

/** The maximum number of objects whose place a line names. */
const mostPlaced = 3

/** Names the places of the objects of a fault, which the reason of a fault about definitions already does. */
function placed({ type, objects }: ResourceFault, placeOf: (key: string) => string | undefined): string {
  const places =
    type === 'definition' ? [] : objects.slice(0, mostPlaced).flatMap((key) => (placeOf(key) === undefined ? [] : `${key} in ${placeOf(key)}`))
  return places.length === 0 ? '' : ` (${places.join(', ')})`
}

/** The maximum number of losses that are remembered as told. */
const mostTold = 10_000

/** Formats faults and limits how many are logged. A loss is logged once, however often the proxies that have it leave and come again, until its object changes. */
export class FaultLog {
  readonly #bounds = new LineBounds()
  /** The losses that were logged with their objects, the latest last. */
  readonly #told = new Map<string, readonly string[]>()
  /** The losses of each object that were logged. */
  readonly #toldOf = new Map<string, Set<string>>()

  /**
   * Returns the log line for a fault found at `now` (monotonic milliseconds), or undefined when the limit is reached. `placeOf` returns the
   * place of an object, or undefined if it has none.
   */
  line(fault: ResourceFault, now: number, placeOf: (key: string) => string | undefined = () => undefined): string | undefined {
    const { type, resource, reason, consequence, objects, proxy, otherProxies = 0, isLoss } = fault
    const loss = isLoss && JSON.stringify([type, resource, objects, reason])
    if (loss && this.#told.has(loss)) return undefined
    const allowed = this.#bounds.take(JSON.stringify([type, objects, reason]), now)
    if (allowed === 'no') return undefined
    if (loss) this.#remember(loss, objects)
    const more = allowed === 'last' ? '; further faults of this kind are shown at /debug/push_status only' : ''
    const others = otherProxies === 0 ? '' : ` and ${otherProxies} other ${otherProxies === 1 ? 'proxy' : 'proxies'}`
    return `${type} ${resource}${proxy === undefined ? '' : ` by ${proxy}${others}`}: ${reason}; ${consequence}${placed(fault, placeOf)}${more}`
  }

  /** An object (its id) was set or removed, by which its losses end: one that it has afterwards, found again, is logged again. */
  changed(object: string): void {
    for (const loss of this.#toldOf.get(object) ?? []) this.#forget(loss)
  }

  #remember(loss: string, objects: readonly string[]): void {
    this.#told.set(loss, objects)
    for (const object of objects) {
      const losses = this.#toldOf.get(object)
      if (losses) losses.add(loss)
      else this.#toldOf.set(object, new Set([loss]))
    }
    if (this.#told.size <= mostTold) return
    const [oldest] = this.#told.keys()
    if (oldest !== undefined) this.#forget(oldest)
  }

  #forget(loss: string): void {
    for (const object of this.#told.get(loss) ?? []) {
      const losses = this.#toldOf.get(object)
      losses?.delete(loss)
      if (losses?.size === 0) this.#toldOf.delete(object)
    }
    this.#told.delete(loss)
  }
}
