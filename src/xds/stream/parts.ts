/** Parts of responses: the resources of one group that a subscription gets, in few chunks however many resources there are. */
import { deltaHeadLength, writeDeltaHead } from '../slab/wire.ts'
import type { Entry } from './entry.ts'

/** Encoded resources of a response. */
export interface Part {
  readonly chunks: readonly Buffer[]
  readonly length: number
  readonly count: number
}

/** The part without resources. */
export const emptyPart: Part = { chunks: [], length: 0, count: 0 }

/** Returns a part with these resources. */
export function partOf(entries: readonly Entry[], delta: boolean): Part {
  const chunks = delta ? joinWithHeads(entries) : joinChunks(entries)
  return { chunks, length: lengthOf(chunks), count: entries.length }
}

/** The range of a resource in a part, in bytes. */
interface Place {
  readonly start: number
  readonly end: number
}

/**
 * The minimum average number of resources for each gap of consecutive ones that are left out. With fewer, the resources are joined again: a
 * write costs as much as copying a few kilobytes.
 */
const minRun = 16
/** The memory that one place takes, in bytes. */
const placeBytes = 100

/** A part with all resources of a group. Parts without some of these resources share its bytes. */
export class WholePart implements Part {
  readonly chunks: readonly Buffer[]
  readonly length: number
  readonly count: number
  readonly #entries: readonly Entry[]
  readonly #delta: boolean
  /** Created when a resource is first left out. */
  #places: ReadonlyMap<string, Place> | undefined

  constructor(entries: readonly Entry[], delta: boolean) {
    const { chunks, length } = partOf(entries, delta)
    this.chunks = chunks
    this.length = length
    this.count = entries.length
    this.#entries = entries
    this.#delta = delta
  }

  /** The maximum memory of the part besides its chunks, in bytes. */
  get ownBytes(): number {
    return this.count * placeBytes
  }

  /**
   * Returns the part without the resources of these names, all of which are in the part. Returns undefined if the runs between them would
   * be too short. The hosts of a namespace are consecutive: a class that sees them otherwise leaves out one run, however many they are.
   */
  without(names: ReadonlySet<string>): Part | undefined {
    if (names.size === 0) return this
    this.#places ??= placesOf(this.#entries, this.#delta)
    const places = this.#places
    const left = [...names].flatMap((name) => places.get(name) ?? [])
    const holes = joinPlaces(left)
    if (holes.length * minRun > this.count) return undefined
    const chunks = cut(this.chunks, holes)
    return { chunks, length: lengthOf(chunks), count: this.count - left.length }
  }
}

function placesOf(entries: readonly Entry[], delta: boolean): Map<string, Place> {
  const places = new Map<string, Place>()
  let end = 0
  for (const { name, version, length } of entries) {
    const start = end
    end += (delta ? deltaHeadLength(name, version, length) : 0) + length
    places.set(name, { start, end })
  }
  return places
}

/** Returns places in their order, with adjacent places as one. */
function joinPlaces(places: readonly Place[]): Place[] {
  const joined: Place[] = []
  for (const place of places.toSorted((one, other) => one.start - other.start)) {
    const last = joined.at(-1)
    if (last?.end === place.start) joined[joined.length - 1] = { start: last.start, end: place.end }
    else joined.push(place)
  }
  return joined
}

/** Returns chunks without the bytes in the holes, which are sorted and do not overlap. */
function cut(chunks: readonly Buffer[], holes: readonly Place[]): Buffer[] {
  const left: Buffer[] = []
  let offset = 0
  let next = 0
  for (const chunk of chunks) {
    let from = 0
    for (let hole = holes[next]; hole && hole.start < offset + chunk.length; hole = holes[next]) {
      const to = Math.max(0, hole.start - offset)
      if (to > from) left.push(chunk.subarray(from, to))
      from = Math.min(chunk.length, hole.end - offset)
      // The rest of the hole is in the next chunk.
      if (hole.end > offset + chunk.length) break
      next++
    }
    if (from < chunk.length) left.push(from === 0 ? chunk : chunk.subarray(from))
    offset += chunk.length
  }
  return left
}

const lengthOf = (chunks: readonly Buffer[]): number => chunks.reduce((sum, chunk) => sum + chunk.length, 0)

/** Joins the chunks of many entries into few: adjacent slices of memory become one chunk, and small chunks are copied together. */
function joinChunks(entries: readonly Entry[]): Buffer[] {
  const joined: Buffer[] = []
  let small: Buffer[] = []
  let bytes = 0
  const flush = () => {
    const [only] = small
    if (only) joined.push(small.length === 1 ? only : Buffer.concat(small, bytes))
    small = []
    bytes = 0
  }
  let last: Buffer | undefined
  const push = () => {
    if (!last) return
    if (last.length < smallChunk) {
      small.push(last)
      bytes += last.length
    } else {
      flush()
      joined.push(last)
    }
  }
  for (const { chunks } of entries)
    for (const chunk of chunks) {
      if (last && chunk.buffer === last.buffer && chunk.byteOffset === last.byteOffset + last.length)
        last = Buffer.from(last.buffer, last.byteOffset, last.length + chunk.length)
      else {
        push()
        last = chunk
      }
    }
  push()
  flush()
  return joined
}

/** The same for delta, where each entry has a head: small entries are copied behind their heads, and the other chunks are between copies. */
function joinWithHeads(entries: readonly Entry[]): Buffer[] {
  let bytes = 0
  for (const { name, version, length } of entries) bytes += deltaHeadLength(name, version, length) + (length < smallChunk ? length : 0)
  const copies = Buffer.allocUnsafe(bytes)
  const joined: Buffer[] = []
  let start = 0
  let end = 0
  for (const entry of entries) {
    end = writeDeltaHead(copies, end, entry.name, entry.version, entry.length)
    if (entry.length < smallChunk) end = entry.copyTo(copies, end)
    else {
      joined.push(copies.subarray(start, end), ...joinChunks([entry]))
      start = end
    }
  }
  if (end > start) joined.push(copies.subarray(start, end))
  return joined
}

/** Chunks with fewer bytes than this are cheaper to copy than to write separately. */
const smallChunk = 16_384
