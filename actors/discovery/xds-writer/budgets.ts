/** Who asked a writer for more than one client may: counted, and the last ones by name (`/debug/budgetz`). */
import { ConnectionBudget } from '../../../src/xds/stream/budget.ts'
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

/** Events that are kept. */
const kept = 100

/** The events of one writer. */
export class Budgets {
  readonly #events: Exceeded[] = []
  readonly #budgets = new WeakMap<object, ConnectionBudget>()
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

  /** The budget of a connection. */
  of(connection: object): ConnectionBudget {
    let budget = this.#budgets.get(connection)
    if (!budget) this.#budgets.set(connection, (budget = new ConnectionBudget()))
    return budget
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
