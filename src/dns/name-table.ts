/** The names that the agent answers itself (docs/agent.md, D2, D3): what discovery told, `mesh.networking.nds.v1.NameTable`, and the short forms of it. */
import ipaddr from 'ipaddr.js'
import { orchestratorAlias } from '../names/mesh-names.ts'
import { Fields } from './fields.ts'

/** For whom names are resolved. */
export interface Asker {
  /** DNS domain of the proxy, `<namespace>.svc.cluster.local`. */
  readonly domain: string
  readonly namespace: string
}

/** What is known of a name. */
export interface Found {
  /** The name that the asked one is an alias of; undefined where it is the name itself. */
  readonly alias: string | undefined
  /** IPv4 addresses of 4 bytes, IPv6 addresses of 16. */
  readonly ipv4: readonly Uint8Array[]
  readonly ipv6: readonly Uint8Array[]
}

/** Bytes of a table at most, hosts in it, addresses of one host that are told, and hosts whose addresses stay in memory once they were read. */
const most = { bytes: 64 * 1024 * 1024, hosts: 1_000_000, addresses: 4096, read: 512 }

/** Fields of the message. */
const field = { table: 1, key: 1, value: 2, ips: 1, registry: 2, shortname: 3, namespace: 4 }

/** Names of the registry of an orchestrator: as it is called under the mesh's type URL, and under the alias. */
const orchestrators: ReadonlySet<string> = new Set(['Orchestrator', orchestratorAlias])

/**
 * One table. It keeps the bytes that came and where each host stands in them, and reads the addresses of a host when it is asked for: a table of 20,000
 * hosts takes its own 1.6 MB and 2 MB more. Hosts are found when the first name is asked for; nothing is done with a table that nobody uses.
 */
export class NameTable {
  readonly #bytes: Buffer
  readonly #asker: Asker
  /** The proxy's domain without its namespace, `svc.cluster.local`. */
  readonly #suffix: string
  #index: Index | undefined
  /** Addresses of hosts that were asked for, by their place. */
  readonly #read = new Map<number, Pick<Found, 'ipv4' | 'ipv6'>>()

  /** Throws an Error with the reason where the bytes are no name table, or too many. */
  constructor(table: Uint8Array, asker: Asker) {
    if (table.length > most.bytes) throw new Error(`a name table of ${table.length} bytes, at most ${most.bytes} are allowed`)
    this.#bytes = Buffer.from(table.buffer, table.byteOffset, table.length)
    this.#asker = asker
    const { domain, namespace } = asker
    this.#suffix = (domain.startsWith(`${namespace}.`) ? domain.slice(namespace.length + 1) : domain).toLowerCase()
    // A table that cannot be read must not take the place of one that can.
    let hosts = 0
    const fields = new Fields(this.#bytes, 0, this.#bytes.length)
    while (fields.next()) {
      if (fields.field !== field.table || !fields.isBytes) continue
      if (++hosts > most.hosts) throw new Error(`a name table of more than ${most.hosts} hosts`)
    }
    if (fields.isBroken) throw new Error('the name table is cut short, or not protobuf')
    this.hosts = hosts
  }

  /** Hosts that were told. */
  readonly hosts: number

  /** What is known of a name in lower case; `search` are the search domains of clients, of which the first counts. Undefined: it is not ours to answer. */
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

  /** A name as it stands in the table, or as a shorter form of one there. */
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

  /** Where the host stands of which a name is a short form: `short`, `short.ns`, `short.ns.svc`. */
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
      // `<name>.<namespace>.svc.cluster.local` is found by its parts; what is read of it then has to agree.
      if (
        host.endsWith(end) &&
        host.indexOf('.', host.indexOf('.') + 1) !== host.length - end.length &&
        orchestrators.has(this.#infoAt(start).registry)
      )
        irregular.push(start)
    }
    return { places, shortened: this.#shortened(irregular) }
  }

  /** Short forms of hosts that do not consist of their service's name and namespace. */
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

  /** What is told of the host at a place. */
  #infoAt(at: number): Info {
    const info: Info = { ips: [], registry: '', shortname: '', namespace: '' }
    const entry = new Fields(this.#bytes, at, this.#bytes.length)
    if (!entry.next()) return info
    const fields = new Fields(this.#bytes, entry.from, entry.to)
    while (fields.next()) {
      if (fields.field !== field.value || !fields.isBytes) continue
      const told = new Fields(this.#bytes, fields.from, fields.to)
      while (told.next()) {
        if (!told.isBytes) continue
        if (told.field === field.ips && info.ips.length < most.addresses) info.ips.push(told.text)
        else if (told.field === field.registry) info.registry = told.text
        else if (told.field === field.shortname) info.shortname = told.text.toLowerCase()
        else if (told.field === field.namespace) info.namespace = told.text.toLowerCase()
      }
    }
    return info
  }
}

/** Where hosts stand in a table: by their names, and by short forms that do not follow from these. */
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

/** A host in lower case and without a dot at the end. */
function nameOf(host: string): string {
  const name = host.toLowerCase()
  return name.endsWith('.') ? name.slice(0, -1) : name
}

/** The addresses that can be read, by family. */
function addressesOf(texts: readonly string[]): Pick<Found, 'ipv4' | 'ipv6'> {
  const read = texts.flatMap((text) => (ipaddr.isValid(text) ? [Uint8Array.from(ipaddr.parse(text).toByteArray())] : []))
  return { ipv4: read.filter(({ length }) => length === 4), ipv6: read.filter(({ length }) => length === 16) }
}
