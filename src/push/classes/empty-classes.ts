/** Classes that have no connections any more and are kept for a moment. */

/** How long a class is kept after its last connection closed, in milliseconds. Most proxies that disconnect reconnect soon. */
export const classGraceMs = 4000

/** Classes without connections, with the time since when. Times are in monotonic milliseconds. */
export class EmptyClasses {
  readonly #since = new Map<string, number>()

  has(classId: string): boolean {
    return this.#since.has(classId)
  }

  /** Adds a class that has lost its last connection. A class that is there already keeps its time. */
  add(classId: string, now: number): void {
    if (!this.#since.has(classId)) this.#since.set(classId, now)
  }

  /** Removes a class that has connections again, or is gone. */
  delete(classId: string): void {
    this.#since.delete(classId)
  }

  /** The classes that have been without connections for {@link classGraceMs}. */
  expired(now: number): string[] {
    return [...this.#since].flatMap(([id, since]) => (now - since >= classGraceMs ? id : []))
  }
}
