/** The writers: what each of them is told, and which have still to take the last push of changes. */
import type { PushContent, PushInfo, WriterCommand } from '../../../protocols/messages/push.ts'
import { Takers } from '../../../src/push/pacing/takers.ts'
import type { Peer } from '../../runtime/link.ts'
import { after, type Timer } from '../../runtime/timers.ts'
import { assignmentsOf } from './proxies.ts'

/** How long a push may stay untaken before the next goes out all the same, in milliseconds. */
const takenMs = 1000

/** The writers that are linked. */
export class Writers {
  readonly #peers = new Map<string, Peer<WriterCommand>>()
  readonly #takers = new Takers()
  readonly #taken: () => void
  #timer: Timer | undefined
  /** Ledgers that writers were told since anything changed for them. */
  readonly #told = new Set<string>()
  #lastPush = 0

  /** `taken` hears that the last push of changes was taken by all, or not in time. */
  constructor(taken: () => void) {
    this.#taken = taken
  }

  /** Number of the last push of changes. */
  get lastPush(): number {
    return this.#lastPush
  }

  /** Whether writers have still to take the last push of changes. */
  get areTaking(): boolean {
    return this.#takers.waiting
  }

  /** Whether what writers were told last carried this ledger. */
  isTold(ledger: string): boolean {
    return this.#told.has(ledger)
  }

  add(writer: Peer<WriterCommand>): void {
    this.#peers.set(writer.name, writer)
  }

  /** A writer is gone; nothing waits for it. */
  remove(name: string): void {
    this.#peers.delete(name)
    if (this.#takers.gone(name)) this.#done()
  }

  /** Hands changes to all writers as the next push, and waits for them to take it. Returns false when there is nothing in them. */
  publish(push: Omit<PushInfo, 'id'>, content: PushContent): boolean {
    const id = this.#lastPush + 1
    if (!this.tell({ ...push, id }, content)) return false
    this.#lastPush = id
    this.#takers.begin(id, this.#peers.keys())
    this.#timer?.cancel()
    if (this.#takers.waiting)
      this.#timer = after(takenMs, () => {
        this.#takers.late()
        this.#done()
      })
    return true
  }

  /** A writer has taken a push. */
  taken(name: string, push: number): void {
    if (this.#takers.taken(name, push)) this.#done()
  }

  /** Tells every writer what differs for it, which none waits for. Returns false when there is nothing in it. */
  tell(push: PushInfo, content: PushContent): boolean {
    const { whole, ...lists } = content
    if (!whole && Object.values(lists).every((list) => list.length === 0)) return false
    this.#told.clear()
    for (const writer of this.#peers.values()) this.tellOne(writer, push, content)
    return true
  }

  /** Tells one writer, linked or about to be. */
  tellOne(writer: Peer<WriterCommand>, push: PushInfo, content: PushContent): void {
    this.#told.add(push.ledger)
    writer.tell({ type: 'PublishPush', push, ...content, assignments: assignmentsOf(writer.name, content.assignments) })
  }

  /** Has all writers accept streams. */
  open(): void {
    for (const writer of this.#peers.values()) writer.tell({ type: 'OpenListener' })
  }

  /** Has all writers send everything again. */
  pushAgain(push: PushInfo): void {
    for (const writer of this.#peers.values()) writer.tell({ type: 'PushAgain', push })
  }

  /** Has writers let so many connections go. */
  release(counts: ReadonlyMap<string, number>): void {
    for (const [name, count] of counts) this.#peers.get(name)?.tell({ type: 'ReleaseConnections', count }, 'release')
  }

  close(): void {
    this.#timer?.cancel()
  }

  #done(): void {
    this.#timer?.cancel()
    this.#taken()
  }
}
