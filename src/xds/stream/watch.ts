/** What is known of one type on one stream: what the proxy wants of it, what it was sent, what it took. */
import type { keptList, Subscription } from './subscription.ts'
import type { Holding } from './type-state.ts'

/** A refused response. */
export interface Rejection {
  readonly typeUrl: string
  readonly nonce: string
  readonly version: string
  readonly code: number
  readonly message: string
  /** Milliseconds of the clock that whoever keeps it goes by. */
  readonly at: number
}

/** One type on one stream. */
export interface Watch {
  readonly typeUrl: string
  subscription: Subscription
  /** The list that it comes from in the state of the world, as long as it is remembered. */
  asked: ReturnType<typeof keptList> | undefined
  /** No name was ever given, which means everything. */
  legacy: boolean
  /** Names that did not exist when they were asked for, and the bytes they count for. */
  unknown: ReadonlySet<string>
  unknownBytes: number
  /** The names are to be looked at once the class is known; `resumed` if the proxy says that it had them from an earlier stream. */
  unchecked: 'new' | 'resumed' | undefined
  /** What the proxy has, as far as it was sent: versions by name, and no bytes. */
  sent: Holding | undefined
  version: string
  nonce: string
  nonceAcked: string
  sentAt: number
  /** Everything is to be sent, because the proxy asked. */
  dueInFull: boolean
  /** These are to be sent, because the proxy asked or because its clusters warm again. */
  readonly dueNames: Set<string>
  /** What the proxy said that it has, until it is answered, and the bytes that it counts for. */
  initialVersions: Map<string, string> | undefined
  versionBytes: number
  lastError: Rejection | undefined
  /** A digest of the policies of the class by which the last response was made that was taken; undefined before. */
  policiesTaken: string | undefined
  /** What the last unanswered responses left the proxy with, by nonce: the last, and over delta some before it. */
  readonly unanswered: Map<string, { readonly sent: Holding; readonly policies: string }>
  /** Whether a push has been held back since the last answer. */
  delayed: boolean
}

/** A watch that nothing was sent for yet; what its predecessor of the same type counts for goes on to count. */
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
    dueInFull: false,
    dueNames: new Set(),
    initialVersions: undefined,
    versionBytes: 0,
    lastError: undefined,
    unanswered: new Map(),
    policiesTaken: before?.policiesTaken,
    delayed: false,
  }
}
