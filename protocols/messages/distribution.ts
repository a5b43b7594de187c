/**
 * What became of the configuration: pushes as the push queue made them, and which version of each type each proxy has acknowledged, refused
 * or still owes, as the writers see it. Both go to the actor `distribution`.
 */
import type { ProxyEventsTaken, ReportProxyEvents } from './proxy-events.ts'

/** An object whose change caused a push. Fields that are not known are empty. */
export interface CausingObject {
  /** The key of a configuration object; of a service of a registry that of a kind `Service`, with its host as the name. */
  readonly key: string
  readonly namespace: string
  /** The generation of the object in the push; 0: it was removed, or it is no configuration object. */
  readonly generation: number
  /** The source of the object, or the registry of the service. */
  readonly source: string
  readonly cluster: string
  readonly uid: string
  /** The version that the source gave the object. */
  readonly version: string
  /** Where the object stands in its source. */
  readonly place: string
}

/** Push queue to distribution. */
export type PushEvent =
  /** A push of changes went to the writers. */
  | { readonly type: 'PushPublished'; readonly push: PublishedPush }
  /** Configuration objects changed, and nothing of what any proxy is sent. At most one a second. */
  | { readonly type: 'NothingPublished'; readonly changes: ConfigChanges }
  /** The objects that may be the cause of a refusal of a proxy: those that the refused resources of the type were made from. */
  | {
      readonly type: 'RefusalBlamed'
      readonly writer: string
      readonly connection: string
      readonly typeUrl: string
      readonly objects: readonly string[]
    }

/** Numbers of configuration objects by what happened to them. */
export interface ChangeCounts {
  readonly added: number
  readonly changed: number
  readonly removed: number
}

/** A file of configuration, or an object that is in none, such as `VirtualService shop/reviews` of a cluster; and what happened there. */
export interface ChangedPlace extends ChangeCounts {
  readonly name: string
  readonly isFile: boolean
}

/** The configuration objects that changed together. */
export interface ConfigChanges {
  /** The first places. */
  readonly places: readonly ChangedPlace[]
  /** The number of further places. */
  readonly otherPlaces: number
  /** All objects, also those of further places. */
  readonly all: ChangeCounts
  /** The first of those that select proxies, and none that is connected: `Gateway shop/public`. */
  readonly selectingNone: readonly string[]
}

/** A push of changes. */
export interface PublishedPush {
  readonly id: number
  /** When the first change was seen, in milliseconds of the monotonic clock. */
  readonly startedAt: number
  /** When the push went to the writers, in milliseconds of the monotonic clock. */
  readonly publishedAt: number
  /** How long making it took, in milliseconds. */
  readonly makingMs: number
  readonly reasons: readonly string[]
  /** The first objects that changed, and the number of further changes. */
  readonly objects: readonly CausingObject[]
  readonly otherObjects: number
  /** The configuration objects among them. Undefined: there are none, or this is the first push, which has all that there is. */
  readonly changes: ConfigChanges | undefined
  readonly types: readonly PushedType[]
  /** Resources that were made, and their bytes as encoded. Each counts once, however many proxies it is sent to. */
  readonly resources: number
  readonly bytes: number
}

/** The resources of a type that a push made or removed, and the bytes of those that it made. */
export interface PushedType {
  readonly typeUrl: string
  readonly resources: number
  readonly removed: number
  readonly bytes: number
}

/** A version of the configuration: a push, and the digest of all objects at the time when a response was made. */
export interface ConfigVersion {
  readonly push: number
  readonly digest: string
}

/** The state of one type of resources on the stream of a proxy. */
export interface TypeReport {
  readonly typeUrl: string
  /** The last acknowledged version. Undefined: the proxy has all that the writer has to send it (`ProxiesReported.applied`). */
  readonly acknowledged?: ConfigVersion
  /** Whether the last response was refused, and the one before it is in use. */
  readonly isRefused: boolean
}

/** A response of a push that a proxy refused. */
export interface RefusalReport {
  readonly push: number
  readonly typeUrl: string
  /** The resources that the proxy named; may be empty. */
  readonly resources: readonly string[]
  /** The reason that the proxy gave, at most 300 characters. */
  readonly reason: string
}

