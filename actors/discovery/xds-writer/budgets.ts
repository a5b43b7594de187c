/** The resource limits of clients in one writer, and the streams that were ended for exceeding them (`/debug/budgetz`). */
import type { Caller } from '../../../protocols/messages/identity.ts'
import { principalOf } from '../../../src/identity/access.ts'
import { ConnectionBudget, IdentityBudget } from '../../../src/xds/stream/budget.ts'
import { Counter, type MetricRegistry } from '../../runtime/metrics.ts'

/** A stream that was ended because its client exceeded a limit. */
export interface Exceeded {
  /** Connection id or node id of the proxy; empty if the stream had not sent a node yet. */
  readonly proxy: string
  /** Address of the client. */
  readonly address: string
  /** The exceeded limit. */
  readonly reason: string
  readonly at: string
}

/** The budget of one identity on one connection. `whole` is the identity's budget on the writer, from which it also takes. */
interface OnConnection {
  readonly whole: IdentityBudget | undefined
  readonly budget: ConnectionBudget
}

/** Maximum number of recorded events. */
const kept = 100

/** The limits of all clients of one writer. */
export class Budgets {
  readonly #events: Exceeded[] = []
  /** Budgets by connection, then by identity. The identity is the empty string where the caller was not authenticated. */
  readonly #budgets = new WeakMap<object, Map<string, OnConnection>>()
  /** Budgets of the identities that have open streams, with the number of these streams. */
  readonly #identities = new Map<string, { readonly budget: IdentityBudget; streams: number }>()
  readonly #streams
  readonly #connections

  constructor(registry: MetricRegistry) {
    this.#connections = new Counter({
      name: 'pilot_xds_refused_connections_total',
      help: 'connections closed at once because the maximum, which follows from the limit of file descriptors, was reached',
      registers: [registry],
    })
    this.#streams = new Counter({
      name: 'pilot_xds_exceeded_budgets_total',
      help: 'XDS streams that were ended because the client exceeded one of its limits',
      registers: [registry],
    })
  }

  /** The budget of a caller on a connection. Unauthenticated callers of one connection share one budget. */
  of(connection: object, caller?: Caller): ConnectionBudget {
    const identity = identityOf(caller) ?? ''
    const whole = this.#identities.get(identity)?.budget
    const ofConnection = this.#budgets.get(connection) ?? new Map<string, OnConnection>()
    this.#budgets.set(connection, ofConnection)
    let known = ofConnection.get(identity)
    // A budget from before the identity's last stream closed belongs to a `whole` that no longer exists; it is replaced.
    if (!known || known.whole !== whole) ofConnection.set(identity, (known = { whole, budget: new ConnectionBudget(whole) }))
    return known.budget
  }

  /**
   * Counts a new stream of a caller; the budget of an identity exists until its last stream closes. Returns the budget of the caller on
   * the connection.
   */
  opened(connection: object, caller: Caller | undefined): ConnectionBudget {
    const identity = identityOf(caller)
    if (identity !== undefined) {
      const known = this.#identities.get(identity) ?? { budget: new IdentityBudget(), streams: 0 }
      known.streams++
      this.#identities.set(identity, known)
    }
    return this.of(connection, caller)
  }

  /** Counts a closed stream of a caller, which must have freed what it had taken from its budget. */
  closed(caller: Caller | undefined): void {
    const identity = identityOf(caller) ?? ''
    const known = this.#identities.get(identity)
    if (known && --known.streams === 0) this.#identities.delete(identity)
  }

  /** Counts a connection that was closed on accept because of the connection limit. */
  refused(): void {
    this.#connections.inc()
  }

  /** Records a stream that was ended for exceeding a limit. `at` is the Unix time in milliseconds. */
  exceeded(proxy: string, address: string, reason: string, at: number): void {
    this.#streams.inc()
    this.#events.push({ proxy, address, reason, at: new Date(at).toISOString() })
    if (this.#events.length > kept) this.#events.shift()
  }

  /** The recorded events, oldest first. */
  list(): readonly Exceeded[] {
    return this.#events
  }
}

/** Whose limits are those of a caller; undefined: nobody's. */
function identityOf(caller: Caller | undefined): string | undefined {
  const identity = caller?.identities[0]
  return caller && identity !== undefined ? principalOf(identity, caller) : undefined
}
