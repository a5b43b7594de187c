/**
 * Objects of a cluster whose regular expressions take long to check: they are parsed on a thread pool, one at a time and within a deadline, since
 * whoever may write objects of one namespace must not delay those of others.
 */
import type { ParsedFile } from '../../../../src/config/parse.ts'
import { createPool, type Pool } from '../../../runtime/pool.ts'
import type { ParseTask } from '../files/parse-task.ts'

/** The task of the pool. The modules of the built code are in one folder. */
const parseTask = import.meta.url.endsWith('.ts') ? '../files/parse-task.ts' : './parse-task.js'

/** An object that is to be parsed. */
export interface SlowObject {
  readonly task: ParseTask
  /** Returns what counts when it cannot be parsed in time, for a reason. */
  refused(reason: string): ParsedFile
  /** Takes what came of it, unless it was dropped or replaced meanwhile. */
  parsed(parsed: ParsedFile): void
}

/** The objects that wait, by name, the newest state of each. */
export class SlowObjects {
  readonly #waiting = new Map<string, SlowObject>()
  readonly #settled: () => void
  readonly #deadlineMs: number
  #pool: Pool | undefined
  #isBusy = false
  #isClosed = false

  /** `settled`: called when an object has been parsed. `deadlineMs`: how long one may take on the pool. */
  constructor(settled: () => void, deadlineMs: number) {
    this.#settled = settled
    this.#deadlineMs = deadlineMs
  }

  /** The number of objects that wait, or are being parsed. */
  get size(): number {
    return this.#waiting.size
  }

  add(name: string, object: SlowObject): void {
    // It keeps its turn: an object that is changed again and again is parsed in between.
    this.#waiting.set(name, object)
    void this.#work()
  }

  /** The object is gone, or has a state that needs no parsing here. */
  drop(name: string): void {
    this.#waiting.delete(name)
  }

  /** What waits counts as what cannot be parsed in time, until it has been parsed. */
  refuse(): void {
    for (const object of [...this.#waiting.values()]) object.parsed(object.refused(this.#tooSlow))
  }

  close(): void {
    this.#isClosed = true
    this.#waiting.clear()
    void this.#pool?.destroy()
  }

  async #work(): Promise<void> {
    if (this.#isBusy) return
    this.#isBusy = true
    for (let next = this.#next(); next; next = this.#next()) {
      const [name, object] = next
      const parsed = await this.#parse(object)
      if (this.#isClosed) return
      // It was replaced meanwhile: the newer state has its turn behind the others.
      const now = this.#waiting.get(name)
      this.#waiting.delete(name)
      if (now === object) object.parsed(parsed)
      else if (now) this.#waiting.set(name, now)
      this.#settled()
    }
    this.#isBusy = false
  }

  #next(): [string, SlowObject] | undefined {
    return this.#waiting.entries().next().value
  }

  async #parse({ task, refused }: SlowObject): Promise<ParsedFile> {
    this.#pool ??= createPool(new URL(parseTask, import.meta.url), { threads: 1, queue: 2 })
    try {
      return await this.#pool.run<ParsedFile>(task, this.#deadlineMs)
    } catch {
      return refused(this.#tooSlow)
    }
  }

  /** Why the regular expressions of an object that took longer are refused. */
  get #tooSlow(): string {
    return `the regular expressions of this object could not be checked within ${this.#deadlineMs / 1000} s`
  }
}
