/**
 * The names of services that agents resolve: `mesh.networking.nds.v1.NameTable` (protocols/proto/mesh/networking/nds/v1/nds.proto;
 * docs/resources.md, N1 to N3). A table consists of parts, each with the hosts of one range of hash values: views share the parts that are
 * equal for them, and a change of a host replaces one part.
 */
import ipaddr from 'ipaddr.js'
import { fnv1a } from '../../model/digest.ts'
import { takingTraffic } from '../../model/workload.ts'
import { orchestratorAlias } from '../../names/mesh-names.ts'
import type { ServiceState } from '../../registry/merged-services.ts'
import { Block, lost, type Resource, type Slice } from '../slab/resource.ts'
import { contentVersion } from '../slab/sums.ts'
import { elementHead, fieldHead, textField } from '../slab/wire.ts'
import { aliasNameTableType } from '../type-urls.ts'

/** The name of the only resource of the type. */
const resourceName = 'name-table'

/** The entry of a host. */
export interface NameInfo {
  readonly ips: readonly string[]
  readonly registry: string
  /** Set for services of an orchestrator only; the agent derives shorter names from it. */
  readonly shortname: string
  readonly namespace: string
}

/** Returns the entry of a service for proxies of a cluster; undefined for a wildcard host and for a service without addresses. */
export function nameInfo({ service, shards }: Pick<ServiceState, 'service' | 'shards'>, clusterId: string): NameInfo | undefined {
  const { hostname, namespace, name, provider } = service
  if (hostname.startsWith('*')) return undefined
  const isOrchestrated = provider === 'Orchestrator'
  const fixed = service.addresses.filter((address) => address !== '0.0.0.0')
  const isHeadless = isOrchestrated && service.resolution === 'passthrough' && fixed.length === 0 && service.ports.length > 0
  const addresses = isHeadless ? podAddresses(shards, clusterId) : fixed
  const ips = addresses.filter((address) => ipaddr.isValid(address))
  if (ips.length === 0) return undefined
  return { ips, registry: provider, shortname: isOrchestrated ? name : '', namespace: isOrchestrated ? namespace : '' }
}

/** Returns the addresses of the pods in a cluster, without repetitions; of those in all clusters if the cluster of the proxy is unknown. */
function podAddresses(shards: ServiceState['shards'], clusterId: string): string[] {
  const own = shards.filter(({ cluster }) => clusterId === '' || cluster === clusterId)
  return [...new Set(takingTraffic(own.flatMap(({ endpoints }) => endpoints)).map(({ address }) => address))].sort()
}

/** Encodes an entry of the `table` field. */
function encodeEntry(hostname: string, { ips, registry, shortname, namespace }: NameInfo): Buffer {
  const info = Buffer.concat([...ips.map((ip) => textField(1, ip)), textField(2, registry), textField(3, shortname), textField(4, namespace)])
  const key = textField(1, hostname)
  const value = fieldHead(2, info.length)
  return Buffer.concat([fieldHead(1, key.length + value.length + info.length), key, value, info])
}

/** A part of a table. */
export interface NameTablePart {
  /** Equal for equal parts. */
  readonly version: string
  /** Whether the part has other content under the alias of the type URL. */
  readonly hasAlias: boolean
  /** Returns the bytes in shared memory. Encodes them again if they were freed because they had no uses. */
  block(): Block
}

/** Makes a part of hosts, in their order, for a type URL. */
export function nameTablePart(hosts: readonly string[], info: (host: string) => NameInfo | undefined, typeUrl: string): NameTablePart {
  let hasAlias = false
  const encode = () =>
    Buffer.concat(
      hosts.flatMap((host) => {
        const known = info(host)
        if (!known) return []
        const isOrchestrated = known.registry === 'Orchestrator'
        hasAlias ||= isOrchestrated
        return [encodeEntry(host, isOrchestrated && typeUrl === aliasNameTableType ? { ...known, registry: orchestratorAlias } : known)]
      }),
    )
  const bytes = encode()
  let block = new Block(bytes)
  return {
    version: contentVersion(bytes),
    hasAlias,
    block() {
      if (block.slab === lost) block = new Block(encode())
      return block
    },
  }
}

/** The maximum average number of hosts in a part. */
const partHosts = 64

/** Returns the number of parts of a table with this number of hosts: a power of two. */
export function partCount(hosts: number): number {
  let count = 1
  while (count * partHosts < hosts) count *= 2
  return count
}

/** Returns the index of the part of a host among `count` parts. */
export function partOf(host: string, count: number): number {
  return (fnv1a(host) >>> 0) % count
}

/** Returns the table with these parts as a resource. */
export function nameTable(typeUrl: string, parts: readonly NameTablePart[]): Resource {
  const blocks = parts.map((part) => part.block()).filter(({ length }) => length > 0)
  const head = new Block(
    elementHead(
      typeUrl,
      blocks.reduce((sum, { length }) => sum + length, 0),
    ),
  )
  const version = contentVersion(Buffer.from(parts.map((part) => part.version).join()))
  const slices = [head, ...blocks].map((block): Slice => ({ block, offset: 0, length: block.length }))
  return { name: resourceName, version, slices }
}
