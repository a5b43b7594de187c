/** The connected proxies by writer, and how many connections each writer should close to keep connections evenly spread. */
import type { ClassAssignment, WriterEvent } from '../../../protocols/messages/push.ts'
import type { IdentityShares } from '../../../src/push/classes/identity-shares.ts'
import { connectionName } from '../../../src/push/distribution/proxy-versions.ts'
import type { Planner } from '../../../src/push/planner.ts'
import { Balance } from '../../../src/transport/balance.ts'

/** No connections are moved while the total number changed by more than this share since the previous check. */
const unsettledShare = 0.02

/** The assignments that concern one writer, with the connection ids that this writer uses. */
export function assignmentsOf(writer: string, assignments: readonly ClassAssignment[]): ClassAssignment[] {
  const prefix = connectionName(writer, '')
  return assignments
    .filter(({ connection }) => connection.startsWith(prefix))
    .map(({ connection, classId }) => ({ connection: connection.slice(prefix.length), classId }))
}

/** The connected proxies of all writers. */
export class Proxies {
  readonly #planner: Pick<Planner, 'accepted' | 'blamed' | 'classIdOf' | 'connect' | 'disconnect' | 'refused'>
  readonly #shares: IdentityShares
  /** For each writer, the transport number of each of its connections. */
  readonly #connections = new Map<string, Map<string, number>>()
  readonly #balance = new Balance()
  /** Number of transport connections at the previous check. */
  #lastTotal = 0

  constructor(planner: Pick<Planner, 'accepted' | 'blamed' | 'classIdOf' | 'connect' | 'disconnect' | 'refused'>, shares: IdentityShares) {
    this.#planner = planner
    this.#shares = shares
  }

  /** Registers a linked writer; the writer then sends `ProxyConnected` for each of its connections. */
  addWriter(writer: string): void {
    this.#connections.set(writer, new Map())
  }

  /** Removes a writer and disconnects its proxies in the planner. */
  removeWriter(writer: string): void {
    for (const connection of [...(this.#connections.get(writer)?.keys() ?? [])]) this.disconnected(writer, connection)
    this.#connections.delete(writer)
  }

  /** Adds a proxy. Returns the reason for a refusal if the identity of the proxy would exceed its limits. */
  connected(writer: string, { connection, transport, node, claim }: Extract<WriterEvent, { type: 'ProxyConnected' }>): string | undefined {
    const name = connectionName(writer, connection)
    const reason = claim && this.#shares.add(name, claim, () => this.#planner.classIdOf(node))
    if (reason !== undefined) return reason
    this.#connections.get(writer)?.set(connection, transport)
    this.#planner.connect(name, node)
    return undefined
  }

  /** Records a NACK of a proxy. Returns whether the proxy is now given different resources. */
  refused(writer: string, { connection, classId, ...refusal }: Extract<WriterEvent, { type: 'ResourcesRefused' }>): boolean {
    return this.#planner.refused(connectionName(writer, connection), classId, refusal)
  }

  /** Records an ACK of what a proxy refused before. Returns whether the proxy is now given different resources. */
  accepted(writer: string, { connection, ...accepted }: Extract<WriterEvent, { type: 'ResourcesAccepted' }>): boolean {
    return this.#planner.accepted(connectionName(writer, connection), accepted)
  }

  /** Keys of the objects that may be the cause of what a proxy refused. */
  blamed(writer: string, connection: string): readonly string[] {
    return this.#planner.blamed(connectionName(writer, connection))
  }

  disconnected(writer: string, connection: string): void {
    this.#connections.get(writer)?.delete(connection)
    const name = connectionName(writer, connection)
    this.#shares.remove(name)
    this.#planner.disconnect(name)
  }

  /**
   * Returns how many transport connections each writer should close now; none while the total is still changing. Called at regular
   * intervals.
   */
  surplus(): Map<string, number> {
    const counts = new Map([...this.#connections].map(([writer, connections]) => [writer, new Set(connections.values()).size]))
    const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
    const isSettled = Math.abs(total - this.#lastTotal) <= total * unsettledShare
    this.#lastTotal = total
    return isSettled ? this.#balance.moves(counts) : new Map()
  }
}
