/** A bounded queue of calls that serves callers in turn: one that asks for much waits for itself, not others for it. */

/** Bounds of a queue. */
export interface QueueBounds {
  readonly calls: number
  readonly bytes: number
}

interface Entry<Call> {
  readonly call: Call
  readonly bytes: number
}

/** Calls by caller, in the order in which each came; callers take turns. */
export class FairQueue<Call> {
  readonly #bounds: QueueBounds
  /** The next caller first. No list is empty. */
  readonly #callers = new Map<string, Entry<Call>[]>()
  #calls = 0
  #bytes = 0

  constructor(bounds: QueueBounds) {
    this.#bounds = bounds
  }

  get size(): number {
    return this.#calls
  }

  /** What the calls that wait hold, in bytes. */
  get bytes(): number {
    return this.#bytes
  }

  /**
   * Adds a call. Returns those that have no room any more: while there are too many, the newest of whoever has the most waiting goes,
   * which may be the one that was added.
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

  /** Takes the oldest call of the caller whose turn it is. */
  take(): Call | undefined {
    const [next] = this.#callers
    if (!next) return undefined
    const [caller, waiting] = next
    const { call, bytes } = waiting.shift() as Entry<Call>
    this.#callers.delete(caller)
    if (waiting.length > 0) this.#callers.set(caller, waiting)
    this.#calls--
    this.#bytes -= bytes
    return call
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
