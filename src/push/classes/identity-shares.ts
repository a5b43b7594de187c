/**
 * What the streams of one identity have together, over all connections and writers (docs/xds-protocol.md, "Bounds of an identity"): a
 * workload that comes over many connections gets no more of the control plane than its share. Streams without an identity are bounded by
 * connection alone.
 */

/** How much one identity may have. */
export interface ShareLimits {
  /** Streams that are sent configuration. */
  readonly streams: number
  /** Classes of proxies that its streams belong to: of each, configuration is made of its own. */
  readonly classes: number
  /** Nodes of its streams, in bytes of memory. */
  readonly nodeBytes: number
}

/** What one identity has. */
export interface Share {
  readonly identity: string
  readonly streams: number
  readonly classes: number
  readonly nodeBytes: number
}

/** A stream, as it comes. */
export interface Claim {
  readonly identity: string
  readonly nodeBytes: number
}

interface Held {
  streams: number
  nodeBytes: number
  /** Streams of each class, as it was when they came. */
  readonly classes: Map<string, number>
}

/** The shares of all identities that are connected. */
export class IdentityShares {
  readonly #limits: ShareLimits
  readonly #held = new Map<string, Held>()
  readonly #streams = new Map<string, Claim & { readonly classId: string }>()

  constructor(limits: ShareLimits) {
    this.#limits = limits
  }

  /**
   * Adds a stream, once for each name, unless its identity would have too much: then returns the reason. `classOf` says what class the
   * stream belongs to, before anything is made for it.
   */
  add(name: string, claim: Claim, classOf: () => string): string | undefined {
    const { identity, nodeBytes } = claim
    this.remove(name)
    const held = this.#held.get(identity) ?? { streams: 0, nodeBytes: 0, classes: new Map<string, number>() }
    const { streams, classes, nodeBytes: bytes } = this.#limits
    if (held.streams >= streams) return `more than ${streams} streams of ${identity}`
    if (held.nodeBytes + nodeBytes > bytes) return `the nodes of ${identity} take more than ${bytes} bytes in memory`
    const classId = classOf()
    if (held.classes.size >= classes && !held.classes.has(classId))
      return `the streams of ${identity} belong to more than ${classes} classes of proxies`
    held.streams++
    held.nodeBytes += nodeBytes
    held.classes.set(classId, (held.classes.get(classId) ?? 0) + 1)
    this.#held.set(identity, held)
    this.#streams.set(name, { identity, nodeBytes, classId })
    return undefined
  }

  /** A stream is over; one that was not added is passed over. */
  remove(name: string): void {
    const stream = this.#streams.get(name)
    const held = stream && this.#held.get(stream.identity)
    if (!held) return
    this.#streams.delete(name)
    held.streams--
    held.nodeBytes -= stream.nodeBytes
    const left = (held.classes.get(stream.classId) ?? 0) - 1
    if (left > 0) held.classes.set(stream.classId, left)
    else held.classes.delete(stream.classId)
    if (held.streams === 0) this.#held.delete(stream.identity)
  }

  /** The identities that have most streams, those with the most first. */
  largest(count: number): Share[] {
    const shares = [...this.#held].map(([identity, { streams, classes, nodeBytes }]) => ({ identity, streams, classes: classes.size, nodeBytes }))
    return shares.sort((one, other) => other.streams - one.streams).slice(0, count)
  }
}
