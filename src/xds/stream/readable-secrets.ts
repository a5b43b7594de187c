/** The interface through which a stream gets the secrets that its proxy may read. */
import type { Plans } from './plans.ts'
import type { Subscription } from './subscription.ts'
import type { TypeState } from './type-state.ts'

/** The secrets of one reader (namespace and service account) in a writer. */
export interface ReadableSecrets {
  /** The known secrets that the streams of the reader subscribe to. */
  readonly state: TypeState
  /** Makes the plans of responses of secrets. */
  readonly plans: Plans
  /**
   * Returns a subscription without the names of which nothing is known yet; these are answered when their state is known. A wildcard covers
   * no secret.
   */
  answerable(subscription: Subscription): Subscription
  /** Replaces the names that a stream subscribes to. */
  use(stream: object, subscription: Subscription): void
}
