/**
 * How a stream becomes that of a proxy: its first request names a node, for which the caller must be allowed to act and which takes from the caller's
 * limits; with its first request for configuration it takes one of the places of the process. What is refused ends the stream.
 */
import { BadNode, readNode } from '../../../src/model/proxy.ts'
import { status } from '../../../src/model/status-codes.ts'
import type { MeshNames } from '../../../src/names/mesh-names.ts'
import type { ProxySlots } from '../../../src/push/pacing/proxy-slots.ts'
import { WireError } from '../../../src/xds/slab/wire.ts'
import { BudgetExceeded, memoryOfData } from '../../../src/xds/stream/budget.ts'
import { readNodeBytes } from '../../../src/xds/stream/node.ts'
import { requestFault } from '../../../src/xds/stream/request.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import type { Budgets } from './budgets.ts'
import type { Callers } from './callers.ts'
import type { Connection } from './connection.ts'

/** Dependencies of {@link Admission}. */
export interface AdmissionParts {
  readonly names: MeshNames
  readonly budgets: Budgets
  readonly callers: Callers
  readonly slots: ProxySlots
  /** The number of proxies that the process serves (`PILOT_XDS_MAX_PROXIES`), for the reason of a refusal. */
  readonly maxProxies: number
  /** Counts a stream that was refused because the process serves as many proxies as it may. */
  full(): void
  /** Logs a refusal. The number of lines of one kind is limited. */
  warn(kind: string, line: string): void
}

/** Admits the proxies of one writer. */
export class Admission {
  readonly #parts: AdmissionParts

  constructor(parts: AdmissionParts) {
    this.#parts = parts
  }

  /** Reads the node from the first request of a stream. Returns false when the stream was ended because the node is missing or refused. */
  identify(connection: Connection, node: Buffer | undefined): boolean {
    if (connection.node) return true
    const { stream } = connection
    if (!node) {
      stream.end(status.invalidArgument, 'missing node ID')
      return false
    }
    const read = readNode(readNodeBytes(node), this.#parts.names, connection.session.delta)
    const refusal = this.#parts.callers.refusal(connection, read)
    if (refusal !== undefined) {
      this.#parts.warn(`denied|${stream.peer}`, `stream of ${read.id} from ${stream.peer} refused: ${refusal}`)
      stream.end(status.permissionDenied, refusal)
      return false
    }
    const budget = this.#budgetOf(connection)
    const bytes = memoryOfData(read)
    try {
      budget.nodes.take(bytes)
      connection.nodeBytes = bytes
      budget.proxies.take(1)
    } catch (error) {
      this.refuse(connection, error, read.id)
      return false
    }
    connection.node = read
    return true
  }

  /** Takes a place for the proxy of a stream. Returns false when the stream was ended because there is none. */
  takePlace({ node, stream }: Connection): boolean {
    if (this.#parts.slots.take()) return true
    this.#parts.full()
    const reason = `this process serves ${this.#parts.maxProxies} proxies, its maximum (PILOT_XDS_MAX_PROXIES)`
    this.#parts.warn('full', `stream of ${node?.id} from ${stream.peer} refused: ${reason}`)
    stream.release(status.unavailable, `${reason}; another replica may have room`)
    return false
  }

  /**
   * Ends a stream because of an invalid request or an exceeded limit; `proxy` names it in the log. Rethrows errors that the client did
   * not cause.
   */
  refuse({ stream, id }: Connection, error: unknown, proxy = id): void {
    const exceeded = error instanceof BudgetExceeded
    if (!exceeded && !(error instanceof WireError) && !(error instanceof BadNode)) throw error
    const { peer } = stream
    const reason = requestFault(error)
    this.#parts.warn(`refused|${peer}`, `stream of ${proxy || 'a client'} from ${peer} ended: ${reason}`)
    if (exceeded) this.#parts.budgets.exceeded(proxy, peer, reason, wallClockMs())
    stream.end(exceeded ? status.resourceExhausted : status.invalidArgument, reason)
  }

  /** Gives back what the node of a closed stream took. */
  gone(connection: Connection): void {
    const budget = this.#budgetOf(connection)
    budget.nodes.free(connection.nodeBytes)
    if (connection.node) budget.proxies.free(1)
  }

  /** Gives back the place of a proxy. */
  leavePlace(): void {
    this.#parts.slots.free()
  }

  #budgetOf({ stream, caller }: Connection) {
    return this.#parts.budgets.of(stream.connection, caller)
  }
}
