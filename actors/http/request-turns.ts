/** Shares the time of the event loop among the connections of an HTTP/1.1 server: what they have received goes to their parsers in turns. */
import { FairQueue } from '../../src/model/fair-queue.ts'
import { monotonicMs } from '../runtime/clock.ts'

/** The maximum time of requests in a turn of the event loop, in milliseconds; one request may exceed it. */
const turnMs = 2
/** One in so many requests is of a connection that was answered before, however many new connections wait. */
const further = 8
/** The maximum number of turns of the event loop in a row that only accept connections. */
const acceptingTurns = 32

/** A connection whose next piece waits for its parser. */
export interface Asker {
  /** Whose it is; clients take turns. */
  readonly client: string
  /** Whether no request of it was answered yet. Such connections go first. */
  readonly isNew: boolean
  /** Gives the parser the next piece. */
  advance(): void
}

/**
 * Calls connections that ask, clients in turns and new connections first, for at most 2 ms in a turn of the event loop. Turns in which a
 * connection was accepted call none, 32 in a row at most: the kernel gives one connection in each turn, and those that wait there go first.
 */
export class RequestTurns {
  readonly #new = unbounded()
  readonly #further = unbounded()
  #taken = 0
  #accepted = false
  #accepting = 0
  #turn: NodeJS.Immediate | undefined

  /** Records that a connection was accepted in this turn of the event loop. */
  accepted(): void {
    this.#accepted = true
  }

  /** Calls a connection when it is its turn. A connection asks again only after that. */
  ask(asker: Asker): void {
    const queue = asker.isNew ? this.#new : this.#further
    queue.add(asker.client, asker, 0)
    this.#turn ??= setImmediate(() => this.#serve())
  }

  /** Forgets a connection that does not wait any more. */
  leave(asker: Asker): void {
    if (!this.#new.remove(asker.client, asker)) this.#further.remove(asker.client, asker)
  }

  #serve(): void {
    this.#accepting = this.#accepted ? (this.#accepting + 1) % acceptingTurns : 0
    this.#accepted = false
    if (this.#accepting > 0) return this.#again()
    const until = monotonicMs() + turnMs
    const next = () => {
      this.#next()?.advance()
      if (this.#new.size + this.#further.size === 0) this.#turn = undefined
      else if (monotonicMs() < until) afterMicrotasks(next)
      else this.#again()
    }
    next()
  }

  #again(): void {
    this.#turn = setImmediate(() => this.#serve())
  }

  #next(): Asker | undefined {
    const [one, other] = ++this.#taken % further === 0 ? [this.#further, this.#new] : [this.#new, this.#further]
    return one.take() ?? other.take()
  }
}

/** The number of connections is bounded by the server, and each asks once. */
function unbounded(): FairQueue<Asker> {
  return new FairQueue({ calls: Number.POSITIVE_INFINITY, bytes: 0 })
}

/** Continues when the promises of the last request have been served, so that their time counts. */
function afterMicrotasks(run: () => void): void {
  queueMicrotask(() => process.nextTick(run))
}
