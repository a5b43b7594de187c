import type { MessagePort } from 'node:worker_threads'
import type { Keyed, Parcel } from '../../protocols/messages/envelope.ts'
import { Mailbox } from './mailbox.ts'

/** The other end of a link, as an actor sees it. */
export interface Peer<Message = unknown> {
  /** Name of the peer, `xds-writer/1`. */
  readonly name: string
  /** Kind of the peer, `xds-writer`. */
  readonly kind: string
  /** Sends a message. While the peer is behind, a newer message replaces a waiting one with the same key. */
  tell(message: Message, key?: string): void
}

/** Messages a peer may be sent before it has worked off some of them. */
const window = 4096

/**
 * One end of a port between two actors. Outgoing messages leave in one batch per turn of the event loop; what exceeds the
 * peer's window waits in a coalescing mailbox. Incoming messages go to `deliver`; `processed` gives the sender room again.
 */
export class Link implements Peer {
  readonly name: string
  readonly kind: string
  readonly #port: MessagePort
  readonly #parked = new Mailbox()
  #batch: Keyed[] = []
  #credit = window
  #scheduled = false
  #owed = 0

  constructor(name: string, port: MessagePort, deliver: (entries: readonly Keyed[], from: Link) => void, closed: (link: Link) => void) {
    this.name = name
    this.kind = name.split('/')[0] as string
    this.#port = port
    port.on('message', (parcel: Parcel) => {
      if (parcel.type === 'Batch') {
        deliver(parcel.entries, this)
      } else {
        this.#credit += parcel.count
        this.#schedule()
      }
    })
    port.on('close', () => closed(this))
  }

  /** Messages that wait for the peer. */
  get waiting(): number {
    return this.#parked.size
  }

  tell(message: unknown, key = ''): void {
    if (this.#credit > 0 && this.#parked.size === 0) {
      this.#credit--
      this.#batch.push([key, message])
    } else {
      this.#parked.put([key, message])
    }
    this.#schedule()
  }

  /** Tells the sender that a message of its was worked off. */
  processed(count: number): void {
    this.#owed += count
    if (this.#owed >= window / 4) this.#settle()
    else this.#schedule()
  }

  close(): void {
    this.#flush()
    this.#port.close()
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => this.#flush())
  }

  #flush(): void {
    this.#scheduled = false
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
