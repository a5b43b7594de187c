/** A limited number of slots, shared out fairly among clients. */

/** The slots of one client, the one that changed last at the end. */
interface ClientSlots<Holder> {
  readonly idle: Set<Holder>
  readonly busy: Set<Holder>
}

const sizeOf = ({ idle, busy }: ClientSlots<unknown>): number => idle.size + busy.size

/**
 * Shares out slots. A new holder always gets one. Whoever gives way for it belongs to the client with the most slots; of these, the holder
 * that has been idle for longest, or else the one that has been busy for longest. A client therefore keeps its slots unless it has more
 * than its fair share.
 */
export class FairSlots<Holder> {
  readonly #most: number
  readonly #ofClient: number
  readonly #clients = new Map<string, ClientSlots<Holder>>()
  readonly #owners = new Map<Holder, string>()

  /** The maximum number of slots of all clients together, and of one client. */
  constructor(most: number, ofClient: number) {
    this.#most = most
    this.#ofClient = ofClient
  }

  /** The number of slots in use. */
  get size(): number {
    return this.#owners.size
  }

  /** The holders of slots. */
  get holders(): Iterable<Holder> {
    return this.#owners.keys()
  }

  /** The number of slots of a client. */
  countOf(client: string): number {
    const held = this.#clients.get(client)
    return held ? sizeOf(held) : 0
  }

  /** Gives an idle holder of a client a slot. Returns the holder that gives way, which has no slot any more; undefined when there is room. */
  take(client: string, holder: Holder): Holder | undefined {
    const own = this.#clients.get(client) ?? { idle: new Set(), busy: new Set() }
    const leaving = this.#leaving(own)
    if (leaving !== undefined) this.release(leaving)
    this.#clients.set(client, own)
    own.idle.add(holder)
    this.#owners.set(holder, client)
    return leaving
  }

  /** Returns the holder that would give way for another one of a client. Undefined when there is room. */
  leavingFor(client: string): Holder | undefined {
    return this.#leaving(this.#clients.get(client) ?? { idle: new Set(), busy: new Set() })
  }

  #leaving(own: ClientSlots<Holder>): Holder | undefined {
    const from = sizeOf(own) >= this.#ofClient ? own : this.size >= this.#most ? this.#greediest(own) : undefined
    const [leaving] = from ? (from.idle.size > 0 ? from.idle : from.busy) : []
    return leaving
  }

  /** Records that a holder began or ended its work. No effect without a slot. */
  mark(holder: Holder, isBusy: boolean): void {
    const held = this.#clients.get(this.#owners.get(holder) ?? '')
    if (!held || !this.#owners.has(holder)) return
    held.idle.delete(holder)
    held.busy.delete(holder)
    held[isBusy ? 'busy' : 'idle'].add(holder)
  }

  /** Frees a slot. No effect without one. */
  release(holder: Holder): void {
    const client = this.#owners.get(holder)
    if (client === undefined) return
    this.#owners.delete(holder)
    const held = this.#clients.get(client) as ClientSlots<Holder>
    held.idle.delete(holder)
    held.busy.delete(holder)
    if (sizeOf(held) === 0) this.#clients.delete(client)
  }

  /** The client with the most slots. The client of the new holder counts with the slot that it asks for, unless that is its only one. */
  #greediest(own: ClientSlots<Holder>): ClientSlots<Holder> {
    let [greediest, most] = [own, sizeOf(own) === 0 ? 0 : sizeOf(own) + 1]
    for (const held of this.#clients.values()) if (sizeOf(held) > most) [greediest, most] = [held, sizeOf(held)]
    return greediest
  }
}
