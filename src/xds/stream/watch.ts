/** The state of one type on one stream: the subscription, the last responses and how they were answered. */
import type { ReportedVersions } from './reported-versions.ts'
import type { keptList, Subscription } from './subscription.ts'
import type { Holding } from './type-state.ts'

/** A refused response (NACK). */
export interface Rejection {
  readonly typeUrl: string
  readonly nonce: string
  readonly version: string
  readonly code: number
  readonly message: string
  /** Time of the NACK, in milliseconds of the clock that the caller of the session uses. */
  readonly at: number
}

/** The state of one type on one stream. */
export interface Watch {
  readonly typeUrl: string
  subscription: Subscription
  /** The last list of names in the state of the world, for comparison with the next; a long list may have been collected. */
  asked: ReturnType<typeof keptList> | undefined
  /** Whether no name was ever given for the type, in which case an empty list means everything (S1). */
  legacy: boolean
  /** Subscribed names without a resource at the time of subscription, and the bytes that they count for in the budget. */
  unknown: ReadonlySet<string>
  unknownBytes: number
  /** Set if the names are to be checked once the class is known; `resumed` if the proxy subscribed to them on an earlier stream. */
  unchecked: 'new' | 'resumed' | undefined
  /** Names and versions that were sent; undefined before the first response. */
  sent: Holding | undefined
  version: string
  nonce: string
  nonceAcked: string
  sentAt: number
  /**
   * Whether the proxy may lack resources that it was sent, because it refused a delta response with them: of a response without clusters
   * or listeners Envoy may have taken none. The next change of the type is sent with all resources.
   */
  isInDoubt: boolean
  /** Whether everything is to be sent because the proxy asked for it. */
  dueInFull: boolean
  /** Names that are to be sent because the proxy asked for them or because their clusters warm again. */
  readonly dueNames: Set<string>
  /**
   * Listeners that the proxy cannot change in place: those that are to be removed and then sent again, and the refused versions of all that
   * were, by name. Undefined while there was none, which holds for nearly all proxies.
   */
  replaced: { readonly due: Set<string>; readonly versions: Map<string, string> } | undefined
  /** Subscribed names that stale lists left out. They are sent again if the next list has them: the proxy has dropped the resources. */
  readonly leftOut: Set<string>
  /** `initial_resource_versions`, until the first response is made. */
  initialVersions: ReportedVersions | undefined
  lastError: Rejection | undefined
  /** Digest of the policies of the class at the time of the last acknowledged response; undefined before the first ACK. */
  acknowledgedPolicies: string | undefined
  /** The holding and the policies of unanswered responses, by nonce: of the last response, and in delta of some before it. */
  readonly unanswered: Map<string, { readonly sent: Holding; readonly policies: string }>
  /** Whether flow control held back a push since the last response. */
  delayed: boolean
}

/** Creates a watch on which nothing was sent yet. The unknown names of an earlier watch of the same type still count in the budget. */
export function openWatch(typeUrl: string, subscription: Subscription, legacy: boolean, resumed: boolean, before: Watch | undefined): Watch {
  return {
    typeUrl,
    subscription,
    asked: undefined,
    legacy,
    unknown: before?.unknown ?? new Set(),
    unknownBytes: before?.unknownBytes ?? 0,
    unchecked: resumed && !before ? 'resumed' : 'new',
    sent: undefined,
    version: '',
    nonce: '',
    nonceAcked: '',
    sentAt: 0,
    isInDoubt: false,
    dueInFull: false,
    dueNames: new Set(),
    replaced: undefined,
    leftOut: new Set(),
    initialVersions: undefined,
    lastError: undefined,
    unanswered: new Map(),
    acknowledgedPolicies: before?.acknowledgedPolicies,
    delayed: false,
  }
}
