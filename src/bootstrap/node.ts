/** The identity of the workload that its proxy reports to the discovery service (docs/agent.md, B1 and B2). */
import { isIp } from '../config/addresses.ts'

/** The role of a proxy: beside a workload, or a gateway. */
export type Role = 'sidecar' | 'router'

/** The node of a workload's proxy. Plain data. */
export interface WorkloadNode {
  readonly role: Role
  /** `<role>~<first address>~<name>.<namespace>~<domain>` (docs/resources.md, P1). */
  readonly id: string
  /** The DNS domain of the workload, `<namespace>.svc.cluster.local` unless the flag sets another. */
  readonly domain: string
  /** The workload's IP addresses, at least one. The first is in the node id. */
  readonly addresses: readonly string[]
  /** Whether all addresses are IPv6. The agent and the proxy then listen on `::1` and `::`. */
  readonly isIpv6Only: boolean
  /** Whether the kernel has IPv6, so that listeners can serve both families. */
  readonly hasIpv6: boolean
  /** The name of the workload (`POD_NAME`). Empty when unknown. */
  readonly name: string
  /** The namespace of the workload (`POD_NAMESPACE`). Empty when unknown. */
  readonly namespace: string
  readonly serviceAccount: string
  /** The cluster of the workload (`MESH_META_CLUSTER_ID`). Empty when unknown. */
  readonly clusterId: string
  /** The name of the workload in Envoy's statistics and traces (`--serviceCluster`). */
  readonly serviceCluster: string
  /** `node.metadata`: plain JSON. */
  readonly metadata: Readonly<Record<string, unknown>>
}

/** Returns the role from the positional arguments of `proxy`. Throws an Error for an unknown role. */
export function roleOf(positional: readonly string[]): Role {
  const [role = 'sidecar'] = positional
  if (role !== 'sidecar' && role !== 'router') throw new Error(`invalid role type ${JSON.stringify(role.slice(0, 100))}: expected sidecar or router`)
  return role
}

const unspecified = new Set(['0.0.0.0', '::'])

/** Whether an interface has no address yet, so that the addresses should be read again. */
export function hasUnspecified(interfaces: readonly string[]): boolean {
  return interfaces.some((address) => unspecified.has(address))
}

/** Link-local addresses are not reachable from other links (RFC 3927, RFC 4291). */
const isLinkLocal = (address: string): boolean => /^(fe[89ab][0-9a-f]:|169\.254\.)/i.test(address)

/**
 * Returns the workload's addresses: `INSTANCE_IP` first when it is an IP address, then those of the interfaces that are up and not
 * loopback, without duplicates and unspecified addresses, and link-local addresses last. Returns the loopback addresses when there are no
 * others.
 */
export function workloadAddresses(instanceIp: string, interfaces: readonly string[]): string[] {
  const first = isIp(instanceIp) ? [instanceIp] : []
  const found = interfaces.filter((address) => isIp(address) && !unspecified.has(address))
  const all = new Set([...first, ...found.filter((address) => !isLinkLocal(address)), ...found.filter(isLinkLocal)])
  return all.size > 0 ? [...all] : ['127.0.0.1', '::1']
}

/** Whether no address is IPv4. */
export function areIpv6Only(addresses: readonly string[]): boolean {
  return addresses.every((address) => address.includes(':'))
}

/** Returns the DNS domain of a workload: the flag's value, or else the domain of the namespace. */
export function domainOf(flag: string, namespace: string): string {
  return flag || `${namespace}.svc.cluster.local`
}

/** Returns the node id. Throws an Error that names a part which would make the id ambiguous or is too long. */
export function nodeId(role: Role, address: string, name: string, namespace: string, domain: string): string {
  for (const [what, part] of Object.entries({ POD_NAME: name, POD_NAMESPACE: namespace, 'flag --domain': domain }))
    if (/[~\s]/.test(part) || part.length > 512)
      throw new Error(
        `${what}: ${JSON.stringify(part.slice(0, 100))} cannot be part of a node id: it has white space or ~, or is longer than 512 characters`,
      )
  return `${role}~${address}~${name}.${namespace}~${domain}`
}
