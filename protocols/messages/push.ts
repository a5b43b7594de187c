/** Messages between the push queue and the XDS writers (boundary 2), and from sources to the push queue (boundary 1). */
import type { ConfigObject, EndpointSlice, ProxyNode, RegistryId, Service } from '../data.ts'

/**
 * Source to push queue. A source sends the current state of all its objects in a replay when it is linked. `at` is the time at which the
 * source saw the change, in milliseconds of the monotonic clock.
 */
export type SourceEvent =
  /** An object was added or changed, or removed (undefined). */
  | { readonly type: 'ConfigChanged'; readonly key: string; readonly object: ConfigObject | undefined; readonly at: number }
  /** An object exists and is invalid: its last valid state stays in use. If it was never valid, `standIn` is used if it is set. */
  | { readonly type: 'ConfigUnusable'; readonly key: string; readonly standIn: ConfigObject | undefined; readonly at: number }
  /**
   * A service of a registry was added or changed, or removed with its endpoints (undefined). `key` is `<namespace>/<hostname>`. `slices` are
   * all of its endpoints; undefined: those that are known stay.
   */
  | {
      readonly type: 'ServiceChanged'
      readonly registry: RegistryId
      readonly key: string
      readonly service: Service | undefined
      readonly slices: readonly EndpointSlice[] | undefined
      readonly at: number
    }
  /** One slice of the endpoints of a registry's service was added or changed, or removed (undefined). */
  | {
      readonly type: 'EndpointsChanged'
      readonly registry: RegistryId
      readonly key: string
      /** The key of the slice. */
      readonly part: string
      readonly slice: EndpointSlice | undefined
      readonly at: number
    }
  /** The mesh configuration of a source: a `MeshConfig` with its defaults filled in, or undefined if it is withdrawn. */
  | ({ readonly type: 'MeshChanged'; readonly mesh: object | undefined; readonly at: number } & SettingOrigin)
  /** The networks of a source: a `MeshNetworks`, or undefined if they are withdrawn. */
  | ({ readonly type: 'NetworksChanged'; readonly networks: object | undefined; readonly at: number } & SettingOrigin)
  /** The source has the setting and cannot use it: the last value that it gave stays. */
  | { readonly type: 'SettingUnusable'; readonly setting: 'mesh' | 'networks'; readonly source: string; readonly at: number }

/** Where a setting comes from: the source, for example `files`, and the place within it for people, a path. */
export interface SettingOrigin {
  readonly source: string
  readonly place: string
}

/** Writer to push queue. */
export type WriterEvent =
  /** `transport` is the number of the transport connection within the writer; several proxies may share one. */
  | {
      readonly type: 'ProxyConnected'
      readonly connection: string
      readonly transport: number
      readonly node: ProxyNode
      /** The SPIFFE id of the client, and the memory of the node in bytes; undefined if the client was not authenticated. */
      readonly claim?: { readonly identity: string; readonly nodeBytes: number }
    }
  | { readonly type: 'ProxyDisconnected'; readonly connection: string }
  /** A proxy refused a response of a type (NACK). */
  | {
      readonly type: 'ResourcesRefused'
      readonly connection: string
      /** The class of the proxy when the writer received the NACK. */
      readonly classId: string
      readonly typeUrl: string
      /** The resources that the error message names, with the versions that the proxy was sent; may be empty. */
      readonly resources: readonly { readonly name: string; readonly version: string }[]
      /** The error message, at most 4,096 characters. */
      readonly detail: string
      /** Whether the policies of the class differ from those in force when the proxy last acknowledged a response of the type. */
      readonly policiesChanged: boolean
    }
  /** A proxy acknowledged a response of a type of which it refused resources before: these, with the versions that it has now. */
  | {
      readonly type: 'ResourcesAccepted'
      readonly connection: string
      readonly typeUrl: string
      readonly resources: readonly { readonly name: string; readonly version: string }[]
    }
  /** The writer has applied a push and is ready for the next. */
  | { readonly type: 'PushApplied'; readonly push: number }
  /** The writer rejected an update whose base is not its current state, and requests everything. */
  | { readonly type: 'FullStateRequested' }

