/**
 * Has the addresses of Ingresses written into their status while this process leads (docs/resources.md, I7). The main thread writes, one
 * Ingress at a time (`writeIngressStatus`).
 */
import type { IngressStatusAnswer, IngressStatusOrder } from '../../../../protocols/messages/orchestrator.ts'
import type { ClusterRegistry } from '../../../../src/orchestrator/cluster-registry.ts'
import { ingressAddresses } from '../../../../src/orchestrator/ingress-addresses.ts'
import type { IngressObject } from '../../../../src/orchestrator/ingress-objects.ts'
import type { AskFor } from '../../../runtime/actor.ts'
import type { ScopedLogger } from '../../../runtime/logger.ts'
import { pause } from '../../../runtime/timers.ts'
import { FollowedTerm } from '../../leader/followed-term.ts'
import type { IngressPart } from './ingress-part.ts'

/** How often differences are looked for, and how long the next attempt waits after a failure, in milliseconds. */
const intervals = { checkMs: 1000, failedMs: 10_000 }

/** What the writing is made of. */
export interface StatusParts {
  readonly ingresses: IngressPart
  readonly registry: ClusterRegistry
  /** The namespace of the gateways that serve Ingresses. */
  readonly namespace: string
  readonly log: ScopedLogger
  readonly ask: AskFor
  write(order: IngressStatusOrder): Promise<IngressStatusAnswer>
}

/** Keeps the status of Ingresses. */
export class IngressStatus {
  readonly #parts: StatusParts
  /** The Ingresses whose status was right when they were for this mesh. */
  readonly #kept = new Set<string>()
  /** The version of an Ingress that was written to: its status is not known before it comes as another one. */
  readonly #writtenAt = new Map<string, string>()
  readonly #term: FollowedTerm
  #said = ''
  #isClosed = false

  constructor(parts: StatusParts) {
    this.#parts = parts
    this.#term = new FollowedTerm({ ask: parts.ask, duty: 'ingress', log: parts.log, changed: () => undefined })
    void this.#keep()
  }

  close(): void {
    this.#isClosed = true
    this.#term.close()
  }

  async #keep(): Promise<void> {
    while (!this.#isClosed) {
      const isWell = this.#term.now === 0 || (await this.#writeAll(this.#term.now))
      await pause(isWell ? intervals.checkMs : intervals.failedMs)
    }
  }

  /** Writes what differs. Resolves to whether all of it could be written. */
  async #writeAll(term: number): Promise<boolean> {
    const { ingresses, registry, namespace } = this.#parts
    const { settings, isListed } = ingresses
    const addresses = settings && isListed ? ingressAddresses(registry, settings, namespace) : undefined
    if (!addresses) return true
    const ours = new Map(ingresses.conversion.ours())
    for (const [key, ingress] of ours) {
      this.#kept.add(key)
      if (!(await this.#write(term, key, ingress, addresses))) return false
    }
    for (const key of this.#kept) {
      const ingress = ours.has(key) ? undefined : ingresses.conversion.ingress(key)
      if (ours.has(key)) continue
      // It is for somebody else now, who may have written other addresses.
      const isAsWritten = ingress !== undefined && sameAddresses(ingress.addresses, addresses)
      if (isAsWritten && !(await this.#write(term, key, ingress, []))) return false
      this.#kept.delete(key)
    }
    return true
  }

  async #write(term: number, key: string, ingress: IngressObject, addresses: readonly string[]): Promise<boolean> {
    const { namespace, name, uid, resourceVersion } = ingress
    if (sameAddresses(ingress.addresses, addresses)) {
      this.#writtenAt.delete(key)
      return true
    }
    const written = `${resourceVersion} ${addresses.join()}`
    if (this.#isClosed || term !== this.#term.now || this.#writtenAt.get(key) === written) return true
    const { result, reason } = await this.#parts
      .write({ term, namespace, name, uid, addresses })
      .catch((error: Error): IngressStatusAnswer => ({ result: 'failed', reason: error.message }))
    if (result === 'written') this.#writtenAt.set(key, written)
    const line = result === 'failed' ? `the status of Ingress ${key} cannot be written: ${reason}; it is tried again` : ''
    if (line !== '' && line !== this.#said) this.#parts.log.error(line)
    this.#said = line
    return result !== 'failed'
  }
}

const sameAddresses = (one: readonly string[], other: readonly string[]): boolean => [...one].sort().join() === [...other].sort().join()
