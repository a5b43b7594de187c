/** The linked writers, and what each one is sent. */
import type { ClassAssignment, PushContent, PushInfo, WriterCommand } from '../../../protocols/messages/push.ts'
import { Audience, emptyPush, isEmptyPush, type Present, type PushChanges } from '../../../src/push/audience.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { Peer } from '../../runtime/link.ts'
import { assignmentsOf } from './proxies.ts'

/** A linked writer. */
interface Linked {
  readonly peer: Peer<WriterCommand>
  /** Its connections, and the classes, groups and slabs that it has received. */
  audience: Audience
  /** Ledger of the last push that was sent to it. */
  digest: string | undefined
}

/** Distributes pushes to the linked writers. */
export class Writers {
  readonly #present: Present
  readonly #writers = new Map<string, Linked>()
  #lastPush: number

  /**
   * `present` supplies existing groups and manifests to a writer that receives them for the first time. The first push has the number after
   * `before`.
   */
  constructor(present: Present, before = 0) {
    this.#present = present
    this.#lastPush = before
  }

  /** Number of the last push of changes. */
  get lastPush(): number {
    return this.#lastPush
  }

  /** The names of the linked writers. */
  get names(): readonly string[] {
    return [...this.#writers.keys()]
  }

  /** Whether this is the digest of the last push to some writer, which means that nothing that writer serves has changed since. */
  isLastSent(digest: string): boolean {
    return [...this.#writers.values()].some((writer) => writer.digest === digest)
  }

  /** Adds a newly linked writer, which has received nothing yet. */
  add(peer: Peer<WriterCommand>): void {
    this.#writers.set(peer.name, { peer, audience: new Audience(this.#present), digest: undefined })
  }

  /** Removes a writer. */
  remove(name: string): void {
    this.#writers.delete(name)
  }

  /** Removes a closed connection of a writer. */
  disconnected(name: string, connection: string): void {
    this.#writers.get(name)?.audience.connectionClosed(connection, monotonicMs())
  }

  /**
   * Sends changes to all writers as the next push. Returns false when there are no changes. A writer that has none of the changed groups
   * receives the push as well, for its new digest.
   */
  publish(push: Omit<PushInfo, 'id'>, content: PushChanges): boolean {
    if (isEmptyPush(content)) return false
    const id = ++this.#lastPush
    for (const writer of this.#writers.values()) this.#publishTo(writer, { ...push, id }, this.#partOf(writer, content))
    return true
  }

  /** Sends content to the writers that it concerns, as no push of changes. Returns whether it concerns any. */
  send(push: PushInfo, content: PushChanges): boolean {
    let isSent = false
    for (const writer of this.#writers.values()) {
      const part = this.#partOf(writer, content)
      if (isEmptyPush(part)) continue
      isSent = true
      this.#publishTo(writer, push, part)
    }
    return isSent
  }

  /**
   * Sends one writer the full state for its connections, whose classes are given by `assignments`. Pending changes must have been sent
   * with {@link send} before.
   */
  sendFullState(name: string, push: PushInfo, assignments: readonly ClassAssignment[]): void {
    const writer = this.#writers.get(name)
    if (!writer) return
    writer.audience = new Audience(this.#present)
    this.#publishTo(writer, push, this.#partOf(writer, { ...emptyPush, whole: true, assignments }))
  }

  #partOf({ peer, audience }: Linked, content: PushChanges): PushContent {
    return audience.next({ ...content, assignments: assignmentsOf(peer.name, content.assignments) }, monotonicMs())
  }

  #publishTo(writer: Linked, push: PushInfo, content: PushContent): void {
    writer.digest = push.digest
    writer.peer.tell({ type: 'PublishPush', push, ...content })
  }

  /** Commands all writers to open their listeners. */
  openListeners(): void {
    for (const { peer } of this.#writers.values()) peer.tell({ type: 'OpenListener' })
  }

  /** Commands all writers to send every resource again. */
  pushAgain(push: PushInfo): void {
    for (const { peer } of this.#writers.values()) peer.tell({ type: 'PushAgain', push })
  }

  /** Commands each writer to close the given number of connections. */
  closeConnections(counts: ReadonlyMap<string, number>): void {
    for (const [name, count] of counts) this.#writers.get(name)?.peer.tell({ type: 'ReleaseConnections', count }, 'release')
  }
}
