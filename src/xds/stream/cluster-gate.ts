/** What refers to clusters waits until new clusters were taken (docs/resources.md, Q3). */
import { listenerType, routeType, virtualHostType } from '../type-urls.ts'

/** Types that refer to clusters. */
const referring = new Set([listenerType, routeType, virtualHostType])

/** How long they wait for new clusters to be taken, in milliseconds. */
const gateMs = 5000

/** The order of types on one stream. Times in milliseconds of any clock. */
export class ClusterGate {
  #until = 0

  /** Clusters are sent that the proxy does not have. */
  clustersAdded(now: number): void {
    this.#until = now + gateMs
  }

  /** The proxy has taken or refused its clusters. */
  clustersAnswered(): void {
    this.#until = 0
  }

  /** When what is held back at this time may be sent after all; undefined when nothing is. */
  heldUntil(now: number): number | undefined {
    return this.#until > now ? this.#until : undefined
  }

  /** Whether a type waits. */
  holds(typeUrl: string, now: number): boolean {
    return now < this.#until && referring.has(typeUrl)
  }
}
