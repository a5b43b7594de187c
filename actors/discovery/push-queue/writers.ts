/** The writers: what each of them is told, and which have still to take the last push of changes. */
import type { ClassAssignment, PushContent, PushInfo, WriterCommand } from '../../../protocols/messages/push.ts'
import { Audience, emptyPush, type Present } from '../../../src/push/audience.ts'
import { Takers } from '../../../src/push/pacing/takers.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { Peer } from '../../runtime/link.ts'
import { after, type Timer } from '../../runtime/timers.ts'
import { assignmentsOf } from './proxies.ts'

/** How long a push may stay untaken before the next goes out all the same, in milliseconds. */
const takenMs = 1000

/** A writer that is linked. */
interface Linked {
  readonly peer: Peer<WriterCommand>
  /** Its connections, and what it knows. */
  audience: Audience
  /** Ledger of what it was told last. */
  ledger: string | undefined
}

/** The writers that are linked. */
export class Writers {
  readonly #present: Present
  readonly #writers = new Map<string, Linked>()
  readonly #takers = new Takers()
  readonly #taken: () => void
  #timer: Timer | undefined
  #lastPush = 0

  /** What is new to a writer although it is old is taken from `present`. `taken` hears that the last push of changes was taken by all, or not in time. */
  constructor(present: Present, taken: () => void) {
    this.#present = present
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

  /** Whether it is the ledger of what some writer was told last: nothing has changed for it since. */
  isTold(ledger: string): boolean {
    return [...this.#writers.values()].some((writer) => writer.ledger === ledger)
  }

  /** A writer has come, which knows nothing. */
  add(peer: Peer<WriterCommand>): void {
    this.#writers.set(peer.name, { peer, audience: new Audience(this.#present), ledger: undefined })
  }

  /** A writer is gone; nothing waits for it. */
  remove(name: string): void {
    this.#writers.delete(name)
    if (this.#takers.gone(name)) this.#done()
  }

  /** A connection of a writer is gone. */
  left(name: string, connection: string): void {
    this.#writers.get(name)?.audience.left(connection, monotonicMs())
  }

  /**
   * Hands changes to all writers as the next push, and waits for them to take it. Returns false when there is nothing in them. Who has nothing of
   * what changed is told so: its ledger is the present one.
   */
  publish(push: Omit<PushInfo, 'id'>, content: PushContent): boolean {
    if (isNothing(content)) return false
    const id = ++this.#lastPush
    for (const writer of this.#writers.values()) this.#say(writer, { ...push, id }, this.#partOf(writer, content))
    this.#takers.begin(id, this.#writers.keys())
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

  /** Tells the writers for which something differs, which none waits for. */
  tell(push: PushInfo, content: PushContent): void {
    for (const writer of this.#writers.values()) {
      const part = this.#partOf(writer, content)
      if (!isNothing(part)) this.#say(writer, push, part)
    }
  }

  /** Tells one writer all that its connections need, with the classes of these; what was taken before has been told. */
  tellEverything(name: string, push: PushInfo, assignments: readonly ClassAssignment[]): void {
    const writer = this.#writers.get(name)
    if (!writer) return
    writer.audience = new Audience(this.#present)
    this.#say(writer, push, this.#partOf(writer, { ...emptyPush, whole: true, assignments }))
  }

  #partOf({ peer, audience }: Linked, content: PushContent): PushContent {
    return audience.next({ ...content, assignments: assignmentsOf(peer.name, content.assignments) }, monotonicMs())
  }

  #say(writer: Linked, push: PushInfo, content: PushContent): void {
    writer.ledger = push.ledger
    writer.peer.tell({ type: 'PublishPush', push, ...content })
  }

  /** Has all writers accept streams. */
  open(): void {
    for (const { peer } of this.#writers.values()) peer.tell({ type: 'OpenListener' })
  }

  /** Has all writers send everything again. */
  pushAgain(push: PushInfo): void {
    for (const { peer } of this.#writers.values()) peer.tell({ type: 'PushAgain', push })
  }

  /** Has writers let so many connections go. */
  release(counts: ReadonlyMap<string, number>): void {
    for (const [name, count] of counts) this.#writers.get(name)?.peer.tell({ type: 'ReleaseConnections', count }, 'release')
  }

  close(): void {
    this.#timer?.cancel()
  }

  #done(): void {
    this.#timer?.cancel()
    this.#taken()
  }
}

function isNothing({ whole, ...lists }: PushContent): boolean {
  return !whole && Object.values(lists).every((list) => list.length === 0)
}
