/** The links of one actor: of each peer at most one is live, and mail of any other is never handed out. */
import type { MessagePort } from 'node:worker_threads'
import { Link } from './link.ts'
import { isMark } from './mailbox.ts'
import { ObjectRegister, type ObjectRule } from './register.ts'

/** What the links tell the actor's host. */
export interface LinkEvents<Message> {
  /** Runs what an event of a port leads to, on the actor's behalf: an exception ends the actor, and leaves the port's thread alone. */
  guard(work: () => void): void
  linked(link: Link): void
  unlinked(link: Link): void
  /** Something has come that {@link Links.deliverOne} hands out. */
  mail(): void
  receive(message: Message, from: Link): void
  /** A replay of a peer is complete, and what it did not mention has been withdrawn. */
  synced(link: Link): void
}

/**
 * Owner of the links. A newer link of a peer displaces the live one: the old one is unlinked and its mail dropped, then the new
 * one is linked. An older link that arrives late is closed. The close of a port matters only while its link is live.
 */
export class Links<Message> {
  readonly #events: LinkEvents<Message>
  readonly #rule: ObjectRule<Message> | undefined
  readonly #live = new Map<string, Link>()
  /** The highest incarnation seen of each peer. */
  readonly #newest = new Map<string, number>()
  /** What each peer has told of, whatever its incarnation. */
  readonly #registers = new Map<string, ObjectRegister<Message>>()
  /** Live links with mail, the one whose turn it is first. */
  readonly #waiting = new Set<Link>()
  #coalescedBefore = 0

  constructor(rule: ObjectRule<Message> | undefined, events: LinkEvents<Message>) {
    this.#rule = rule
    this.#events = events
  }

  /** Messages and marks that wait in all mailboxes. */
  get depth(): number {
    return [...this.#live.values()].reduce((sum, link) => sum + link.depth, 0)
  }

  /** Messages that were replaced by newer ones before they were handed out. */
  get coalesced(): number {
    return [...this.#live.values()].reduce((sum, link) => sum + link.coalesced, this.#coalescedBefore)
  }

  /** Takes over a port to a peer, or closes it when a newer link of the peer has been seen. */
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

  /** Hands out one message or mark, links in turn. Returns false when none waits. */
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

  /** Closes all of them without a word to the actor. */
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
