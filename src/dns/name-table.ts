/**
 * The names that the agent resolves itself (docs/agent.md, D2, D3): the hosts of discovery's name table,
 * `mesh.networking.nds.v1.NameTable`, and their short forms.
 */
import ipaddr from 'ipaddr.js'
import { orchestratorAlias } from '../names/mesh-names.ts'
import { Fields } from './fields.ts'

/** The workload for which names are resolved. */
export interface Asker {
  /** DNS domain of the proxy, `<namespace>.svc.cluster.local`. */
  readonly domain: string
  readonly namespace: string
}

/** The result of a lookup. */
export interface Found {
  /**
   * The name in the table when the queried one is an alias of it through a search domain. Undefined when the queried name itself was found.
   */
  readonly alias: string | undefined
  /** IPv4 addresses of 4 bytes, IPv6 addresses of 16. */
  readonly ipv4: readonly Uint8Array[]
  readonly ipv6: readonly Uint8Array[]
}

/** The maximum size of a table in bytes, hosts in it, addresses returned for a host, and hosts whose parsed addresses are cached. */
const most = { bytes: 64 * 1024 * 1024, hosts: 1_000_000, addresses: 4096, read: 512 }

/** Field numbers of the message. */
const field = { table: 1, key: 1, value: 2, ips: 1, registry: 2, shortname: 3, namespace: 4 }

/** The values of `registry` for an orchestrator: under the mesh's type URL, and under the alias. */
const orchestrators: ReadonlySet<string> = new Set(['Orchestrator', orchestratorAlias])

/**
 * A name table. The encoded bytes are kept with an index of the hosts' offsets, and the addresses of a host are parsed on its first lookup:
 * a table of 20,000 hosts takes its own 1.6 MB and 2 MB for the index. The index is built on the first lookup, so that an unused table
 * costs nothing.
 */
export class NameTable {
  readonly #bytes: Buffer
  readonly #asker: Asker
  /** The proxy's domain without its namespace, `svc.cluster.local`. */
  readonly #suffix: string
  #index: Index | undefined
  /** The cached addresses of hosts, by offset. */
  readonly #read = new Map<number, Pick<Found, 'ipv4' | 'ipv6'>>()

  /** Throws an Error with the reason when the bytes are not a name table or exceed a limit. */
  constructor(table: Uint8Array, asker: Asker) {
    if (table.length > most.bytes) throw new Error(`a name table of ${table.length} bytes, at most ${most.bytes} are allowed`)
    this.#bytes = Buffer.from(table.buffer, table.byteOffset, table.length)
    this.#asker = asker
    const { domain, namespace } = asker
    this.#suffix = (domain.startsWith(`${namespace}.`) ? domain.slice(namespace.length + 1) : domain).toLowerCase()
    // The table is validated here, so that an invalid table cannot replace a valid one.
    let hosts = 0
    const fields = new Fields(this.#bytes, 0, this.#bytes.length)
    while (fields.next()) {
      if (fields.field !== field.table || !fields.isBytes) continue
      if (++hosts > most.hosts) throw new Error(`a name table of more than ${most.hosts} hosts`)
    }
    if (fields.isBroken) throw new Error('the name table is cut short, or not protobuf')
    this.hosts = hosts
  }

  /** The number of hosts in the table. */
  readonly hosts: number

  /**
   * Looks a name in lower case up. `search` are the clients' search domains, of which only the first is used. Undefined: the query is to be
   * forwarded.
   */
  find(name: string, search: readonly string[]): Found | undefined {
    this.#index ??= this.#build()
    const own = this.#resolve(name, this.#index)
    if (own) return { ...own, alias: undefined }
    const [first] = search
    if (first === undefined || !name.endsWith(`.${first}`)) return undefined
    const alias = name.slice(0, -first.length - 1)
    const found = this.#resolve(alias, this.#index)
    return found && { ...found, alias }
  }

  /** Looks up a name as a host of the table or as a short form of one. */
  #resolve(name: string, { places, shortened }: Index): Omit<Found, 'alias'> | undefined {
    const at = places.get(name) ?? shortened.get(name) ?? this.#regular(name, places)
    if (at === undefined) return undefined
    const { ipv4, ipv6 } = this.#addressesAt(at)
    return ipv4.length + ipv6.length > 0 ? { ipv4, ipv6 } : undefined
  }

