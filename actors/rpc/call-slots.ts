/** The limit of the concurrent calls of a method, shared out among clients. */
import { FairSlots } from '../../src/model/fair-slots.ts'

/** The place of a call. */
export interface CallSlot {
  /** The message of the call has arrived: the slot is kept until {@link answered}. */
  arrived(): void
  /** The answer is made, whether or not somebody waits for it. */
  answered(): void
  /** The client is gone, or was refused. Frees the slot of a call whose message has not arrived. */
  gone(): void
}

/** A call that counts. */
interface Running {
  readonly client: string
  /** Called when it gives way to another call. */
  readonly leave: () => void
  isAnswering: boolean
  hasLeft: boolean
}

/**
 * Limits concurrent calls, each counted until its answer is made, even if the client is gone. When a call exceeds the maximum, a call of the
 * client with the most gives way: the oldest whose message has not arrived, or else the oldest. The new call is refused instead if all
 * messages of that client have arrived and the client of the new call has as many calls with it. At most as many calls that gave way go on
 * until their answers are made.
 */
export class CallSlots {
  readonly #most: number
  /** The calls that count; those whose message has arrived are busy. */
  readonly #slots: FairSlots<Running>
  /** The number of calls that gave way and whose answers are being made. */
  #abandoned = 0

  constructor(most: number) {
    this.#most = most
    this.#slots = new FairSlots(most, most)
  }

  /** Gives a call of a client a slot; undefined when it is refused. `leave` is called when the call gives way to another one. */
  enter(client: string, leave: () => void): CallSlot | undefined {
    const leaving = this.#slots.leavingFor(client)
    const isGreedy = leaving !== undefined && this.#slots.countOf(leaving.client) > this.#slots.countOf(client) + 1
    if (leaving?.isAnswering && (!isGreedy || this.#abandoned >= this.#most)) return undefined
    const running: Running = { client, leave, isAnswering: false, hasLeft: false }
    this.#slots.take(client, running)
    if (leaving) this.#leave(leaving)
    return {
      arrived: () => {
        running.isAnswering = true
        this.#slots.mark(running, true)
      },
      answered: () => {
        this.#slots.release(running)
        if (running.hasLeft) this.#abandoned--
      },
      gone: () => {
        if (!running.isAnswering) this.#slots.release(running)
      },
    }
  }

  #leave(running: Running): void {
    running.hasLeft = true
    if (running.isAnswering) this.#abandoned++
    running.leave()
  }
}
