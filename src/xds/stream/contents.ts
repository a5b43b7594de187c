/**
 * What a group of resources held at one moment: the version of each name, and no bytes. A change makes a new record that
 * shares all pages that did not change, so a record costs little to keep, however many there are, and two records are
 * compared in the time of what differs. A stream keeps the record of what it was sent: nothing else remembers the past.
 */
import { fnv1a } from '../../model/digest.ts'

type Page = ReadonlyMap<string, string>

/** Names in a page on average, at most; above it the number of pages doubles. */
const pageSize = 32

const emptyPage: Page = new Map()

/** An immutable record of names and versions. */
export class Contents {
  readonly size: number
  /** As many as a power of two; a name's page follows from its checksum. */
  readonly #pages: readonly Page[]

  private constructor(pages: readonly Page[], size: number) {
    this.#pages = pages
    this.size = size
  }

  /** A record of nothing. */
  static readonly empty = new Contents([emptyPage], 0)

  /** The version of a name, or undefined when it is not there. */
  get(name: string): string | undefined {
    return this.#pages[pageOf(name, this.#pages.length)]?.get(name)
  }

  /** Names and versions. */
  *entries(): Generator<readonly [name: string, version: string]> {
    for (const page of this.#pages) yield* page
  }

  /** The record after a change: resources that came or have these versions now, and names that are gone. The same object when nothing differs. */
  with(changed: readonly { readonly name: string; readonly version: string }[], removed: readonly string[]): Contents {
    // Most names are new: all are put on pages of the right number at once.
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

  /** The same on as many pages as so many names need. */
  static #spread(old: readonly Page[], size: number): Map<string, string>[] {
    let count = 1
    while (count * pageSize < size * 2) count *= 2
    const pages = Array.from({ length: count }, () => new Map<string, string>())
    for (const page of old) for (const [name, version] of page) pages[pageOf(name, count)]?.set(name, version)
    return pages
  }

  /** Names whose version differs in another record, with both versions; undefined = not there. */
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

/** The page of a name. */
function pageOf(name: string, pages: number): number {
  if (pages === 1) return 0
  const sum = fnv1a(name)
  return (sum ^ (sum >>> 16)) & (pages - 1)
}
