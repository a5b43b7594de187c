/** The standard output and standard error of a process. */
import type { ChildProcess } from 'node:child_process'
import { until } from './until.ts'

/**
 * The output of a process. It arrives through a pipe, possibly later than other effects that a test observes (a response, a metric, the
 * exit). Tests therefore wait for expected text (`says`), and check at once only for the absence of text (`lacks`).
 */
export class Output {
  #text = ''
  #open: Promise<unknown> = Promise.resolve()
  readonly #earlier: { readonly output: Output; readonly length: number } | undefined

  /** With `earlier`, the object covers the part of another output after `length` characters. */
  constructor(earlier?: { readonly output: Output; readonly length: number }) {
    this.#earlier = earlier
  }

  /** Appends the output of a process. */
  follow(child: ChildProcess): void {
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (bytes) => (this.#text += bytes))
    child.on('error', (error) => (this.#text += error.message))
    this.#open = new Promise((resolve) => child.once('close', resolve))
  }

  /**
   * Waits until the output contains `what` at least `atLeast` times, and throws when it contains more than `atMost`. Returns the first
   * match with its groups, or the text.
   */
  async says(what: string | RegExp, atLeast = 1, atMost = Number.POSITIVE_INFINITY): Promise<readonly string[]> {
    await until(`${JSON.stringify(String(what))} to be said${atLeast > 1 ? ` ${atLeast} times` : ''}`, () => this.#all(what).length >= atLeast)
    const found = this.#all(what)
    if (found.length > atMost) throw new Error(`${what} is said ${found.length} times instead of at most ${atMost}`)
    return found[0] ?? []
  }

  /** Throws when the output already contains `what`. To be called after waiting for text that is written later, or after `whole`. */
  lacks(what: string | RegExp): void {
    const [found] = this.#all(what)
    if (found !== undefined) throw new Error(`${what} is said: ${JSON.stringify(found[0])} in ${this.soFar()}`)
  }

  /** Returns the output from now on. */
  fromNow(): Output {
    return new Output({ output: this, length: this.soFar().length })
  }

  /**
   * The output so far, for messages and for searches in text that has been waited for. Assertions on its contents are not allowed
   * (`lint/output.grit`).
   */
  soFar(): string {
    return this.#earlier === undefined ? this.#text : this.#earlier.output.soFar().slice(this.#earlier.length)
  }

  /** Resolves with the whole output after the process has exited and its pipes are closed. */
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
