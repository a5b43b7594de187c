import type { Entry, Keyed, ReplayMark } from '../../protocols/messages/envelope.ts'

/**
 * A first-in, first-out queue of messages of one link in one direction. A newer message replaces a waiting message with the same key and
 * goes to the end of the queue, unless a replay mark (begin or end) stands between them: no message crosses a mark. When a new replay
 * begins while an older one waits with its begin mark, the marks of the older one are removed, and the messages that they separated
 * coalesce. So at most three marks wait, and at most four messages of one key.
 */
export class Mailbox {
  readonly #entries = new Map<number, Entry>()
  /** By key, the waiting message after the last mark: the only one that a newer message may replace. */
  readonly #replaceable = new Map<string, number>()
  #serial = 0
  /** The waiting begin mark, and the end mark of the same replay. */
  #begin: number | undefined
  #end: number | undefined
  /** A waiting end mark whose begin mark has been taken already. */
  #loneEnd: number | undefined

  /** Number of waiting messages and marks. */
  get size(): number {
    return this.#entries.size
  }

  /** Adds a message or mark. Returns the number of waiting entries that it made obsolete and removed. */
  put(entry: Entry): number {
    return isMark(entry) ? this.#putMark(entry) : this.#putMessage(entry)
  }

  /** Takes the oldest message or mark, or undefined when there is none. */
  take(): Entry | undefined {
    for (const [serial, entry] of this.#entries) {
      this.#entries.delete(serial)
      if (!isMark(entry)) {
        if (this.#replaceable.get(entry[0]) === serial) this.#replaceable.delete(entry[0])
      } else if (serial === this.#begin) {
        this.#loneEnd = this.#end
        this.#begin = this.#end = undefined
      } else {
        this.#loneEnd = undefined
      }
      return entry
    }
    return undefined
  }

  /** Removes all entries. */
  clear(): void {
    this.#entries.clear()
    this.#replaceable.clear()
    this.#begin = this.#end = this.#loneEnd = undefined
  }

  #putMessage(entry: Keyed): number {
    const [key] = entry
    const serial = ++this.#serial
    this.#entries.set(serial, entry)
    if (key === '') return 0
    const before = this.#replaceable.get(key)
    this.#replaceable.set(key, serial)
    if (before === undefined) return 0
    this.#entries.delete(before)
    return 1
  }

  #putMark(entry: ReplayMark): number {
    const removed = entry.mark === 'begin' ? this.#supersede() : 0
    const serial = ++this.#serial
    this.#entries.set(serial, entry)
    this.#replaceable.clear()
    if (entry.mark === 'begin') this.#begin = serial
    else if (this.#begin === undefined) this.#loneEnd = serial
    else this.#end = serial
    return removed
  }

  /**
   * Removes the marks of a replay of which both wait, or its begin alone, then all but the newest message of each key that they
   * separated.
   */
  #supersede(): number {
    if (this.#begin === undefined) return 0
    const before = this.#entries.size
    for (const mark of [this.#begin, this.#end]) if (mark !== undefined) this.#entries.delete(mark)
    this.#begin = this.#end = undefined
    const newer = new Set<string>()
    for (const [serial, entry] of [...this.#entries].reverse()) {
      if (serial === this.#loneEnd) break
      const [key] = entry as Keyed
      if (key === '') continue
      if (newer.has(key)) this.#entries.delete(serial)
      newer.add(key)
    }
    return before - this.#entries.size
  }
}

/** Whether an entry is a replay mark. */
export function isMark(entry: Entry): entry is ReplayMark {
  return !Array.isArray(entry)
}
