/** Holds back resources that refer to clusters until the proxy has answered a response with new clusters (docs/resources.md, Q3). */
import { listenerType, routeType, virtualHostType } from '../type-urls.ts'

/** Types that refer to clusters. */
const referring = new Set([listenerType, routeType, virtualHostType])

/** The maximum time that these types are held back, in milliseconds. */
const gateMs = 5000

/** Holds back types of one stream. Times are in milliseconds of any clock. */
export class ClusterGate {
  #until = 0

  /** Called when clusters are sent that the proxy does not have. */
  clustersAdded(now: number): void {
    this.#until = now + gateMs
  }

  /** Called when the proxy has acknowledged or refused a response of clusters. */
  clustersAnswered(): void {
    this.#until = 0
  }

  /** Returns the time at which held-back types may be sent at the latest; undefined if none is held back at `now`. */
  heldUntil(now: number): number | undefined {
    return this.#until > now ? this.#until : undefined
  }

  /** Whether a type is held back. */
  holds(typeUrl: string, now: number): boolean {
    return now < this.#until && referring.has(typeUrl)
  }
}
