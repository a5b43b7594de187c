/** The plain data that actors exchange: configuration objects, services and endpoints. Values are never changed once sent. */

/** One configuration object as it was accepted, mesh-owned names in the mesh form. */
export interface ConfigObject<Spec = unknown> {
  readonly kind: string
  /** API group in the mesh form, `networking.mesh.io`. */
  readonly group: string
  readonly version: string
  readonly namespace: string
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
  /** Unix milliseconds; 0 where the source has no creation time. */
  readonly createdAt: number
  readonly generation: number
  readonly spec: Spec
  /** Where the object came from, for messages: `file.yaml#2`. */
  readonly origin: string
}

/** What a port speaks; `unknown` is sniffed. */
export type Protocol = 'udp' | 'tcp' | 'tls' | 'https' | 'http' | 'http2' | 'grpc' | 'grpc-web' | 'mongo' | 'redis' | 'mysql' | 'thrift' | 'unknown'

/** A port of a service. */
export interface ServicePort {
  readonly number: number
  readonly name: string
  readonly protocol: Protocol
  /** Port of the workload when it differs from `number`; 0 when it is the same. */
  readonly targetPort: number
}

/** How the addresses behind a service are found: listed, by DNS, or the original destination of the connection. */
export type Resolution = 'static' | 'dns' | 'passthrough'

/** Which registry a record comes from. */
export interface RegistryId {
  /** Who keeps it: `ServiceEntry`, `Mock` or `Orchestrator`. */
  readonly provider: string
  /** Id of the cluster that it is of; empty for what belongs to no cluster, as entries do. */
  readonly cluster: string
}

/** A service of the mesh, with the registry that it came from. */
export interface Service extends RegistryId {
  readonly hostname: string
  readonly namespace: string
  readonly name: string
  /** Virtual addresses or CIDRs; empty when clients reach it by name or by the wildcard listener. */
  readonly addresses: readonly string[]
  readonly ports: readonly ServicePort[]
  readonly resolution: Resolution
  readonly external: boolean
  /** Namespaces it is visible in; `.` its own, `*` all, `~` none; empty = the mesh default. */
  readonly exportTo: readonly string[]
  readonly serviceAccounts: readonly string[]
  /** Labels that choose workload entries, or undefined when endpoints are listed. */
  readonly selector: Readonly<Record<string, string>> | undefined
  readonly createdAt: number
}

/** One workload behind a service. */
export interface Endpoint {
  /** IP address, host name (DNS resolution) or `unix://` path; empty for a workload that is reached through the gateways of its network alone. */
  readonly address: string
  /** Port numbers by service port name; a port without an entry uses the service's target port. */
  readonly ports: Readonly<Record<string, number>>
  /** Names of the service ports that it serves; all without. */
  readonly serves?: readonly string[]
  readonly labels: Readonly<Record<string, string>>
  /** `region/zone/subzone`, or empty. */
  readonly locality: string
  readonly network: string
  readonly weight: number
  readonly serviceAccount: string
  readonly namespace: string
  readonly workload: string
}

/** What identifies a proxy and selects its configuration; from the node of its first request. */
export interface ProxyNode {
  readonly id: string
  readonly type: 'sidecar' | 'router'
  readonly addresses: readonly string[]
  readonly namespace: string
  readonly domain: string
  /** `[major, minor, patch]`, undefined when absent or unreadable: then it counts as the newest. */
  readonly version: readonly [number, number, number] | undefined
  readonly labels: Readonly<Record<string, string>> | undefined
  readonly network: string
  readonly clusterId: string
  /** `region/zone/subzone` of the node itself, or empty. */
  readonly locality: string
  /** Whether it takes virtual hosts by themselves, apart from the route configuration they belong to (VHDS). */
  readonly takesVirtualHosts: boolean
  /** Metadata with mesh-owned keys in the mesh form, as JSON, without the labels. */
  readonly metadata: Readonly<Record<string, unknown>>
}
