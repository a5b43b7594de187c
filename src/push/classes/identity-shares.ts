/**
 * Counts what the streams of one identity use together, over all connections and writers, and enforces the limits (docs/xds-protocol.md,
 * "Bounds of an identity"): a workload cannot get more of the control plane by opening more connections. Streams without an identity are
 * limited by connection only.
 */
import { count } from '../../model/counts.ts'

/** The limits of one identity. */
export interface ShareLimits {
  /** The maximum number of streams that are sent configuration. */
  readonly streams: number
  /** The maximum number of proxy classes that the streams belong to. Configuration is made for each class separately. */
  readonly classes: number
  /** The maximum memory that the nodes of the streams take, in bytes. */
  readonly nodeBytes: number
}

/** The use of one identity. */
export interface Share {
  readonly identity: string
  readonly streams: number
  readonly classes: number
  readonly nodeBytes: number
}

/** The identity of a new stream, and the memory that its node takes in bytes. */
export interface Claim {
  readonly identity: string
  readonly nodeBytes: number
}

interface Use {
  streams: number
  nodeBytes: number
  /** The number of streams by class; the class is the one at the time the stream was added. */
  readonly classes: Map<string, number>
}

/** The use of all identities that are connected. */
export class IdentityShares {
  readonly #limits: ShareLimits
  readonly #held = new Map<string, Use>()
  readonly #streams = new Map<string, Claim & { readonly classId: string }>()

  constructor(limits: ShareLimits) {
    this.#limits = limits
  }

  /**
   * Adds a stream under a name that is unique to it. When a limit of the identity would be exceeded, the stream is not added and the reason
   * is returned. `classOf` finds the class of the stream; it is called before anything is made for the stream.
   */
  add(name: string, claim: Claim, classOf: () => string): string | undefined {
    const { identity, nodeBytes } = claim
    this.remove(name)
    const held = this.#held.get(identity) ?? { streams: 0, nodeBytes: 0, classes: new Map<string, number>() }
    const { streams, classes, nodeBytes: bytes } = this.#limits
    if (held.streams >= streams) return `more than ${count(streams, 'stream')} of ${identity}`
    if (held.nodeBytes + nodeBytes > bytes) return `the nodes of ${identity} take more than ${bytes} bytes in memory`
    const classId = classOf()
    if (held.classes.size >= classes && !held.classes.has(classId))
      return `the streams of ${identity} belong to more than ${count(classes, 'class', 'classes')} of proxies`
    held.streams++
    held.nodeBytes += nodeBytes
    held.classes.set(classId, (held.classes.get(classId) ?? 0) + 1)
    this.#held.set(identity, held)
    this.#streams.set(name, { identity, nodeBytes, classId })
    return undefined
  }

  /** Removes a stream. Does nothing for a stream that was not added. */
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

  /** The identities with the most streams, in descending order. */
  largest(count: number): Share[] {
    const shares = [...this.#held].map(([identity, { streams, classes, nodeBytes }]) => ({ identity, streams, classes: classes.size, nodeBytes }))
    return shares.sort((one, other) => other.streams - one.streams).slice(0, count)
  }
}
