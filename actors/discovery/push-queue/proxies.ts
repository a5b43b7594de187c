/** Which proxies are at which writer, and how many connections each writer should let go. */
import type { ClassAssignment, WriterEvent } from '../../../protocols/messages/push.ts'
import type { IdentityShares } from '../../../src/push/classes/identity-shares.ts'
import { Balance } from '../../../src/push/pacing/balance.ts'
import type { Planner } from '../../../src/push/planner.ts'

/** While more than this share of all connections comes or goes between two looks, none is moved. */
const unsettledShare = 0.02

/** The planner knows a proxy by its writer and its name there. */
const nameOf = (writer: string, connection: string): string => `${writer}/${connection}`

/** The assignments of the proxies of a writer, by their names there. */
export function assignmentsOf(writer: string, assignments: readonly ClassAssignment[]): ClassAssignment[] {
  const prefix = nameOf(writer, '')
  return assignments
    .filter(({ connection }) => connection.startsWith(prefix))
    .map(({ connection, classId }) => ({ connection: connection.slice(prefix.length), classId }))
}

/** The proxies that are connected. */
export class Proxies {
  readonly #planner: Pick<Planner, 'classIdOf' | 'connect' | 'disconnect' | 'refused'>
  readonly #shares: IdentityShares
  /** Connections of each writer, with the numbers of their transports. */
  readonly #connections = new Map<string, Map<string, number>>()
  readonly #balance = new Balance()
  /** Transports at the last look. */
  #lastTotal = 0

  constructor(planner: Pick<Planner, 'classIdOf' | 'connect' | 'disconnect' | 'refused'>, shares: IdentityShares) {
    this.#planner = planner
    this.#shares = shares
  }

  /** A writer has come, which will name its proxies. */
  addWriter(writer: string): void {
    this.#connections.set(writer, new Map())
  }

  /** A writer is gone, and its proxies with it. */
  removeWriter(writer: string): void {
    for (const connection of [...(this.#connections.get(writer)?.keys() ?? [])]) this.disconnected(writer, connection)
    this.#connections.delete(writer)
  }

  /** Returns the reason for which a proxy is refused: its identity would have more than one may. */
  connected(writer: string, { connection, transport, node, claim }: Extract<WriterEvent, { type: 'ProxyConnected' }>): string | undefined {
    const name = nameOf(writer, connection)
    const reason = claim && this.#shares.add(name, claim, () => this.#planner.classIdOf(node))
    if (reason !== undefined) return reason
    this.#connections.get(writer)?.set(connection, transport)
    this.#planner.connect(name, node)
    return undefined
  }

  /** A proxy refused a response. Returns whether it is given something else now. */
  refused(writer: string, { connection, classId, ...refusal }: Extract<WriterEvent, { type: 'ResourcesRefused' }>): boolean {
    return this.#planner.refused(nameOf(writer, connection), classId, refusal)
  }

  disconnected(writer: string, connection: string): void {
    this.#connections.get(writer)?.delete(connection)
    const name = nameOf(writer, connection)
    this.#shares.remove(name)
    this.#planner.disconnect(name)
  }

  /** How many transport connections each writer should let go now; none while many come or go. To be asked at intervals. */
  surplus(): Map<string, number> {
    const counts = new Map([...this.#connections].map(([writer, connections]) => [writer, new Set(connections.values()).size]))
    const total = [...counts.values()].reduce((sum, count) => sum + count, 0)
    const isSettled = Math.abs(total - this.#lastTotal) <= total * unsettledShare
    this.#lastTotal = total
    return isSettled ? this.#balance.moves(counts) : new Map()
  }
}
