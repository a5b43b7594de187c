/** The life of a class, which follows from its connections. */
import { classSteps, type LifeState, step } from '../life.ts'

/** How long a class lingers after its last connection closed, in milliseconds. Most proxies that disconnect reconnect soon. */
export const classGraceMs = 4000

/** Counts the connections of a class and derives its state. Times are in monotonic milliseconds. */
export class ClassLife {
  readonly id: string
  #state: LifeState = 'made'
  #connections = 0
  /** Since when the class lingers; undefined while it does not, or while that has not been told. */
  #since: number | undefined

  constructor(id: string) {
    this.id = id
  }

  get state(): LifeState {
    return this.#state
  }

  get connections(): number {
    return this.#connections
  }

  /** Adds a connection. */
  join(): void {
    this.#connections++
    if (this.#state !== 'wanted') this.#become('wanted')
  }

  /** Removes a connection at `now`. The last one makes the class linger. */
  leave(now?: number): void {
    if (this.#connections === 0) throw new Error(`class ${this.id} has no connection that could leave it`)
    if (--this.#connections > 0) return
    this.#become('lingering')
    this.#since = now
  }

  /** Whether the class has lingered for {@link classGraceMs}. The time starts with the first call if the class was left at no time. */
  isExpired(now: number): boolean {
    return this.#state === 'lingering' && now - (this.#since ??= now) >= classGraceMs
  }

  /** Ends the life of a class without connections. */
  end(): void {
    this.#become('gone')
  }

  #become(state: LifeState): void {
    this.#state = step(classSteps, this.#state, state, `class ${this.id}`)
    this.#since = undefined
  }
}
