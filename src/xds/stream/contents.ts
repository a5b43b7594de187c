/**
 * What a group of resources held at one moment: the version of each name, and no bytes. A change makes a new record that
 * shares all pages that did not change, so a record costs little to keep, however many there are, and two records are
 * compared in the time of what differs. A stream keeps the record of what it was sent: nothing else remembers the past.
 */
import { crc32 } from 'node:zlib'

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

  /** The record after a change: `undefined` takes a name away. The same object when nothing differs. */
  with(changes: Iterable<readonly [name: string, version: string | undefined]>): Contents {
    const pages = [...this.#pages]
    const copied = new Map<number, Map<string, string>>()
    let { size } = this
    for (const [name, version] of changes) {
      const at = pageOf(name, pages.length)
      const before = pages[at]?.get(name)
      if (before === version) continue
      let page = copied.get(at)
      if (!page) {
        copied.set(at, (page = new Map(pages[at])))
        pages[at] = page
      }
      if (version === undefined) page.delete(name)
      else page.set(name, version)
      if (before === undefined) size++
      else if (version === undefined) size--
    }
    if (copied.size === 0) return this
    const fits = size <= pages.length * pageSize && (pages.length === 1 || size * 8 > pages.length * pageSize)
    return fits ? new Contents(pages, size) : Contents.#paged(pages, size)
  }

  static #paged(old: readonly Page[], size: number): Contents {
    let count = 1
    while (count * pageSize < size * 2) count *= 2
    const pages = Array.from({ length: count }, () => new Map<string, string>())
    for (const page of old) for (const [name, version] of page) pages[pageOf(name, count)]?.set(name, version)
    return new Contents(pages, size)
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

const pageOf = (name: string, pages: number): number => (pages === 1 ? 0 : crc32(name) & (pages - 1))
