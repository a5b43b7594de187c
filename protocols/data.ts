/** The plain data that actors exchange: configuration objects, services and endpoints. Values are immutable once sent. */

/** A configuration object as it was accepted, with mesh-owned names in the mesh form. */
export interface ConfigObject<Spec = unknown> {
  readonly kind: string
  /** API group in the mesh form, `networking.mesh.io`. */
  readonly group: string
  readonly version: string
  readonly namespace: string
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  /** Unix milliseconds; 0 if the source has no creation time. */
  readonly createdAt: number
  readonly generation: number
  readonly spec: Spec
  /** The name of the source that has the object, such as `files`. */
  readonly source: string
  /** The cluster of the source; empty for a source without one. */
  readonly cluster: string
  /** The id of the object in its source; it differs from that of an earlier object of the same name. Empty where the source has none. */
  readonly uid: string
  /** The version that the source gave the object; it changes with every change of the object. Empty where the source has none. */
  readonly resourceVersion: string
  /** Where the object stands in its source, for people: file and document, or cluster and resource version. */
  readonly place: string
  /** Of a WorkloadEntry: whether the condition `Healthy` of its status is true; undefined: it has none. */
  readonly healthy?: boolean
  /** The message of that condition, for people. */
  readonly healthMessage?: string
}

/** A namespace of a cluster: its labels. */
export type Namespace = ConfigObject<Readonly<Record<never, never>>>

/** A node of a cluster: its labels. */
export type ClusterNode = ConfigObject<Readonly<Record<never, never>>>

/** A pod of a cluster: its labels, and what the mesh needs of the rest. */
export type Pod = ConfigObject<PodSpec>

/** What the mesh needs of a pod beside its labels. */
export interface PodSpec {
  /** Its IP addresses, the main one first; none before it has one, and after its programs have ended. */
  readonly addresses: readonly string[]
  /** The name of its node; empty before it has one. */
  readonly node: string
  readonly serviceAccount: string
  /** Whether its addresses are those of its node, so that they do not identify it. */
  readonly hostNetwork: boolean
  /** Whether it takes traffic. */
  readonly readiness: Readiness
  /** The TCP ports of its containers that have a name, by name; undefined: none. */
  readonly ports?: Readonly<Record<string, number>>
}

/** A reference to an object, for people and programs. Fields that are not known are empty. */
export interface ObjectReference extends Pick<ConfigObject, 'group' | 'kind' | 'namespace' | 'name' | 'source' | 'cluster' | 'uid' | 'place'> {
  /** The resource version. */
  readonly version: string
}

/** The protocol of a port; `unknown` is detected from the traffic. */
export type Protocol = 'udp' | 'tcp' | 'tls' | 'https' | 'http' | 'http2' | 'grpc' | 'grpc-web' | 'mongo' | 'redis' | 'mysql' | 'thrift' | 'unknown'

/** A port of a service. */
export interface ServicePort {
  readonly number: number
  readonly name: string
  readonly protocol: Protocol
  /** The port of the workload if it differs from `number`, else 0. */
  readonly targetPort: number
  /** The name of the workload's port, where the target port is given by name. */
  readonly targetName?: string
}

/** How a service is reached from outside of its cluster (docs/resources.md, O12). */
export interface OutsideAccess {
  /** The addresses of load balancers, external addresses, or those of nodes; IP addresses and host names. */
  readonly addresses: readonly string[]
  /** By service port the port at these addresses, where it is another one: a port of nodes. */
  readonly ports: Readonly<Record<number, number>>
  /** The network that the service is the gateway of, and the service port of the gateway; undefined: of none. */
  readonly gateway?: { readonly network: string; readonly port: number }
}

/** Which endpoints of a service its callers prefer: those of their zone, or before these those of their node. */
export type TrafficDistribution = 'PreferSameZone' | 'PreferSameNode'

/** How the endpoints of a service are found: from a list, by DNS, or as the original destination of the connection. */
export type Resolution = 'static' | 'dns' | 'passthrough'

/** The registry that a record comes from. */
export interface RegistryId {
  /** The kind of registry: `ServiceEntry`, `Mock` or `Orchestrator`. */
  readonly provider: string
  /** Id of the cluster of the registry; empty for records without a cluster, such as those of ServiceEntries. */
  readonly cluster: string
}

