/**
 * A persistent map from resource name to version: the content of a group at one moment, without bytes. A change creates a new record that
 * shares all unchanged buckets, so a record costs little memory, and two records are compared in time proportional to their difference. A
 * stream keeps the record of what was sent on it; no other history is kept.
 */
import { fnv1a } from '../../model/digest.ts'

type Bucket = ReadonlyMap<string, string>

/** The maximum average number of names in a bucket. Above it, the number of buckets is about doubled. */
const bucketSize = 32

const emptyBucket: Bucket = new Map()

/** An immutable record of names and versions. */
export class Contents {
  readonly size: number
  /** The number of buckets is a power of two. The bucket of a name follows from a checksum of the name. */
  readonly #buckets: readonly Bucket[]

  private constructor(buckets: readonly Bucket[], size: number) {
    this.#buckets = buckets
    this.size = size
  }

  /** The record without names. */
  static readonly empty = new Contents([emptyBucket], 0)

  /** Returns the version of a name; undefined if the name is not in the record. */
  get(name: string): string | undefined {
    return this.#buckets[bucketOf(name, this.#buckets.length)]?.get(name)
  }

  /** Yields names and versions. */
  *entries(): Generator<readonly [name: string, version: string]> {
    for (const bucket of this.#buckets) yield* bucket
  }

  /**
   * Returns the record after a change: resources that were added or have a new version, and names that were removed. Returns the same
   * object if nothing differs.
   */
  with(changed: readonly { readonly name: string; readonly version: string }[], removed: readonly string[]): Contents {
    // More names are set than there are: all names are distributed over the final number of buckets at once.
    const isNew = changed.length > this.size
    const buckets: Bucket[] = isNew ? Contents.#spread(this.#buckets, this.size + changed.length) : [...this.#buckets]
    const own = new Set<Bucket>(isNew ? buckets : [])
    const bucket = (at: number) => {
      let bucket = buckets[at] as Map<string, string>
      if (!own.has(bucket)) own.add((buckets[at] = bucket = new Map(bucket)))
      return bucket
    }
    let { size } = this
    for (const { name, version } of changed) {
      const at = bucketOf(name, buckets.length)
      const before = buckets[at]?.get(name)
      if (before === version) continue
      bucket(at).set(name, version)
      if (before === undefined) size++
    }
    for (const name of removed) {
      const at = bucketOf(name, buckets.length)
      if (buckets[at]?.has(name) && bucket(at).delete(name)) size--
    }
    if (own.size === 0) return this
    const fits = size <= buckets.length * bucketSize && (buckets.length === 1 || size * 8 > buckets.length * bucketSize)
    return new Contents(fits ? buckets : Contents.#spread(buckets, size), size)
  }

  /** Distributes the names over as many buckets as `size` names need. */
  static #spread(old: readonly Bucket[], size: number): Map<string, string>[] {
    let count = 1
    while (count * bucketSize < size * 2) count *= 2
    const buckets = Array.from({ length: count }, () => new Map<string, string>())
    for (const bucket of old) for (const [name, version] of bucket) buckets[bucketOf(name, count)]?.set(name, version)
    return buckets
  }

  /** Yields names whose version differs from that in another record, with both versions; undefined: not in the record. */
  *differences(after: Contents): Generator<readonly [name: string, before: string | undefined, after: string | undefined]> {
    if (this === after) return
    const isAligned = this.#buckets.length === after.#buckets.length
    const count = Math.max(this.#buckets.length, after.#buckets.length)
    for (let index = 0; index < count; index++) {
      const [old, now] = [this.#buckets[index], after.#buckets[index]]
      if (isAligned && old === now) continue
      for (const [name, version] of old ?? emptyBucket) {
        const present = isAligned ? now?.get(name) : after.get(name)
        if (present !== version) yield [name, version, present]
      }
      for (const [name, version] of now ?? emptyBucket)
        if ((isAligned ? old?.get(name) : this.get(name)) === undefined) yield [name, undefined, version]
    }
  }
}

/** Returns the index of the bucket of a name. */
function bucketOf(name: string, buckets: number): number {
  if (buckets === 1) return 0
  const sum = fnv1a(name)
  return (sum ^ (sum >>> 16)) & (buckets - 1)
}
