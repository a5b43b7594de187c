/** Who the workload is, as its proxy tells the discovery service (docs/agent.md, B1 and B2). */
import { isIp } from '../config/addresses.ts'

/** The role of a proxy: beside a workload, or a gateway. */
export type Role = 'sidecar' | 'router'

/** The node of a workload's proxy. Plain data. */
export interface WorkloadNode {
  readonly role: Role
  /** `<role>~<first address>~<name>.<namespace>~<domain>` (docs/resources.md, P1). */
  readonly id: string
  /** DNS domain of the workload, `<namespace>.svc.cluster.local` unless a flag says otherwise. */
  readonly domain: string
  /** IP addresses of the workload, the one of the node id first; at least one. */
  readonly addresses: readonly string[]
  /** Whether none of the addresses is IPv4: then the agent and the proxy listen on `::1` and `::`. */
  readonly isIpv6Only: boolean
  /** Name of the workload (`POD_NAME`), empty when unknown. */
  readonly name: string
  /** Namespace of the workload (`POD_NAMESPACE`), empty when unknown. */
  readonly namespace: string
  readonly serviceAccount: string
  /** The cluster that the workload is in (`MESH_META_CLUSTER_ID`), empty when unknown. */
  readonly clusterId: string
  /** The name under which Envoy's statistics and tracers know the workload (`--serviceCluster`). */
  readonly serviceCluster: string
  /** `node.metadata`: plain JSON. */
  readonly metadata: Readonly<Record<string, unknown>>
}

/** The role that the positional arguments of `proxy` name. Throws an Error when there is no such role. */
export function roleOf(positional: readonly string[]): Role {
  const [role = 'sidecar'] = positional
  if (role !== 'sidecar' && role !== 'router') throw new Error(`invalid role type ${JSON.stringify(role.slice(0, 100))}: expected sidecar or router`)
  return role
}

const unspecified = new Set(['0.0.0.0', '::'])

/** Whether an interface is still waiting for its address; then the list is worth reading again. */
export function hasUnspecified(interfaces: readonly string[]): boolean {
  return interfaces.some((address) => unspecified.has(address))
}

/** Nobody beyond the link reaches such an address (RFC 3927, RFC 4291). */
const isLinkLocal = (address: string): boolean => /^(fe[89ab][0-9a-f]:|169\.254\.)/i.test(address)

/**
 * The addresses of the workload: `INSTANCE_IP` first when it is an IP address, then those of the interfaces that are up and not loopback,
 * without repetition and without unspecified ones, those of the link alone last; those of the loopback interface when there are no others.
 */
export function workloadAddresses(instanceIp: string, interfaces: readonly string[]): string[] {
  const first = isIp(instanceIp) ? [instanceIp] : []
  const found = interfaces.filter((address) => isIp(address) && !unspecified.has(address))
  const all = new Set([...first, ...found.filter((address) => !isLinkLocal(address)), ...found.filter(isLinkLocal)])
  return all.size > 0 ? [...all] : ['127.0.0.1', '::1']
}

/** Whether none of the addresses is IPv4. */
export function areIpv6Only(addresses: readonly string[]): boolean {
  return addresses.every((address) => address.includes(':'))
}

/** The DNS domain of a workload: the one of the flag, else that of its namespace. */
export function domainOf(flag: string, namespace: string): string {
  return flag || `${namespace}.svc.cluster.local`
}

/** The node id. Throws an Error that names the part which would make it unreadable. */
export function nodeId(role: Role, address: string, name: string, namespace: string, domain: string): string {
  for (const [what, part] of Object.entries({ POD_NAME: name, POD_NAMESPACE: namespace, 'flag --domain': domain }))
    if (/[~\s]/.test(part) || part.length > 512)
      throw new Error(
        `${what}: ${JSON.stringify(part.slice(0, 100))} cannot be part of a node id: it has white space or ~, or is longer than 512 characters`,
      )
  return `${role}~${address}~${name}.${namespace}~${domain}`
}
