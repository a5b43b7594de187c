/**
 * Tells the status writer how many proxies have all of how late a push, and the same of those from which patches of an object are withdrawn
 * (`ProxiesReached`), at most five times a second.
 */
import type { ObjectsWithdrawn, ProxiesReached } from '../../../protocols/messages/object-status.ts'
import type { ProxyVersions } from '../../../src/push/distribution/proxy-versions.ts'
import type { Peer } from '../../runtime/link.ts'
import { after, type Timer } from '../../runtime/timers.ts'

/** The least time between two messages, in milliseconds. */
const tellMs = 200

/** Counts the pushes that proxies have. */
export class ReachedPushes {
  readonly #versions: Pick<ProxyVersions, 'reached' | 'reachedBy'>
  /** The writers that have not told of all their proxies yet. */
  readonly #silent = new Set<string>()
  #peer: Peer<ProxiesReached> | undefined
  #withdrawn: ObjectsWithdrawn['objects'] = []
  #timer: Timer | undefined

  constructor(versions: Pick<ProxyVersions, 'reached' | 'reachedBy'>) {
    this.#versions = versions
  }

  linked(peer: Peer<ProxiesReached>): void {
    this.#peer = peer
    this.changed()
  }

  unlinked(): void {
    this.#peer = undefined
  }

  /** A writer is linked: nothing is said before it has told of its proxies. */
  expects(writer: string): void {
    this.#silent.add(writer)
  }

  /** A writer has told of all its proxies, or is gone. */
  knows(writer: string): void {
    this.#silent.delete(writer)
  }

  /** Sets all objects of which patches are withdrawn from proxies. */
  withdrawn(objects: ObjectsWithdrawn['objects']): void {
    this.#withdrawn = objects
    this.changed()
  }

  /** What proxies have may have changed. */
  changed(): void {
    if (!this.#peer) return
    this.#timer ??= after(tellMs, () => {
      this.#timer = undefined
      if (this.#silent.size === 0) this.#tell()
    }).unref()
  }

  #tell(): void {
    const reached = this.#versions.reachedBy(this.#withdrawn.map(({ connections }) => connections))
    const withdrawn = this.#withdrawn.flatMap(({ key, reason }, index) => {
      const here = reached[index] as Float64Array
      const proxies = here.reduce((sum, value, at) => (at % 2 === 1 ? sum + value : sum), 0)
      return proxies > 0 ? { key, reason, proxies, reached: here } : []
    })
    this.#peer?.tell({ type: 'ProxiesReached', reached: this.#versions.reached(), withdrawn }, 'reached')
  }
}
