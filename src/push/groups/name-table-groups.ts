/**
 * Groups with the name table of sidecars whose agents answer DNS queries: one for each view of services, each cluster, and each of the two
 * type URLs.
 */
import { sameItems } from '../../model/lists.ts'
import { publicViewLike, servicesOfView, type View, type ViewKey } from '../../snapshot/view.ts'
import { type NameTablePart, nameInfo, nameTable, nameTablePart, partCount, partOf } from '../../xds/name-table/name-table.ts'
import type { ProxyClass } from '../../xds/traits.ts'
import { aliasNameTableType, nameTableType } from '../../xds/type-urls.ts'
import { type Built, GroupMaker, type Making } from './making.ts'

/** Identifies a table: the view and cluster that it is made for, and its type URL. */
interface Table {
  readonly viewKey: ViewKey
  readonly clusterId: string
  readonly typeUrl: string
}

/** Hosts by part. */
type Parts = readonly (readonly string[])[]

/** A group of one table. */
class NameTable extends GroupMaker {
  readonly #groups: NameTableGroups
  readonly #table: Table

  constructor(groups: NameTableGroups, table: Table) {
    super({ id: `names|${nameOf(table)}`, typeUrl: table.typeUrl, given: [] })
    this.#groups = groups
    this.#table = table
  }

  make(): Built {
    return { outcomes: [nameTable(this.typeUrl, this.#groups.parts(this.#table))] }
  }
}

/** Makes the groups of name tables. */
export class NameTableGroups {
  readonly #making: Making

  constructor(making: Making) {
    this.#making = making
  }

  /** The makers for a class. */
  makersFor({ traits, viewKey: key }: ProxyClass): GroupMaker[] {
    if (!traits.capturesDns) return []
    const { clusterId } = traits
    const viewKey = servicesOfView(key, this.#making.view(key))
    return [nameTableType, aliasNameTableType].map((typeUrl) => new NameTable(this, { viewKey, clusterId, typeUrl }))
  }

  /** All parts of a table. A namespace has the shared parts, except for parts with hosts that it sees differently. */
  parts(table: Table): NameTablePart[] {
    const { difference } = this.#making.view(table.viewKey)
    if (!difference || difference.services.length === 0) return this.#hosts(table).map((_, index) => this.#part(table, index))
    const shared: Table = { ...table, viewKey: publicViewLike(table.viewKey) }
    const count = this.#hosts(shared).length
    const own = new Set(difference.services.map((host) => partOf(host, count)))
    return Array.from({ length: count }, (_, index) => (own.has(index) ? this.#ownPart(table, shared, index) : this.#part(shared, index)))
  }

  /** The hosts of a table's view by part. */
  #hosts({ viewKey }: Table): Parts {
    return this.#making.derived(`hosts of names|${viewKey.id}`, () => {
      const hosts = hostsOf(this.#making.view(viewKey))
      const parts = Array.from({ length: partCount(hosts.length) }, (): string[] => [])
      for (const host of hosts) parts[partOf(host, parts.length)]?.push(host)
      return parts.map((part) => part.sort())
    })
  }

  /** The hosts of one part. The list stays the same object while its hosts are the same. */
  #hostsOfPart(table: Table, part: number, count: number): readonly string[] {
    const name = `hosts of names|${table.viewKey.id}|${part} of ${count}`
    return this.#making.derived(name, () => this.#hosts(table)[part] ?? [], sameItems)
  }

  #part(table: Table, part: number): NameTablePart {
    const count = this.#hosts(table).length
    return this.#derivedPart(table, `${part} of ${count}`, (of) => this.#made(of, this.#hostsOfPart(of, part, count)))
  }

  /** A part with hosts that the namespace sees differently: the shared hosts and its own, as the namespace sees them. */
  #ownPart(table: Table, shared: Table, part: number): NameTablePart {
    const count = this.#hosts(shared).length
    return this.#derivedPart(table, `own ${part} of ${count}`, (of) => {
      const own = (this.#making.view(of.viewKey).difference?.services ?? []).filter((host) => partOf(host, count) === part)
      return this.#made(of, [...new Set([...this.#hostsOfPart(shared, part, count), ...own])].sort())
    })
  }

  /** A part that all its readers share. The part under the alias type URL is the same part unless it contains names in the alias form. */
  #derivedPart(table: Table, name: string, make: (table: Table) => NameTablePart): NameTablePart {
    return this.#making.derived(
      `names|${nameOf(table)}|${name}`,
      () => {
        if (table.typeUrl === nameTableType) return make(table)
        const plain = this.#derivedPart({ ...table, typeUrl: nameTableType }, name, make)
        return plain.hasAlias ? make(table) : plain
      },
      (one, other) => one.version === other.version,
    )
  }

  #made({ viewKey, clusterId, typeUrl }: Table, hosts: readonly string[]): NameTablePart {
    const view = this.#making.view(viewKey)
    const info = (host: string) => {
      const state = view.service(host)
      return state && nameInfo(state, clusterId)
    }
    return nameTablePart(hosts, info, typeUrl)
  }
}

/** The proxy chooses the text of the cluster id. */
const nameOf = ({ viewKey, clusterId, typeUrl }: Table): string => JSON.stringify([viewKey.id, clusterId, typeUrl])

const hostsOf = ({ egress }: View): string[] => [...new Set(egress.flatMap(({ hosts }) => hosts))]
