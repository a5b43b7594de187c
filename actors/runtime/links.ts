/** The links of one actor. At most one link to each peer is live, and messages of other links are never delivered. */
import type { MessagePort } from 'node:worker_threads'
import { Link, type Peer } from './link.ts'
import { isMark } from './mailbox.ts'
import { ObjectRegister, type ObjectRule } from './register.ts'

/** The callbacks into the actor's host. */
export interface LinkEvents<Message> {
  /** Runs the reaction to an event of a port on the actor's behalf: an exception ends the actor, and not the thread that owns the port. */
  guard(work: () => void): void
  linked(link: Link): void
  unlinked(link: Link): void
  /** Called when {@link Links.deliverOne} has something to deliver. */
  mail(): void
  receive(message: Message, from: Peer): void
  /** Called when a replay of a peer is complete and the objects that it did not mention have been withdrawn. */
  synced(link: Link): void
  /** Called when a peer was removed for good and its objects have been withdrawn. */
  forgotten(peer: Peer): void
}

/**
 * Owns the links of an actor. A newer link of a peer replaces the live one: the old link is unlinked and its messages are dropped, then
 * the new one is linked. An older link that arrives late is closed. The closing of a port has an effect only while its link is live.
 * What a peer announced outlives its links, because the peer is started again; it is withdrawn when the peer is removed for good.
 */
export class Links<Message> {
  readonly #events: LinkEvents<Message>
  readonly #rule: ObjectRule<Message> | undefined
  readonly #live = new Map<string, Link>()
  /** The highest incarnation seen, for each peer. */
  readonly #newest = new Map<string, number>()
  /** The objects that each peer has announced, over all its incarnations. */
  readonly #registers = new Map<string, ObjectRegister<Message>>()
  /** Live links with undelivered messages, in the order of their turns. */
  readonly #waiting = new Set<Link>()
  #coalescedBefore = 0

  constructor(rule: ObjectRule<Message> | undefined, events: LinkEvents<Message>) {
    this.#rule = rule
    this.#events = events
  }

  /** Number of undelivered messages and marks on all links. */
  get depth(): number {
    return [...this.#live.values()].reduce((sum, link) => sum + link.depth, 0)
  }

  /** Number of messages that were replaced by newer ones before they were delivered. */
  get coalesced(): number {
    return [...this.#live.values()].reduce((sum, link) => sum + link.coalesced, this.#coalescedBefore)
  }

  /** Adds a port to a peer, or closes it when a newer link of the peer has been seen. */
  add(peer: string, incarnation: number, port: MessagePort): void {
    if (incarnation <= (this.#newest.get(peer) ?? 0)) {
      port.close()
      return
    }
    this.#newest.set(peer, incarnation)
    const before = this.#live.get(peer)
    if (before) this.#end(before)
    const link = new Link({
      peer,
      incarnation,
      port,
      received: (from) =>
        this.#events.guard(() => {
          if (this.#live.get(peer) !== from) return
          this.#waiting.add(from)
          this.#events.mail()
        }),
      closed: (closed) =>
        this.#events.guard(() => {
          if (this.#live.get(peer) === closed) this.#end(closed)
        }),
    })
    this.#live.set(peer, link)
    this.#events.linked(link)
  }

  /** Delivers one message or mark, round-robin over the links. Returns false when there is none. */
  deliverOne(): boolean {
    for (const link of this.#waiting) {
      this.#waiting.delete(link)
      const entry = link.take()
      if (!entry) continue
      if (link.depth > 0) this.#waiting.add(link)
      const register = this.#registerOf(link.name)
      if (!isMark(entry)) {
        const message = entry[1] as Message
        register?.heard(message)
        this.#events.receive(message, link)
      } else if (entry.mark === 'begin') {
        register?.begin(entry.replay)
      } else {
        const withdrawals = register?.end(entry.replay, entry.complete ?? true)
        for (const withdrawal of withdrawals ?? []) this.#events.receive(withdrawal, link)
        if (withdrawals) this.#events.synced(link)
      }
      return true
    }
    return false
  }

  /**
   * A peer was removed for good: its link is unlinked and its objects are withdrawn, also if it has no link at present. `incarnation` is
   * that of the last link there was; a newer link is that of another actor with this name, of which nothing is forgotten.
   */
  forget(peer: string, incarnation: number): void {
    if ((this.#newest.get(peer) ?? 0) > incarnation) return
    this.#newest.set(peer, incarnation)
    const live = this.#live.get(peer)
    if (live) this.#end(live)
    const gone = live ?? removedPeer(peer)
    const register = this.#registers.get(peer)
    this.#registers.delete(peer)
    for (const withdrawal of register?.withdrawals() ?? []) this.#events.receive(withdrawal, gone)
    this.#events.forgotten(gone)
  }

  /** Closes all links without calling the actor. */
  close(): void {
    for (const link of this.#live.values()) link.close()
    this.#live.clear()
    this.#waiting.clear()
  }

  #end(link: Link): void {
    this.#live.delete(link.name)
    this.#waiting.delete(link)
    this.#coalescedBefore += link.coalesced
    link.close()
    this.#registers.get(link.name)?.interrupted()
    this.#events.unlinked(link)
  }

  #registerOf(peer: string): ObjectRegister<Message> | undefined {
    if (!this.#rule) return undefined
    let register = this.#registers.get(peer)
    if (!register) this.#registers.set(peer, (register = new ObjectRegister(this.#rule)))
    return register
  }
}

/** Stands for a peer that was removed while no link to it was live. */
function removedPeer(name: string): Peer {
  return { name, kind: name.split('/')[0] as string, tell() {}, replay: () => ({ finish() {} }) }
}
