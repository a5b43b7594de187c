/** What a started process writes to its standard output and standard error. */
import type { ChildProcess } from 'node:child_process'
import { until } from './until.ts'

/**
 * The text that a process wrote. It comes through a pipe and may come after anything else by which a test notices what the process did (an answer,
 * a metric, its end): so what must be in it is waited for (`says`), and only what must not be in it is looked for at once (`lacks`).
 */
export class Output {
  #text = ''
  #open: Promise<unknown> = Promise.resolve()
  readonly #earlier: { readonly output: Output; readonly length: number } | undefined

  /** `earlier` makes it the part of another output that comes after so many characters. */
  constructor(earlier?: { readonly output: Output; readonly length: number }) {
    this.#earlier = earlier
  }

  /** Takes what a process writes, behind what is here already. */
  follow(child: ChildProcess): void {
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (bytes) => (this.#text += bytes))
    child.on('error', (error) => (this.#text += error.message))
    this.#open = new Promise((resolve) => child.once('close', resolve))
  }

  /** Waits until it holds this `atLeast` times, then throws if it is more than `atMost`. Gives what was found first: the match and its groups, or the words. */
  async says(what: string | RegExp, atLeast = 1, atMost = Number.POSITIVE_INFINITY): Promise<readonly string[]> {
    await until(
      `${JSON.stringify(String(what))} to be said${atLeast > 1 ? ` ${atLeast} times` : ''}`,
      () => this.#all(what).length >= atLeast,
      20_000,
    )
    const found = this.#all(what)
    if (found.length > atMost) throw new Error(`${what} is said ${found.length} times instead of at most ${atMost}`)
    return found[0] ?? []
  }

  /** Throws if it is said by now. Comes after something is waited for that is said later, or after `whole`. */
  lacks(what: string | RegExp): void {
    const [found] = this.#all(what)
    if (found !== undefined) throw new Error(`${what} is said: ${JSON.stringify(found[0])} in ${this.soFar()}`)
  }

  /** What comes from now on. */
  fromNow(): Output {
    return new Output({ output: this, length: this.soFar().length })
  }

  /** What has come until now: for messages and for searches in what has been waited for. Never expected to hold something (`lint/output.grit`). */
  soFar(): string {
    return this.#earlier === undefined ? this.#text : this.#earlier.output.soFar().slice(this.#earlier.length)
  }

  /** All of it, once the process has ended and everything that it wrote has come. */
  async whole(): Promise<string> {
    await (this.#earlier?.output ?? this).#open
    return this.soFar()
  }

  #all(what: string | RegExp): readonly (readonly string[])[] {
    if (typeof what !== 'string') return [...this.soFar().matchAll(new RegExp(what.source, what.flags.includes('g') ? what.flags : `${what.flags}g`))]
    return this.soFar()
      .split(what)
      .slice(1)
      .map(() => [what])
  }
}
