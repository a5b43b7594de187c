/**
 * A persistent map from resource name to version: the content of a group at one moment, without bytes. A change creates a new record that
 * shares all unchanged pages, so a record costs little memory, and two records are compared in time proportional to their difference. A
 * stream keeps the record of what was sent on it; no other history is kept.
 */
import { fnv1a } from '../../model/digest.ts'

type Page = ReadonlyMap<string, string>

/** The maximum average number of names in a page. Above it, the number of pages is about doubled. */
const pageSize = 32

const emptyPage: Page = new Map()

/** An immutable record of names and versions. */
export class Contents {
  readonly size: number
  /** The number of pages is a power of two. The page of a name follows from a checksum of the name. */
  readonly #pages: readonly Page[]

  private constructor(pages: readonly Page[], size: number) {
    this.#pages = pages
    this.size = size
  }

  /** The record without names. */
  static readonly empty = new Contents([emptyPage], 0)

  /** Returns the version of a name; undefined if the name is not in the record. */
  get(name: string): string | undefined {
    return this.#pages[pageOf(name, this.#pages.length)]?.get(name)
  }

  /** Yields names and versions. */
  *entries(): Generator<readonly [name: string, version: string]> {
    for (const page of this.#pages) yield* page
  }

  /**
   * Returns the record after a change: resources that were added or have a new version, and names that were removed. Returns the same
   * object if nothing differs.
   */
  with(changed: readonly { readonly name: string; readonly version: string }[], removed: readonly string[]): Contents {
    // More names are set than there are: all names are distributed over the final number of pages at once.
    const isNew = changed.length > this.size
    const pages: Page[] = isNew ? Contents.#spread(this.#pages, this.size + changed.length) : [...this.#pages]
    const own = new Set<Page>(isNew ? pages : [])
    const page = (at: number) => {
      let page = pages[at] as Map<string, string>
      if (!own.has(page)) own.add((pages[at] = page = new Map(page)))
      return page
    }
    let { size } = this
    for (const { name, version } of changed) {
      const at = pageOf(name, pages.length)
      const before = pages[at]?.get(name)
      if (before === version) continue
      page(at).set(name, version)
      if (before === undefined) size++
    }
    for (const name of removed) {
      const at = pageOf(name, pages.length)
      if (pages[at]?.has(name) && page(at).delete(name)) size--
    }
    if (own.size === 0) return this
    const fits = size <= pages.length * pageSize && (pages.length === 1 || size * 8 > pages.length * pageSize)
    return new Contents(fits ? pages : Contents.#spread(pages, size), size)
  }

  /** Distributes the names over as many pages as `size` names need. */
  static #spread(old: readonly Page[], size: number): Map<string, string>[] {
    let count = 1
    while (count * pageSize < size * 2) count *= 2
    const pages = Array.from({ length: count }, () => new Map<string, string>())
    for (const page of old) for (const [name, version] of page) pages[pageOf(name, count)]?.set(name, version)
    return pages
  }

  /** Yields names whose version differs from that in another record, with both versions; undefined: not in the record. */
  *differences(after: Contents): Generator<readonly [name: string, before: string | undefined, after: string | undefined]> {
    if (this === after) return
    const paged = this.#pages.length === after.#pages.length
    const count = Math.max(this.#pages.length, after.#pages.length)
    for (let index = 0; index < count; index++) {
      const [old, now] = [this.#pages[index], after.#pages[index]]
      if (paged && old === now) continue
      for (const [name, version] of old ?? emptyPage) {
        const present = paged ? now?.get(name) : after.get(name)
        if (present !== version) yield [name, version, present]
      }
      for (const [name, version] of now ?? emptyPage) if ((paged ? old?.get(name) : this.get(name)) === undefined) yield [name, undefined, version]
    }
  }
}

/** Returns the index of the page of a name. */
function pageOf(name: string, pages: number): number {
  if (pages === 1) return 0
  const sum = fnv1a(name)
  return (sum ^ (sum >>> 16)) & (pages - 1)
}
