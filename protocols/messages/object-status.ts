/**
 * The status of configuration objects in their cluster (docs/status.md): what there is of it, what proxies have taken, what analysis says of
 * objects, and the orders to write it.
 */

/** The status of an object, as the server has it. */
export interface HeldStatus {
  /** Undefined where there is none. */
  readonly observedGeneration: number | undefined
  /** All conditions, those of others too, as JSON; empty where there is no list of them. */
  readonly conditions: string
  /** `validationMessages` as JSON; empty where there are none. */
  readonly messages: string
}

/** An object of a cluster that this control plane reads. */
export interface MeshObject {
  /** `<Kind>/<namespace>/<name>`. */
  readonly key: string
  /** The group as it is written (it may be the alias), the version and the plural name that it was read with. */
  readonly group: string
  readonly version: string
  readonly plural: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
  readonly resourceVersion: string
  /** `metadata.generation`. */
  readonly generation: number
  /** Why this generation cannot be used, so that an earlier one stays in use; empty: it can be. */
  readonly fault: string
  /** Undefined where it has none. */
  readonly status: HeldStatus | undefined
}

/** Source of a cluster to status writer: an object was added or changed, or removed (undefined). `id` is unique among the objects of the cluster. */
export interface MeshObjectEvent {
  readonly type: 'MeshObjectChanged'
  readonly id: string
  readonly object: MeshObject | undefined
}

/** A generation of an object that is in a push. */
export interface PublishedObject {
  readonly key: string
  readonly uid: string
  /** `metadata.generation`; 0: the object is gone, or not one of a cluster. */
  readonly generation: number
  /** Whether it is for proxies what its last generation was: then that push still counts. */
  readonly isSame: boolean
}

/** Push queue to status writer: all changes of these objects up to now are in this push, or changed nothing for any proxy after it. */
export interface ObjectsPublished {
  readonly type: 'ObjectsPublished'
  readonly push: number
  readonly objects: readonly PublishedObject[]
}

/** An object of which patches are withdrawn from proxies of a replica, since they refuse them. */
export interface WithdrawnObject {
  readonly key: string
  /** The number of these proxies. */
  readonly proxies: number
  /** What one of them says. */
  readonly reason: string
}

/** Push queue to distribution: all objects of which patches are withdrawn from proxies, and from which connections (`connectionName`). */
export interface ObjectsWithdrawn {
  readonly type: 'ObjectsWithdrawn'
  readonly objects: readonly (Pick<WithdrawnObject, 'key' | 'reason'> & { readonly connections: readonly string[] })[]
}

/** An object of which patches are withdrawn, with the push that each of these proxies has: such a proxy may be behind, too. */
export interface WithdrawnHere extends WithdrawnObject {
  readonly reached: ProxiesReached['reached']
}

/** Distribution to status writer: how many connected proxies have all types of how late a push, and which objects they have without their patches. */
export interface ProxiesReached {
  readonly type: 'ProxiesReached'
  /** The number of a push and of the proxies that have it and nothing later, in pairs, by the number of the push. */
  readonly reached: Float64Array
  readonly withdrawn: readonly WithdrawnHere[]
}

/** A generation of an object of which replicas ask each other how many proxies have it. */
export interface AskedGeneration {
  /** `<Kind>/<namespace>/<name>`. */
  readonly key: string
  readonly uid: string
  readonly generation: number
}

/** The number of proxies of a replica or of several, and of those that have each generation, in the order in which these were asked for. */
export interface CountedProxies {
  readonly all: number
  readonly have: readonly number[]
  /** What these proxies refuse, of all objects; undefined: a replica of an earlier version does not tell it. */
  readonly withdrawn?: readonly WithdrawnObject[]
}

/** The counts of all other replicas, and the names of those that have not answered. */
export interface OthersCounted extends CountedProxies {
  readonly silent: readonly string[]
}

/** A message of analysis about an object. */
export interface AnalysisMessage {
  /** `IST0101`. */
  readonly code: string
  /** `ReferencedResourceNotFound`. */
  readonly name: string
  readonly level: 'error' | 'warning' | 'info'
  /** The field; empty: the whole object. */
  readonly path: string
  readonly message: string
}

/**
 * Analysis to status writer: an object has these messages now, all of them; none: it is all right; undefined: nothing is known of it, and what its
 * status says of it is left as it is. An actor that emits it (`ObjectAnalysed` in the table of actors) tells of every object of which it knows something,
 * in a replay when it is linked, and later of those only whose messages change. It needs no regard for rates: the last state counts.
 */
export interface ObjectAnalysed {
  readonly type: 'ObjectAnalysed'
  /** `<Kind>/<namespace>/<name>`. */
  readonly key: string
  readonly messages: readonly AnalysisMessage[] | undefined
}

/** An operation of a JSON Patch. */
export interface PatchOperation {
  readonly op: 'test' | 'add' | 'remove'
  readonly path: string
  readonly value?: unknown
}

/** Asks the main thread to write the status of an object, as the leader of a term. */
export interface StatusOrder extends Pick<MeshObject, 'group' | 'version' | 'plural' | 'namespace' | 'name'> {
  readonly term: number
  readonly patch: readonly PatchOperation[]
}

/** What came of it. */
export type StatusOutcome =
  | { readonly outcome: 'written'; readonly resourceVersion: string }
  /** The object is gone. */
  | { readonly outcome: 'gone' }
  /** Somebody else has written its conditions meanwhile, or another object has its name. */
  | { readonly outcome: 'conflict' }
  /** The term is over. */
  | { readonly outcome: 'lost' }
  /** `concerns`: the object alone, all objects of its resource (the role forbids it, or it has no status), or all (the server cannot be reached). */
  | { readonly outcome: 'failed'; readonly reason: string; readonly concerns: 'object' | 'resource' | 'all' }

/** Configuration of the status writer. */
export interface StatusWriterConfig {
  /** Whether the condition `Reconciled`, and whether messages of analysis are written. */
  readonly reconciled: boolean
  readonly analysis: boolean
  /** Writes a second (0: no limit), and at once. */
  readonly perSecond: number
  readonly burst: number
  /** How long after its start it does not say what proxies have, in milliseconds: they connect again after a restart of the service. */
  readonly settleMs: number
  /** Whether there are other replicas whose proxies count too (`MESHD_REPLICA_ADDRESS`). */
  readonly others: boolean
}
