/**
 * How much of another cluster is kept (docs/operation.md, J9): a number of objects, and an amount of memory. A server can list objects without
 * end, and what is kept of them is in the memory of this process.
 */

/** The bounds. Bytes are those of memory, estimated. */
export interface MostOfCluster {
  readonly objects: number
  readonly bytes: number
}

/** The longest key of an object, and the longest resource version: names have 253 characters, versions are numbers of 64 bits. */
const longest = { key: 600, version: 64 }

/** Whether only a liar has such a key, or such a version. */
export const isTooLong = (key: string, version: string): boolean => key.length > longest.key || version.length > longest.version

/** What is kept of an object that cannot be used: its key, its version and what is said of it. */
const unusableBytes = 4096

/** Why an object is not taken, for people, and whether a state of it is known, which then stays. */
export interface NotTaken {
  readonly reason: string
  readonly isKnown: boolean
}

/** Counts what is kept of one cluster, by the path of the resource and the key of the object. */
export class ClusterBounds {
  readonly #most: MostOfCluster
  readonly #held = new Map<string, Map<string, number>>()
  #objects = 0
  #bytes = 0

  constructor(most: MostOfCluster) {
    this.#most = most
  }

  /** What is kept at present. */
  get held(): MostOfCluster {
    return { objects: this.#objects, bytes: this.#bytes }
  }

  /**
   * Takes an object, or another state of it; `bytes` undefined: one that cannot be used, whose last state stays. Returns why it is not taken: then everything
   * is as before.
   */
  take(path: string, key: string, version: string, bytes: number | undefined): NotTaken | undefined {
    const held = this.#held.get(path) ?? new Map<string, number>()
    const before = held.get(key)
    const size = bytes ?? before ?? unusableBytes
    const reason = this.#refusal(before, key, version, size)
    if (reason !== undefined) return { reason, isKnown: before !== undefined }
    held.set(key, size)
    this.#held.set(path, held)
    this.#objects += before === undefined ? 1 : 0
    this.#bytes += size - (before ?? 0)
    return undefined
  }

  /** An object is kept no more. */
  free(path: string, key: string): void {
    const held = this.#held.get(path)
    const bytes = held?.get(key)
    if (bytes === undefined) return
    held?.delete(key)
    this.#objects--
    this.#bytes -= bytes
  }

  /** Nothing of a resource is kept any more. */
  freeAll(path: string): void {
    for (const key of [...(this.#held.get(path)?.keys() ?? [])]) this.free(path, key)
    this.#held.delete(path)
  }

  #refusal(before: number | undefined, key: string, version: string, bytes: number): string | undefined {
    if (isTooLong(key, version)) return `names have at most ${longest.key} characters, and versions ${longest.version}`
    if (before === undefined && this.#objects >= this.#most.objects)
      return `more than ${this.#most.objects} objects of the cluster are not kept (PILOT_REMOTE_CLUSTER_MAX_OBJECTS)`
    if (bytes > (before ?? 0) && this.#bytes + bytes - (before ?? 0) > this.#most.bytes)
      return `more than ${this.#most.bytes} bytes of the objects of the cluster are not kept (PILOT_REMOTE_CLUSTER_MAX_BYTES)`
    return undefined
  }
}