/** What changed of a proxy since the writer's last report of it. What is not given is as it was; lists of what happened since are empty then. */
export interface ProxyReport {
  readonly connection: string
  /** The number of the connection in `ProxiesReported.answered`. */
  readonly number: number
  /** Given in the first report, and when the class changes. */
  readonly proxy?: ReportedProxy
  readonly types?: readonly TypeReport[]
  /** Pushes that changed something for the proxy and that it has not answered. All of them, the oldest first. */
  readonly owed?: readonly number[]
  /** Pushes that it has acknowledged since, and how long after their start, in milliseconds. */
  readonly acknowledged?: readonly (readonly [push: number, ms: number])[]
  readonly refused?: readonly RefusalReport[]
  /** Bytes that were sent to it since, by push. */
  readonly sent?: readonly (readonly [push: number, bytes: number])[]
}

/** Who a proxy is. */
export interface ReportedProxy {
  readonly nodeId: string
  readonly namespace: string
  readonly classId: string
}

/** Writer to distribution. The next one is sent when this one was taken. */
export type ProxiesReported = {
  readonly type: 'ProxiesReported'
  /** Whether these are all proxies of the writer. */
  readonly isWhole: boolean
  /** The version that the writer has applied. */
  readonly applied: ConfigVersion
  readonly proxies: readonly ProxyReport[]
  /**
   * Proxies of which there is nothing to say but that they have acknowledged all that they owed, as four numbers each time: the connection, the
   * push, how long after its start in milliseconds, the bytes that were sent for it. Mostly there is nothing else, and this costs a tenth.
   */
  readonly answered: Float64Array
  /** Connections that are closed. */
  readonly gone: readonly string[]
}

/** Distribution to writer: the last report was taken; and what concerns events of proxies. */
export type DistributionCommand = { readonly type: 'ReportTaken' } | ReportProxyEvents | ProxyEventsTaken

/** What of the proxies of one namespace became of a push. */
export interface PushTally {
  readonly namespace: string
  /** The numbers of proxies that the push changed something for: they acknowledged it, refused it, were closed before they answered, or owe an answer. */
  readonly acknowledged: number
  readonly refused: number
  readonly gone: number
  readonly outstanding: number
  /** The number of classes of these proxies, and the bytes that were sent to them. */
  readonly classes: number
  readonly bytesSent: number
  /** The slowest of those that acknowledged it, and some that owe an answer; at most ten of each. */
  readonly slowest: readonly PushProxy[]
  readonly waiting: readonly PushProxy[]
  /** How long the proxies took that acknowledged it (`src/push/distribution/answer-times.ts`). Undefined: a replica of an earlier release does not tell it. */
  readonly times?: readonly number[]
  /** At most twenty refusals. */
  readonly refusals: readonly PushRefusal[]
}

/** A proxy that a push changed something for. */
export interface PushProxy {
  readonly connection: string
  readonly nodeId: string
  /** The time from the start of the push to the answer, in milliseconds; to now while there is none. */
  readonly ms: number
}

/** A refusal of a push. */
export interface PushRefusal extends Omit<RefusalReport, 'push'> {
  readonly connection: string
  readonly nodeId: string
  /** Keys of the objects that may be the cause. */
  readonly objects: readonly string[]
}

/** A push and what became of it. */
export interface PushState extends Omit<PublishedPush, 'startedAt' | 'publishedAt' | 'changes' | 'types'> {
  /** When the first change was seen, in Unix milliseconds, and how long after it the push went to the writers. */
  readonly startedAt: number
  readonly publishedAfterMs: number
  /** Whether all writers have applied it, so that all proxies that are to acknowledge it are counted. Undefined, like `types`: a replica of an earlier release does not tell it. */
  readonly isApplied?: boolean
  readonly types?: readonly PushedType[]
  readonly tallies: readonly PushTally[]
}

/** The pushes that changed after a cursor. */
export interface PushUpdates {
  readonly pushes: readonly PushState[]
  /** To ask on from. */
  readonly cursor: string
  /** The number of pushes after the cursor that are no longer kept. */
  readonly dropped: number
}
