/**
 * The explanation of a resource of a proxy. The push queue gathers the part of the mesh that may concern the resource; a thread of a pool makes
 * the resource from that part, with and without each object.
 */
import type { ConfigObject, EndpointSlice, ProxyNode, RegistryId, Service } from '../data.ts'

/** A service of a registry without objects of its own. */
export interface RegistryService {
  readonly registry: RegistryId
  /** `<namespace>/<hostname>`. */
  readonly key: string
  readonly service: Service
  readonly slices: readonly EndpointSlice[]
}

/** A fault or loss of the present configuration. */
export interface ToldFault {
  readonly resource: string
  readonly objects: readonly string[]
  readonly reason: string
  readonly consequence: string
}

/** The part of the mesh that may concern a resource of a proxy. */
export interface ExplainInput {
  /** `Features`. */
  readonly features: object
  readonly domain: string
  readonly lockedKeys: string
  readonly plugins: readonly string[]
  readonly optOuts: readonly string[]
  /** `MeshConfig` and `MeshNetworks`. */
  readonly mesh: object
  readonly networks: object
  readonly keySets: readonly (readonly [source: string, keys: string])[]
  readonly node: ProxyNode
  readonly typeUrl: string
  readonly name: string
  /** Whether the proxy has a resource of this name, and a digest of it; undefined for a large one. */
  readonly exists: boolean
  readonly digest: string | undefined
  readonly objects: readonly ConfigObject[]
  /** Definitions of these objects by other sources, which do not count. */
  readonly leftOut: readonly { readonly object: ConfigObject; readonly reason: string }[]
  readonly services: readonly RegistryService[]
  /** The number of hosts and VirtualServices that may concern the resource too and were left out, because there are too many. */
  readonly otherHosts: number
  /** Faults and losses that name one of the objects. */
  readonly told: readonly ToldFault[]
}

/** An object and what it has to do with the resource. */
export interface ExplainedObject {
  /** The key of a configuration object, or of a service of a registry that of a kind `Service`, with its host as the name. */
  readonly key: string
  readonly namespace: string
  readonly source: string
  readonly cluster: string
  readonly uid: string
  readonly version: string
  readonly place: string
  /**
   * What would become of the resource without the object: `removed`, `changed`; `added`: it has no resource of this name because of the
   * object; `same`: it was considered and left out.
   */
  readonly without: 'removed' | 'changed' | 'added' | 'same'
  /** Why it was left out; empty for the others. */
  readonly reason: string
}

/** The explanation of a resource. */
export interface Explained {
  readonly exists: boolean
  /**
   * Whether what was made from the gathered objects is what the proxy has. Otherwise something else of the mesh has a part in it, or the proxy
   * refused something.
   */
  readonly isComplete: boolean
  readonly objects: readonly ExplainedObject[]
  /** The number of objects that were not tried for lack of time. */
  readonly untried: number
  readonly otherHosts: number
}
