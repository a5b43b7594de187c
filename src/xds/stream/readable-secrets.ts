/** What a stream needs of the secrets that its proxy may read. */
import type { Plans } from './plans.ts'
import type { Subscription } from './subscription.ts'
import type { TypeState } from './type-state.ts'

/** The secrets of one reader, in a writer. */
export interface ReadableSecrets {
  /** What there is of all that its streams subscribe to. */
  readonly state: TypeState
  /** Makes what is sent of it. */
  readonly plans: Plans
  /** A subscription without names of which nothing is known yet: those are answered when it is. A wildcard stands for nothing here. */
  answerable(subscription: Subscription): Subscription
  /** A stream subscribes to these names now, and to no others. */
  use(stream: object, subscription: Subscription): void
}
