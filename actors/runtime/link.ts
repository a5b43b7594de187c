import type { MessagePort } from 'node:worker_threads'
import type { Entry, Parcel } from '../../protocols/messages/envelope.ts'
import { Mailbox } from './mailbox.ts'

/** The other end of a link, as an actor sees it. Once the peer is gone, messages to it are dropped. */
export interface Peer<Message = unknown> {
  /** Name of the peer, for example `xds-writer/1`. */
  readonly name: string
  /** Kind of the peer, for example `xds-writer`. */
  readonly kind: string
  /**
   * Sends a message. When the window of the link is used up, messages wait, and a newer message replaces a waiting one with the same key.
   */
  tell(message: Message, key?: string): void
  /**
   * Starts a replay: the actor sends everything that it knows, possibly with changes in between. Objects that the peer knows from this
   * actor or its predecessors and that are not mentioned before {@link Replay.finish} are withdrawn at the peer.
   */
  replay(): Replay
}

/** A replay under way. */
export interface Replay {
  /**
   * Ends the replay. With `complete` false, for an actor that could not read its whole state, nothing is withdrawn. No effect when a
   * later replay has begun.
   */
  finish(complete?: boolean): void
}

/** Maximum number of messages sent to a peer that it has not yet taken. */
export const linkWindow = 4096

/** The parameters of a link. */
export interface LinkParts {
  readonly peer: string
  /** Number of the link; a later link between the same two actors has a higher one. */
  readonly incarnation: number
  readonly port: MessagePort
  /** Called when messages have arrived. */
  received(link: Link): void
  /** Called when the port is closed. */
  closed(link: Link): void
}

/**
 * One end of a port between two actors. Outgoing messages leave in one batch per turn of the event loop; messages that exceed the peer's
 * window wait in a coalescing mailbox. Incoming messages wait in another mailbox until they are taken, which returns credit to the
 * sender. A closed link neither receives nor sends, and holds no messages.
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
  /** Number of received messages that were replaced by newer ones before they were taken. */
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

  /** Number of received messages and marks that have not been taken yet. */
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

  /** Takes the oldest received message or mark, and returns one credit to the sender. */
  take(): Entry | undefined {
    const entry = this.#inbox.take()
    if (entry) this.#owe(1)
    return entry
  }

  /** Sends the messages that fit into the window, then closes the port. Messages that remain in either direction are dropped. */
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
    if (this.#owed >= linkWindow / 4) this.#sendCredit()
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
    this.#sendCredit()
  }

  #sendCredit(): void {
    if (this.#owed === 0) return
    this.#port.postMessage({ type: 'Credit', count: this.#owed } satisfies Parcel)
    this.#owed = 0
  }
}
