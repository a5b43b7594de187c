/** Who asked a writer for more than one client may: counted, and the last ones by name (`/debug/budgetz`). */
import type { Caller } from '../../../protocols/messages/identity.ts'
import { ConnectionBudget, IdentityBudget } from '../../../src/xds/stream/budget.ts'
import { Counter, type Registry } from '../../runtime/metrics.ts'

/** One stream that was ended. */
export interface Exceeded {
  /** Connection or node id of the proxy; empty when it had not said yet. */
  readonly proxy: string
  /** Address of the other side. */
  readonly address: string
  /** What was exceeded, and by how much. */
  readonly reason: string
  readonly at: string
}

/** What an identity has on one connection, of what it has on the writer. */
interface OnConnection {
  readonly whole: IdentityBudget | undefined
  readonly budget: ConnectionBudget
}

/** Events that are kept. */
const kept = 100

/** The events of one writer. */
export class Budgets {
  readonly #events: Exceeded[] = []
  /** By connection, then by identity; an empty one where nobody is authenticated. */
  readonly #budgets = new WeakMap<object, Map<string, OnConnection>>()
  /** Of identities that have streams open, and how many. */
  readonly #identities = new Map<string, { readonly budget: IdentityBudget; streams: number }>()
  readonly #streams
  readonly #connections

  constructor(registry: Registry) {
    this.#connections = new Counter({
      name: 'pilot_xds_refused_connections_total',
      help: 'connections that were closed at once because there were as many as the limit of file descriptors allows',
      registers: [registry],
    })
    this.#streams = new Counter({
      name: 'pilot_xds_exceeded_budgets_total',
      help: 'XDS streams that were ended because the client asked the server to keep more than one client may',
      registers: [registry],
    })
  }

  /** The budget of a caller on a connection, of all of the connection where nobody was authenticated. */
  of(connection: object, caller?: Caller): ConnectionBudget {
    const identity = caller?.identities[0] ?? ''
    const whole = this.#identities.get(identity)?.budget
    const ofConnection = this.#budgets.get(connection) ?? new Map<string, OnConnection>()
    this.#budgets.set(connection, ofConnection)
    let known = ofConnection.get(identity)
    // One that is left from when the identity had no stream for a while is part of a whole that is gone.
    if (!known || known.whole !== whole) ofConnection.set(identity, (known = { whole, budget: new ConnectionBudget(whole) }))
    return known.budget
  }

  /** A caller has opened a stream: its identity has a budget until the last stream of it is over. Returns the budget of the caller on the connection. */
  opened(connection: object, caller: Caller | undefined): ConnectionBudget {
    const identity = caller?.identities[0]
    if (identity !== undefined) {
      const known = this.#identities.get(identity) ?? { budget: new IdentityBudget(), streams: 0 }
      known.streams++
      this.#identities.set(identity, known)
    }
    return this.of(connection, caller)
  }

  /** A stream of a caller is over, and has given back what it took. */
  closed(caller: Caller | undefined): void {
    const identity = caller?.identities[0] ?? ''
    const known = this.#identities.get(identity)
    if (known && --known.streams === 0) this.#identities.delete(identity)
  }

  /** Counts a connection that was closed at once. */
  refused(): void {
    this.#connections.inc()
  }

  /** Notes a stream that was ended. `at` is the Unix time in milliseconds. */
  exceeded(proxy: string, address: string, reason: string, at: number): void {
    this.#streams.inc()
    this.#events.push({ proxy, address, reason, at: new Date(at).toISOString() })
    if (this.#events.length > kept) this.#events.shift()
  }

  /** The last events, oldest first. */
  list(): readonly Exceeded[] {
    return this.#events
  }
}
