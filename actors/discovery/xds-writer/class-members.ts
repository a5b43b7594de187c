/** The connections of each class, so that a push visits only those that it concerns. */
import type { Connection } from './connection.ts'

export class ClassMembers {
  readonly #members = new Map<string, Set<Connection>>()

  /** Whether a class has connections. */
  has(classId: string): boolean {
    return this.#members.has(classId)
  }

  /** Returns the connections of a class. */
  of(classId: string): Iterable<Connection> {
    return this.#members.get(classId) ?? []
  }

  /** Moves a connection to a class. */
  move(connection: Connection, classId: string): void {
    this.leave(connection)
    connection.session.classId = classId
    const members = this.#members.get(classId)
    if (members) members.add(connection)
    else this.#members.set(classId, new Set([connection]))
  }

  /** Takes a connection out of its class. */
  leave(connection: Connection): void {
    const { classId } = connection.session
    const members = this.#members.get(classId)
    members?.delete(connection)
    if (members?.size === 0) this.#members.delete(classId)
  }
}