/** Key-set resolver to push queue. */
export type KeySetEvent =
  /** The current keys of a source (a JSON Web Key Set); undefined if they could not be fetched, and the last ones stay. */
  | { readonly type: 'KeySetChanged'; readonly source: string; readonly keys: string | undefined }
  /** The keys of a source are not fetched, because there is no place for it; it has none. */
  | { readonly type: 'KeySetDropped'; readonly source: string }

/** A key set that is needed: its source, the timeout of a fetch in milliseconds, and the namespaces whose policies name it. */
export interface WantedKeySet {
  readonly source: string
  readonly timeoutMs: number
  readonly namespaces: readonly string[]
}

/** Push queue to key-set resolver: replaces the set of sources that are needed. */
export type ResolverCommand = { readonly type: 'ResolveKeySets'; readonly sources: readonly WantedKeySet[] }

/** A slab: shared memory that slices refer to. */
export interface SlabData {
  readonly id: number
  readonly bytes: SharedArrayBuffer
}

/** The location of an encoded resource, whose slices together are one element of `resources` in a response. */
export interface ResourceData {
  readonly name: string
  /** Hash of the content; also the version of the resource in delta XDS. */
  readonly version: string
  /** Slab, offset and length of each slice, one after the other. */
  readonly slices: readonly number[]
}

/** Changes to a group of resources of one type that classes share. */
export interface GroupUpdate {
  readonly group: string
  /**
   * The numbers of the group's state after this update and before it; `base` 0: the update replaces everything. An update with another base
   * than the current state is rejected.
   */
  readonly sequence: number
  readonly base: number
  /** Sum of the group's resources (`src/xds/slab/sums.ts`), for comparison within the process. */
  readonly version: string
  readonly changed: readonly ResourceData[]
  readonly removed: readonly string[]
  /**
   * The complete set of leaving names, if it changed: names that stay in the group only for a transition period, in which the resource of
   * another group with such a name is used. Undefined: unchanged, or empty in an update that replaces everything.
   */
  readonly leaving?: readonly string[]
}

/** The use of a group by a class. */
export interface GroupUse {
  readonly group: string
  /**
   * Hosts of which the class gets no resource of this group, sorted. The host of a resource follows from its name (`hostOf` in
   * `src/xds/names.ts`).
   */
  readonly hide: readonly string[]
}

/**
 * The resources of a class of proxies: for each type URL, the groups whose resources it gets. If several groups have one name, the resource
 * of the first group in which the name is not leaving is used, or of the first group if it is leaving in all.
 */
export interface Manifest {
  readonly classId: string
  readonly groups: Readonly<Record<string, readonly GroupUse[]>>
  /** A digest of the policies of its workloads; undefined: there are none. */
  readonly policies?: string
}

/** The reasons and the start of a push. */
export interface PushInfo {
  /** Increased with every push of changes. Messages between two such pushes carry the number of the earlier one. */
  readonly id: number
  /** The time at which the first event of the push was seen, in milliseconds of the monotonic clock. */
  readonly startedAt: number
  readonly reasons: readonly string[]
  /** Digest of all configuration objects, for distribution tracking. */
  readonly digest: string
}

/** The changes of a push. */
export interface PushContent {
  /** Whether the push contains everything: groups and classes that are not in it are removed. */
  readonly whole: boolean
  readonly slabs: readonly SlabData[]
  readonly retiredSlabs: readonly number[]
  readonly groups: readonly GroupUpdate[]
  readonly retiredGroups: readonly string[]
  readonly manifests: readonly Manifest[]
  readonly retiredClasses: readonly string[]
  readonly assignments: readonly ClassAssignment[]
}

/** Push queue to writer. */
export type WriterCommand =
  /** Apply the push, then answer with `PushApplied`. */
  | ({ readonly type: 'PublishPush'; readonly push: PushInfo } & PushContent)
  /** An operator requested a full push: every type is sent again. */
  | { readonly type: 'PushAgain'; readonly push: PushInfo }
  /** Close this number of transport connections with all their streams; their proxies reconnect to other writers. */
  | { readonly type: 'ReleaseConnections'; readonly count: number }
  /** Close the stream of a proxy: its identity exceeds a limit. */
  | { readonly type: 'RefuseProxy'; readonly connection: string; readonly reason: string }
  /** Accept streams from now on. */
  | { readonly type: 'OpenListener' }

/** Which class a connection belongs to. */
export interface ClassAssignment {
  readonly connection: string
  readonly classId: string
}
