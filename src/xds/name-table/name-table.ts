/**
 * What agents resolve the names of services with: `mesh.networking.nds.v1.NameTable` (protocols/proto/mesh/networking/nds/v1/nds.proto;
 * docs/resources.md, N1 to N3). A table is made of pages, each with the hosts of one part of all hash values: the tables of several views share
 * the pages in which they are alike, and a change makes one page anew.
 */
import ipaddr from 'ipaddr.js'
import { fnv1a } from '../../model/digest.ts'
import { orchestratorAlias } from '../../names/mesh-names.ts'
import type { ServiceState } from '../../registry/merged-services.ts'
import { Block, lost, type Resource, type Slice } from '../slab/resource.ts'
import { contentVersion } from '../slab/sums.ts'
import { elementHead, fieldHead, textField } from '../slab/wire.ts'
import { aliasNameTableType } from '../type-urls.ts'

/** The one resource of the type. */
const resourceName = 'name-table'

/** What is told of a host. */
export interface NameInfo {
  readonly ips: readonly string[]
  readonly registry: string
  /** Of services of an orchestrator only; the agent makes shorter names of them. */
  readonly shortname: string
  readonly namespace: string
}

/** What is told of a service, to proxies of a cluster; undefined for a wildcard and where there is no address. */
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

/** The addresses of the pods in a cluster, each once; of those in all clusters where the proxy does not say in which it is. */
function podAddresses(shards: ServiceState['shards'], clusterId: string): string[] {
  const own = shards.filter(({ cluster }) => clusterId === '' || cluster === clusterId)
  return [...new Set(own.flatMap(({ endpoints }) => endpoints.map(({ address }) => address)))].sort()
}

/** An entry of the `table` field. */
function encodeEntry(hostname: string, { ips, registry, shortname, namespace }: NameInfo): Buffer {
  const info = Buffer.concat([...ips.map((ip) => textField(1, ip)), textField(2, registry), textField(3, shortname), textField(4, namespace)])
  const key = textField(1, hostname)
  const value = fieldHead(2, info.length)
  return Buffer.concat([fieldHead(1, key.length + value.length + info.length), key, value, info])
}

/** A part of a table. */
export interface NamePage {
  /** Equal for equal pages. */
  readonly version: string
  /** Whether it is another under the alias of the type. */
  readonly hasAlias: boolean
  /** The bytes in shared memory; made again where they were dropped since nobody used them. */
  block(): Block
}

/** Makes a page of hosts, in their order, for the form of a type URL. */
export function namePage(hosts: readonly string[], info: (host: string) => NameInfo | undefined, typeUrl: string): NamePage {
  let hasAlias = false
  const encode = () =>
    Buffer.concat(
      hosts.flatMap((host) => {
        const told = info(host)
        if (!told) return []
        const isOrchestrated = told.registry === 'Orchestrator'
        hasAlias ||= isOrchestrated
        return [encodeEntry(host, isOrchestrated && typeUrl === aliasNameTableType ? { ...told, registry: orchestratorAlias } : told)]
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

/** Hosts of one page, on average at most. */
const pageHosts = 64

/** The number of pages of a table with so many hosts: a power of two. */
export function pageCount(hosts: number): number {
  let count = 1
  while (count * pageHosts < hosts) count *= 2
  return count
}

/** The page of a host among so many. */
export function pageOf(host: string, count: number): number {
  return (fnv1a(host) >>> 0) % count
}

/** The table of some pages as a resource. */
export function nameTable(typeUrl: string, pages: readonly NamePage[]): Resource {
  const blocks = pages.map((page) => page.block()).filter(({ length }) => length > 0)
  const head = new Block(
    elementHead(
      typeUrl,
      blocks.reduce((sum, { length }) => sum + length, 0),
    ),
  )
  const version = contentVersion(Buffer.from(pages.map((page) => page.version).join()))
  const slices = [head, ...blocks].map((block): Slice => ({ block, offset: 0, length: block.length }))
  return { name: resourceName, version, slices }
}
