/**
 * Groups with the name table of sidecars whose agents answer DNS queries: one for each view of services, each cluster, and each of the two
 * type URLs.
 */
import { sameItems } from '../../model/lists.ts'
import { publicViewLike, servicesOfView, type View, type ViewKey } from '../../snapshot/view.ts'
import { type NamePage, nameInfo, namePage, nameTable, pageCount, pageOf } from '../../xds/name-table/name-table.ts'
import type { ProxyClass } from '../../xds/traits.ts'
import { aliasNameTableType, nameTableType } from '../../xds/type-urls.ts'
import { type Built, GroupMaker, type Making } from './making.ts'

/** Identifies a table: the view and cluster that it is made for, and its type URL. */
interface Table {
  readonly viewKey: ViewKey
  readonly clusterId: string
  readonly typeUrl: string
}

/** Hosts by page. */
type Pages = readonly (readonly string[])[]

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
    return { outcomes: [nameTable(this.typeUrl, this.#groups.pages(this.#table))] }
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

  /** All pages of a table. A namespace has the shared pages, except for pages with hosts that it sees differently. */
  pages(table: Table): NamePage[] {
    const { difference } = this.#making.view(table.viewKey)
    if (!difference || difference.services.length === 0) return this.#hosts(table).map((_, index) => this.#page(table, index))
    const shared: Table = { ...table, viewKey: publicViewLike(table.viewKey) }
    const count = this.#hosts(shared).length
    const own = new Set(difference.services.map((host) => pageOf(host, count)))
    return Array.from({ length: count }, (_, index) => (own.has(index) ? this.#ownPage(table, shared, index) : this.#page(shared, index)))
  }

  /** The hosts of a table's view by page. */
  #hosts({ viewKey }: Table): Pages {
    return this.#making.derived(`hosts of names|${viewKey.id}`, () => {
      const hosts = hostsOf(this.#making.view(viewKey))
      const pages = Array.from({ length: pageCount(hosts.length) }, (): string[] => [])
      for (const host of hosts) pages[pageOf(host, pages.length)]?.push(host)
      return pages.map((page) => page.sort())
    })
  }

  /** The hosts of one page. The list stays the same object while its hosts are the same. */
  #hostsOfPage(table: Table, page: number, count: number): readonly string[] {
    const name = `hosts of names|${table.viewKey.id}|${page} of ${count}`
    return this.#making.derived(name, () => this.#hosts(table)[page] ?? [], sameItems)
  }

  #page(table: Table, page: number): NamePage {
    const count = this.#hosts(table).length
    return this.#derivedPage(table, `${page} of ${count}`, (of) => this.#made(of, this.#hostsOfPage(of, page, count)))
  }

  /** A page with hosts that the namespace sees differently: the shared hosts and its own, as the namespace sees them. */
  #ownPage(table: Table, shared: Table, page: number): NamePage {
    const count = this.#hosts(shared).length
    return this.#derivedPage(table, `own ${page} of ${count}`, (of) => {
      const own = (this.#making.view(of.viewKey).difference?.services ?? []).filter((host) => pageOf(host, count) === page)
      return this.#made(of, [...new Set([...this.#hostsOfPage(shared, page, count), ...own])].sort())
    })
  }

  /** A page that all its readers share. The page under the alias type URL is the same page unless it contains names in the alias form. */
  #derivedPage(table: Table, name: string, make: (table: Table) => NamePage): NamePage {
    return this.#making.derived(
      `names|${nameOf(table)}|${name}`,
      () => {
        if (table.typeUrl === nameTableType) return make(table)
        const plain = this.#derivedPage({ ...table, typeUrl: nameTableType }, name, make)
        return plain.hasAlias ? make(table) : plain
      },
      (one, other) => one.version === other.version,
    )
  }

  #made({ viewKey, clusterId, typeUrl }: Table, hosts: readonly string[]): NamePage {
    const view = this.#making.view(viewKey)
    const info = (host: string) => {
      const state = view.service(host)
      return state && nameInfo(state, clusterId)
    }
    return namePage(hosts, info, typeUrl)
  }
}

/** The proxy chooses the text of the cluster id. */
const nameOf = ({ viewKey, clusterId, typeUrl }: Table): string => JSON.stringify([viewKey.id, clusterId, typeUrl])

const hostsOf = ({ egress }: View): string[] => [...new Set(egress.flatMap(({ hosts }) => hosts))]
