/** Parses the node in a proxy's first request (docs/resources.md, P1 to P5). */
import ipaddr from 'ipaddr.js'
import type { ProxyNode } from '../../protocols/data.ts'
import { canonicalMetadata, type MeshNames } from '../names/mesh-names.ts'
import { isObjectName } from '../names/object-names.ts'

/** A node that cannot be served. The message is sent to the proxy. */
export class BadNode extends Error {}

/** The fields of `envoy.config.core.v3.Node` that are used. */
export interface RawNode {
  readonly id: string
  readonly metadata: Readonly<Record<string, unknown>>
  readonly locality: { readonly region: string; readonly zone: string; readonly subZone: string } | undefined
  /** `user_agent_name`, and `[major, minor]` of `user_agent_build_version`. */
  readonly agent?: { readonly name: string; readonly version: readonly [number, number] } | undefined
  /** Whether the list of its extensions has the network filter for MySQL. */
  readonly readsMysql?: boolean
}

/**
 * The first Envoy release that accepts virtual hosts (VHDS) over the aggregated stream. Earlier releases open a separate stream for them.
 */
const virtualHostsSince = [1, 40] as const

/**
 * The maximum sizes of parts of a node: bytes, and the numbers of labels and addresses. Data of the node is contained in every resource
 * made for the proxy.
 */
const limits = { id: 2048, locality: 1024, label: 1024, labels: 512, addresses: 64 }

/** Metadata entries that resources are made from, with their maximum size in bytes. */
const metadataLimits: ReadonlyMap<string, number> = new Map([
  ...['SERVER', 'CLIENT'].flatMap((side) => ['CERT_CHAIN', 'KEY', 'ROOT_CERT'].map((name): [string, number] => [`TLS_${side}_${name}`, 4096])),
  ['REQUESTED_NETWORK_VIEW', 4096],
  ...['NAMESPACE', 'NETWORK', 'CLUSTER_ID', 'MESH_ID', 'MESH_VERSION', 'IDLE_TIMEOUT', 'INTERCEPTION_MODE', 'ROUTER_MODE'].map(
    (name): [string, number] => [name, 1024],
  ),
])

function checkSize(field: string, text: string, most: number): void {
  const bytes = Buffer.byteLength(text)
  if (bytes > most) throw new BadNode(`${field} has ${bytes} bytes, at most ${most} are allowed`)
}

/** Parses the node that opens a stream. `delta`: whether it is a delta stream. Throws {@link BadNode} with the reason. */
export function readNode(node: RawNode, names: MeshNames, delta: boolean): ProxyNode {
  if (node.id === '') throw new BadNode('missing node ID')
  checkSize('node ID', node.id, limits.id)
  const parts = node.id.split('~')
  if (parts.length !== 4) throw new BadNode(`node ID ${JSON.stringify(node.id.slice(0, 200))} must have four parts separated by ~`)
  const [type, address, , domain] = parts as [string, string, string, string]
  if (type !== 'sidecar' && type !== 'router') throw new BadNode(`node type ${JSON.stringify(type.slice(0, 50))} is neither sidecar nor router`)
  // Labels are kept only once, because they are the largest part of most nodes.
  const { LABELS, ...metadata } = canonicalMetadata(node.metadata)
  for (const [name, most] of metadataLimits) checkSize(`node metadata ${name}`, text(metadata[name]), most)
  const labels = readLabels(LABELS)
  const locality = node.locality ? [node.locality.region, node.locality.zone, node.locality.subZone].join('/').replace(/\/+$/, '') : ''
  checkSize('node locality', locality, limits.locality)
  return {
    id: node.id,
    type,
    addresses: readAddresses(text(metadata.INSTANCE_IPS), address),
    namespace: readNamespace(text(metadata.NAMESPACE), domain),
    domain,
    version: readVersion(text(metadata.MESH_VERSION)),
    labels: labels && names.canonicalKeys(labels),
    network: text(metadata.NETWORK),
    clusterId: text(metadata.CLUSTER_ID),
    locality,
    takesVirtualHosts: delta && takesVirtualHosts(node.agent),
    ...(node.agent?.name === 'envoy' && { envoy: node.agent.version }),
    ...(node.readsMysql && { readsMysql: true }),
    metadata,
  }
}

/** The name of a proxy, `<pod>.<namespace>`, by its node id; the id if it has another form. */
export const nameOfNode = (nodeId: string): string => nodeId.split('~')[2] || nodeId

/** The name of a proxy, the third part of its node id. */
export const proxyName = ({ id }: Pick<ProxyNode, 'id'>): string => id.split('~')[2] ?? ''

function takesVirtualHosts(agent: RawNode['agent']): boolean {
  if (agent?.name !== 'envoy') return false
  const [major, minor] = agent.version
  return major > virtualHostsSince[0] || (major === virtualHostsSince[0] && minor >= virtualHostsSince[1])
}

/** Returns the namespace of a node (docs/resources.md, P3). Empty if it has none. */
function readNamespace(given: string, domain: string): string {
  const [label = '', ...others] = domain.split('.')
  const namespace = given || (others.length > 0 ? label : '')
  if (namespace !== '' && !isObjectName(namespace))
    throw new BadNode(
      `${given === '' ? 'node ID: the domain' : 'node metadata NAMESPACE:'} ${JSON.stringify(namespace.slice(0, 60))} is not a valid namespace name`,
    )
  return namespace
}

function readAddresses(list: string, fallback: string): string[] {
  if (list !== '') {
    const addresses = list.split(',', limits.addresses + 1).map((entry) => entry.trim())
    if (addresses.length > limits.addresses) throw new BadNode(`INSTANCE_IPS: more than ${limits.addresses} addresses`)
    for (const entry of addresses)
      if (!ipaddr.isValid(entry)) throw new BadNode(`INSTANCE_IPS: ${JSON.stringify(entry.slice(0, 60))} is not an IP address`)
    return addresses
  }
  if (!ipaddr.isValid(fallback)) throw new BadNode(`no valid IP address in node ID or INSTANCE_IPS (got ${JSON.stringify(fallback.slice(0, 60))})`)
  return [fallback]
}

/** Formats a version as it was read: without a patch number when it had none. */
export const versionText = (version: readonly number[] | undefined): string | undefined =>
  version?.filter((part) => part !== Number.MAX_SAFE_INTEGER).join('.')

function readVersion(version: string): [number, number, number] | undefined {
  const match = /^(?:release-)?(\d{1,5})\.(\d{1,5})(?:\.(\d{1,5}))?/.exec(version)
  return match ? [Number(match[1]), Number(match[2]), match[3] === undefined ? Number.MAX_SAFE_INTEGER : Number(match[3])] : undefined
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '')

function readLabels(value: unknown): Record<string, string> | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const entries = Object.entries(value)
  if (entries.length > limits.labels) throw new BadNode(`node metadata LABELS: more than ${limits.labels} labels`)
  for (const [key, label] of entries) checkSize(`node metadata LABELS: ${key.slice(0, 60)}`, `${key}=${label}`, limits.label)
  return Object.fromEntries(Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
}