/** A service of the mesh, with the registry that it came from. */
export interface Service extends RegistryId {
  readonly hostname: string
  readonly namespace: string
  readonly name: string
  /** Virtual addresses or CIDRs; empty if clients reach the service by name or through the wildcard listener. */
  readonly addresses: readonly string[]
  /** Its addresses in the clusters in which it has others (docs/resources.md, O13). */
  readonly clusterVIPs?: Readonly<Record<string, readonly string[]>>
  readonly ports: readonly ServicePort[]
  readonly resolution: Resolution
  readonly external: boolean
  /** Namespaces to which it is visible: `.` its own, `*` all, `~` none; an empty list means the default of the mesh. */
  readonly exportTo: readonly string[]
  /** The names in certificates of its endpoints; for a service of the orchestrator those beside the names of the accounts of its endpoints. */
  readonly serviceAccounts: readonly string[]
  /** Service accounts of its namespace that its endpoints may have, beside those that are known of them. */
  readonly ownAccounts?: readonly string[]
  /** The labels of the workloads that are its endpoints; undefined if endpoints are listed. */
  readonly selector: Readonly<Record<string, string>> | undefined
  readonly outside?: OutsideAccess
  readonly distribution?: TrafficDistribution
  readonly createdAt: number
}

/** A workload that serves a service. */
export interface Endpoint {
  /**
   * IP address, host name (DNS resolution) or `unix://` path; empty for a workload that is only reachable through the gateways of its
   * network.
   */
  readonly address: string
  /** Port numbers by the name of the service port. For a port without an entry the target port of the service is used. */
  readonly ports: Readonly<Record<string, number>>
  /** Names of the service ports that it serves; undefined: all. */
  readonly serves?: readonly string[]
  readonly labels: Readonly<Record<string, string>>
  /** `region/zone/subzone`, or empty. */
  readonly locality: string
  readonly network: string
  readonly weight: number
  readonly serviceAccount: string
  readonly namespace: string
  readonly workload: string
  /** The name of the node that it runs on, and the cluster of the node where that is not the one of the registry. */
  readonly node?: string
  readonly cluster?: string
  /** Whether it takes traffic (docs/resources.md, E9); undefined: `ready`. */
  readonly readiness?: Readiness
}

/**
 * Whether a workload takes traffic: `ready`; `terminating`, it still serves and takes traffic only while no other is ready; `unready`, it
 * takes none.
 */
export type Readiness = 'ready' | 'terminating' | 'unready'

/** A part of the endpoints of a service in one registry, which the registry changes as a whole. */
export interface EndpointSlice {
  /** Its name among the slices of the service in the registry. The endpoints of a service are in the order of the keys of its slices. */
  readonly key: string
  /** Slices of one key and version are equal. Empty if the registry has no versions: slices are then compared by content. */
  readonly version: string
  readonly endpoints: readonly Endpoint[]
}

/** The identity of a proxy and the attributes that select its configuration, from the node of its first request. */
export interface ProxyNode {
  readonly id: string
  readonly type: 'sidecar' | 'router'
  readonly addresses: readonly string[]
  readonly namespace: string
  readonly domain: string
  /** `[major, minor, patch]`; undefined if missing or unreadable, which is treated as the newest version. */
  readonly version: readonly [number, number, number] | undefined
  readonly labels: Readonly<Record<string, string>> | undefined
  readonly network: string
  readonly clusterId: string
  /** `region/zone/subzone` of the node itself, or empty. */
  readonly locality: string
  /** Whether it accepts virtual hosts as resources of their own, separate from their route configuration (VHDS). */
  readonly takesVirtualHosts: boolean
  /** Its release of Envoy, `[major, minor]`; undefined: it does not say, or is none. */
  readonly envoy?: readonly [number, number]
  /** Whether it says that it has the network filter for MySQL, which only contrib builds of Envoy have. */
  readonly readsMysql?: boolean
  /** The metadata as JSON, with mesh-owned keys in the mesh form, without the labels. */
  readonly metadata: Readonly<Record<string, unknown>>
}