  #addressesAt(at: number): Pick<Found, 'ipv4' | 'ipv6'> {
    const known = this.#read.get(at)
    if (known) return known
    const read = addressesOf(this.#infoAt(at).ips)
    if (this.#read.size >= most.read) this.#read.clear()
    this.#read.set(at, read)
    return read
  }

  /** Returns the offset of the host that a name is a regular short form of: `short`, `short.ns`, `short.ns.svc`. */
  #regular(name: string, places: ReadonlyMap<string, number>): number | undefined {
    const { namespace } = this.#asker
    const [service = ''] = this.#suffix.split('.')
    const [short = '', owner = namespace, last, ...more] = name.split('.')
    if (more.length > 0 || (last !== undefined && last !== service)) return undefined
    const at = places.get(`${short}.${owner}.${this.#suffix}`)
    if (at === undefined) return undefined
    const info = this.#infoAt(at)
    return orchestrators.has(info.registry) && info.shortname === short && info.namespace === owner ? at : undefined
  }

  #build(): Index {
    const places = new Map<string, number>()
    const irregular: number[] = []
    const end = `.${this.#suffix}`
    for (const fields = new Fields(this.#bytes, 0, this.#bytes.length); fields.next(); ) {
      if (fields.field !== field.table || !fields.isBytes) continue
      const { start } = fields
      const entry = new Fields(this.#bytes, fields.from, fields.to)
      let host = ''
      while (entry.next()) if (entry.field === field.key && entry.isBytes) host = nameOf(entry.text)
      if (host === '' || host.startsWith('*')) continue
      places.set(host, start)
      // A host `<name>.<namespace>.svc.cluster.local` is found by its parts in `#regular`, which compares them with the host's entry.
      if (
        host.endsWith(end) &&
        host.indexOf('.', host.indexOf('.') + 1) !== host.length - end.length &&
        orchestrators.has(this.#infoAt(start).registry)
      )
        irregular.push(start)
    }
    return { places, shortened: this.#shortened(irregular) }
  }

  /** Returns the short forms of hosts whose names are not composed of their service's name and namespace. */
  #shortened(places: readonly number[]): Map<string, number> {
    const shortened = new Map<string, number>()
    const [service = ''] = this.#suffix.split('.')
    for (const at of places) {
      const { shortname, namespace } = this.#infoAt(at)
      if (shortname === '' || namespace === '') continue
      const names = [`${shortname}.${namespace}`, `${shortname}.${namespace}.${service}`]
      if (namespace === this.#asker.namespace) names.push(shortname)
      for (const name of names) if (!shortened.has(name)) shortened.set(name, at)
    }
    return shortened
  }

  /** Parses the entry of the host at an offset. */
  #infoAt(at: number): Info {
    const info: Info = { ips: [], registry: '', shortname: '', namespace: '' }
    const entry = new Fields(this.#bytes, at, this.#bytes.length)
    if (!entry.next()) return info
    const fields = new Fields(this.#bytes, entry.from, entry.to)
    while (fields.next()) {
      if (fields.field !== field.value || !fields.isBytes) continue
      const value = new Fields(this.#bytes, fields.from, fields.to)
      while (value.next()) {
        if (!value.isBytes) continue
        if (value.field === field.ips && info.ips.length < most.addresses) info.ips.push(value.text)
        else if (value.field === field.registry) info.registry = value.text
        else if (value.field === field.shortname) info.shortname = value.text.toLowerCase()
        else if (value.field === field.namespace) info.namespace = value.text.toLowerCase()
      }
    }
    return info
  }
}

/** The offsets of hosts by their names, and by short forms that cannot be derived from the names. */
interface Index {
  readonly places: ReadonlyMap<string, number>
  readonly shortened: ReadonlyMap<string, number>
}

interface Info {
  readonly ips: string[]
  registry: string
  shortname: string
  namespace: string
}

/** Returns a host in lower case without a trailing dot. */
function nameOf(host: string): string {
  const name = host.toLowerCase()
  return name.endsWith('.') ? name.slice(0, -1) : name
}

/** Parses addresses and groups them by family. Invalid ones are omitted. */
function addressesOf(texts: readonly string[]): Pick<Found, 'ipv4' | 'ipv6'> {
  const read = texts.flatMap((text) => (ipaddr.isValid(text) ? [Uint8Array.from(ipaddr.parse(text).toByteArray())] : []))
  return { ipv4: read.filter(({ length }) => length === 4), ipv6: read.filter(({ length }) => length === 16) }
}
