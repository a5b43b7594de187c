/**
 * A bounded queue of calls that serves callers round-robin, so that a caller with many calls delays its own calls and not those of other
 * callers.
 */

/** The maximum number of calls in a queue and the maximum of their sizes together, in bytes. */
export interface QueueBounds {
  readonly calls: number
  readonly bytes: number
}

interface Entry<Call> {
  readonly call: Call
  readonly bytes: number
}

/** Calls in the order of their arrival per caller. Callers take turns. */
export class FairQueue<Call> {
  readonly #bounds: QueueBounds
  /** In the order of turns: the first caller is served next. No list is empty. */
  readonly #callers = new Map<string, Entry<Call>[]>()
  #calls = 0
  #bytes = 0

  constructor(bounds: QueueBounds) {
    this.#bounds = bounds
  }

  get size(): number {
    return this.#calls
  }

  /** The sizes of the queued calls together, in bytes. */
  get bytes(): number {
    return this.#bytes
  }

  /**
   * Adds a call. Returns the calls that were dropped because the queue exceeded its bounds: in each step the newest call of the caller with
   * the most queued calls, possibly the call that was added.
   */
  add(caller: string, call: Call, bytes: number): Call[] {
    const waiting = this.#callers.get(caller)
    if (waiting) waiting.push({ call, bytes })
    else this.#callers.set(caller, [{ call, bytes }])
    this.#calls++
    this.#bytes += bytes
    const dropped: Call[] = []
    while (this.#calls > this.#bounds.calls || this.#bytes > this.#bounds.bytes) dropped.push(this.#drop())
    return dropped
  }

  /**
   * Removes and returns the oldest call of the caller whose turn it is, among those that `may` allows. Undefined when there is none. A
   * caller that is passed over keeps its turn.
   */
  take(may: (caller: string) => boolean = () => true): Call | undefined {
    const next = this.#next(may)
    if (!next) return undefined
    const [caller, waiting] = next
    const { call, bytes } = waiting.shift() as Entry<Call>
    this.#callers.delete(caller)
    if (waiting.length > 0) this.#callers.set(caller, waiting)
    this.#calls--
    this.#bytes -= bytes
    return call
  }

  /** Removes a call of a caller. Returns whether it was queued. */
  remove(caller: string, call: Call): boolean {
    const waiting = this.#callers.get(caller) ?? []
    const index = waiting.findIndex((entry) => entry.call === call)
    if (index < 0) return false
    const [{ bytes }] = waiting.splice(index, 1) as [Entry<Call>]
    if (waiting.length === 0) this.#callers.delete(caller)
    this.#calls--
    this.#bytes -= bytes
    return true
  }

  #next(may: (caller: string) => boolean): [string, Entry<Call>[]] | undefined {
    for (const one of this.#callers) if (may(one[0])) return one
    return undefined
  }

  #drop(): Call {
    let most: [string, Entry<Call>[]] | undefined
    for (const one of this.#callers) if (!most || one[1].length >= most[1].length) most = one
    const [caller, waiting] = most as [string, Entry<Call>[]]
    const { call, bytes } = waiting.pop() as Entry<Call>
    if (waiting.length === 0) this.#callers.delete(caller)
    this.#calls--
    this.#bytes -= bytes
    return call
  }
}
