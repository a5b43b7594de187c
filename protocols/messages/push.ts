/** What the push queue and the XDS writers tell each other (boundary 2), and what sources tell the push queue (boundary 1). */
import type { ConfigObject, Endpoint, ProxyNode, RegistryId, Service } from '../data.ts'

/** Source to push queue; sources send all of these in a replay when they are linked. `at` is when the source saw the change, in milliseconds of the monotonic clock. */
export type SourceEvent =
  /** An object is there as said, or gone. */
  | { readonly type: 'ConfigChanged'; readonly key: string; readonly object: ConfigObject | undefined; readonly at: number }
  /** An object is there and cannot be used: what it was before stays. Where it never was anything, the stand-in counts, if there is one. */
  | { readonly type: 'ConfigUnusable'; readonly key: string; readonly standIn: ConfigObject | undefined; readonly at: number }
  /** A registry's service is there as said with its endpoints, or gone. `key` is `<namespace>/<hostname>`. */
  | {
      readonly type: 'ServiceChanged'
      readonly registry: RegistryId
      readonly key: string
      readonly service: Service | undefined
      readonly endpoints: readonly Endpoint[]
      readonly at: number
    }
  /** The endpoints of a registry's service are now these. */
  | {
      readonly type: 'EndpointsChanged'
      readonly registry: RegistryId
      readonly key: string
      readonly endpoints: readonly Endpoint[]
      readonly at: number
    }
  | { readonly type: 'MeshChanged' /** A `MeshConfig` with its defaults filled in. */; readonly mesh: object; readonly at: number }
  | { readonly type: 'NetworksChanged' /** A `MeshNetworks`. */; readonly networks: object; readonly at: number }

/** Writer to push queue. */
export type WriterEvent =
  /** `transport` is the number of the transport connection within the writer; several proxies may share one. */
  | {
      readonly type: 'ProxyConnected'
      readonly connection: string
      readonly transport: number
      readonly node: ProxyNode
      /** The SPIFFE id of its caller, and the memory that the node takes; without them where nobody was authenticated. */
      readonly claim?: { readonly identity: string; readonly nodeBytes: number }
    }
  | { readonly type: 'ProxyDisconnected'; readonly connection: string }
  /** A proxy refused a response of a type. */
  | {
      readonly type: 'ResourcesRefused'
      readonly connection: string
      /** The class that it was of. */
      readonly classId: string
      readonly typeUrl: string
      /** The resources that it named, with the versions that it was sent; none when it named none. */
      readonly resources: readonly { readonly name: string; readonly version: string }[]
      /** What it said, at most 4,096 characters. */
      readonly detail: string
      /** Whether the policies of its class are others than when it last took a response of the type. */
      readonly policiesChanged: boolean
    }
  /** The writer has taken over a push; the next may come. */
  | { readonly type: 'PushTaken'; readonly push: number }
  /** The writer was sent a change of something else than what it has, which it refused: it wants everything. */
  | { readonly type: 'EverythingWanted' }

/** Key-set resolver to push queue: the keys of a source are these now (a JSON Web Key Set), or could not be had (undefined). */
export type KeySetEvent = { readonly type: 'KeySetChanged'; readonly source: string; readonly keys: string | undefined }

/** A key set that is wanted: where it comes from, and how long a fetch of it may take, in milliseconds. */
export interface WantedKeySet {
  readonly source: string
  readonly timeoutMs: number
}

/** Push queue to key-set resolver: these sources are wanted, and no others. */
export type ResolverCommand = { readonly type: 'ResolveKeySets'; readonly sources: readonly WantedKeySet[] }

/** Shared memory that slices point into. */
export interface SlabData {
  readonly id: number
  readonly bytes: SharedArrayBuffer
}

/** One encoded resource: where its bytes are, as list elements of a response. */
export interface ResourceData {
  readonly name: string
  /** Hash of the content; also the version of the resource in delta XDS. */
  readonly version: string
  /** Slab, offset and length of each slice, one after the other. */
  readonly slices: readonly number[]
}

/** Changes to a group of resources of one type that classes share. */
export interface GroupPatch {
  readonly group: string
  /** The group's state after this patch; `base` is the state before, 0 = replace everything. A patch of any other base is refused. */
  readonly sequence: number
  readonly base: number
  /** Sum of what is in the group (`src/xds/slab/sums.ts`), for comparison within the process. */
  readonly version: string
  readonly changed: readonly ResourceData[]
  readonly removed: readonly string[]
  /** All names that stay in the group only for a moment, where they are others than before: another group that shows such a name counts. Without this a patch changes nothing about them, and a whole one has none. */
  readonly leaving?: readonly string[]
}

/** A group of resources as a class gets it. */
export interface GroupUse {
  readonly group: string
  /** Hosts of which the class gets nothing of this group, sorted. Which host a resource belongs to follows from its name (`hostOf` in `src/xds/names.ts`). */
  readonly hide: readonly string[]
}

/** What a class of proxies gets: for each type URL, the groups whose resources add up to it. Where several of them show one name, the first counts in which it is not leaving; where it is leaving in all, the first. */
export interface Manifest {
  readonly classId: string
  readonly groups: Readonly<Record<string, readonly GroupUse[]>>
  /** A digest of the policies of its workloads; without it there are none. */
  readonly policies?: string
}

/** Why and since when a push is under way. */
export interface PushInfo {
  /** Grows with every push of changes. What is told between two of them carries the number of the first. */
  readonly id: number
  /** When the first event that led to it was seen, in milliseconds of the monotonic clock. */
  readonly startedAt: number
  readonly reasons: readonly string[]
  /** Digest of all configuration objects, for distribution tracking. */
  readonly ledger: string
}

/** What a push changes in what writers know. */
export interface PushContent {
  /** Whether this is all there is: groups and classes that are not in it are gone. */
  readonly whole: boolean
  readonly slabs: readonly SlabData[]
  readonly retiredSlabs: readonly number[]
  readonly groups: readonly GroupPatch[]
  readonly retiredGroups: readonly string[]
  readonly manifests: readonly Manifest[]
  readonly retiredClasses: readonly string[]
  readonly assignments: readonly ClassAssignment[]
}

/** Push queue to writer. */
export type WriterCommand =
  /** Take this over, then answer with `PushTaken`. */
  | ({ readonly type: 'PublishPush'; readonly push: PushInfo } & PushContent)
  /** A full push was asked for by hand: every type is sent again. */
  | { readonly type: 'PushAgain'; readonly push: PushInfo }
  /** So many transport connections are to go with all of their streams, and come back to another writer. */
  | { readonly type: 'ReleaseConnections'; readonly count: number }
  /** A proxy has to go: its identity has more than one may. */
  | { readonly type: 'RefuseProxy'; readonly connection: string; readonly reason: string }
  /** From now on streams are accepted. */
  | { readonly type: 'OpenListener' }

/** Which class a connection belongs to. */
export interface ClassAssignment {
  readonly connection: string
  readonly classId: string
}
