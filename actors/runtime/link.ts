import type { MessagePort } from 'node:worker_threads'
import type { Entry, Parcel } from '../../protocols/messages/envelope.ts'
import { Mailbox } from './mailbox.ts'

/** The other end of a link, as an actor sees it. Once the peer is gone, whatever it is told has no effect. */
export interface Peer<Message = unknown> {
  /** Name of the peer, `xds-writer/1`. */
  readonly name: string
  /** Kind of the peer, `xds-writer`. */
  readonly kind: string
  /** Sends a message. While the peer is behind, a newer message replaces a waiting one with the same key. */
  tell(message: Message, key?: string): void
  /**
   * Starts to say everything that this actor knows; changes may be told in between. An object that the peer has heard of from
   * this actor's predecessors or before, and that is not mentioned until {@link Replay.finish}, is withdrawn there.
   */
  replay(): Replay
}

/** A replay under way. */
export interface Replay {
  /**
   * Everything that is known has been said. An actor that could not see everything it speaks for says so (`complete` false), and
   * nothing is withdrawn. No effect when a later replay has begun.
   */
  finish(complete?: boolean): void
}

/** Messages a peer may be sent before it has worked off some of them. */
export const linkWindow = 4096

/** What a link is made of. */
export interface LinkParts {
  readonly peer: string
  /** Number of the link; a later link of the same two actors has a higher one. */
  readonly incarnation: number
  readonly port: MessagePort
  /** Mail has come. */
  received(link: Link): void
  /** The port is closed. */
  closed(link: Link): void
}

/**
 * One end of a port between two actors. Outgoing messages leave in one batch per turn of the event loop; what exceeds the
 * peer's window waits in a coalescing mailbox. Incoming messages wait in another until they are taken, which gives the sender
 * room again. A link that was closed takes nothing, sends nothing and holds no mail.
 */
export class Link implements Peer {
  readonly name: string
  readonly kind: string
  readonly incarnation: number
  readonly #port: MessagePort
  readonly #inbox = new Mailbox()
  readonly #parked = new Mailbox()
  #batch: Entry[] = []
  #credit = linkWindow
  #scheduled = false
  #owed = 0
  #replays = 0
  #isClosed = false
  /** Messages that came and were replaced before they were taken. */
  coalesced = 0

  constructor({ peer, incarnation, port, received, closed }: LinkParts) {
    this.name = peer
    this.kind = peer.split('/')[0] as string
    this.incarnation = incarnation
    this.#port = port
    port.on('message', (parcel: Parcel) => {
      if (this.#isClosed) return
      if (parcel.type === 'Credit') {
        this.#credit += parcel.count
        this.#schedule()
        return
      }
      for (const entry of parcel.entries) this.#replaced(this.#inbox.put(entry))
      received(this)
    })
    port.on('close', () => closed(this))
  }

  /** Messages and marks that came and were not taken yet. */
  get depth(): number {
    return this.#inbox.size
  }

  tell(message: unknown, key = ''): void {
    this.#send([key, message])
  }

  replay(): Replay {
    const replay = ++this.#replays
    this.#send({ mark: 'begin', replay })
    let open = true
    return {
      finish: (complete = true) => {
        if (open && replay === this.#replays) this.#send({ mark: 'end', replay, complete })
        open = false
      },
    }
  }

  /** Takes the oldest message or mark that came, and gives the sender room for another. */
  take(): Entry | undefined {
    const entry = this.#inbox.take()
    if (entry) this.#owe(1)
    return entry
  }

  /** Sends what has room, then closes the port. Mail in either direction is dropped. */
  close(): void {
    if (this.#isClosed) return
    this.#flush()
    this.#isClosed = true
    this.#inbox.clear()
    this.#parked.clear()
    this.#port.close()
  }

  #send(entry: Entry): void {
    if (this.#isClosed) return
    if (this.#credit > 0 && this.#parked.size === 0) {
      this.#credit--
      this.#batch.push(entry)
    } else {
      this.#parked.put(entry)
    }
    this.#schedule()
  }

  #replaced(count: number): void {
    if (count === 0) return
    this.coalesced += count
    this.#owe(count)
  }

  #owe(count: number): void {
    this.#owed += count
    if (this.#owed >= linkWindow / 4) this.#settle()
    else this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled || this.#isClosed) return
    this.#scheduled = true
    setImmediate(() => this.#flush())
  }

  #flush(): void {
    this.#scheduled = false
    if (this.#isClosed) return
    while (this.#credit > 0) {
      const entry = this.#parked.take()
      if (!entry) break
      this.#credit--
      this.#batch.push(entry)
    }
    if (this.#batch.length > 0) {
      const entries = this.#batch
      this.#batch = []
      this.#port.postMessage({ type: 'Batch', entries } satisfies Parcel)
    }
    this.#settle()
  }

  #settle(): void {
    if (this.#owed === 0) return
    this.#port.postMessage({ type: 'Credit', count: this.#owed } satisfies Parcel)
    this.#owed = 0
  }
}
