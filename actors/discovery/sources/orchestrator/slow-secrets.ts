/**
 * Secrets with many certificates: they are read in turns of some milliseconds, for a part of the thread's time, since whoever may write objects of
 * one namespace must not delay those of others. Namespaces take turns. Keys do not leave the thread (docs/resources.md, K8).
 */
import { monotonicMs } from '../../../runtime/clock.ts'
import { after, type Timer } from '../../../runtime/timers.ts'

/** How long a turn is, in milliseconds, unless one step takes longer, and how many times as long the thread is left to others after it. */
const turns = { ms: 2, rest: 3 }

/** A Secret that is to be read. */
export interface SlowSecret<Result> {
  /** Begins to read it, in steps. */
  begin(): Iterator<unknown, Result>
  /** Takes what came of it, unless it was dropped meanwhile. */
  done(result: Result): void
}

interface Waiting<Result> {
  /** What is being read. */
  secret: SlowSecret<Result>
  steps: Iterator<unknown, Result> | undefined
  /** A newer state, which came after that was begun: it is read next. */
  newer: SlowSecret<Result> | undefined
}

/** The Secrets that wait, by namespace and key, the newest state of each. */
export class SlowSecrets<Result> {
  readonly #namespaces = new Map<string, Map<string, Waiting<Result>>>()
  readonly #turnMs: number
  #next: Timer | undefined

  constructor(turnMs = turns.ms) {
    this.#turnMs = turnMs
  }

  /** Whether a Secret waits. */
  has(namespace: string, key: string): boolean {
    return this.#namespaces.get(namespace)?.has(key) === true
  }

  /** A Secret is to be read. One that is being read is read to its end first: one that is changed again and again is read in between. */
  add(namespace: string, key: string, secret: SlowSecret<Result>): void {
    const known = this.#namespaces.get(namespace)
    const keys = known ?? new Map<string, Waiting<Result>>()
    if (!known) this.#namespaces.set(namespace, keys)
    const waiting = keys.get(key)
    if (waiting?.steps) waiting.newer = secret
    else if (waiting) waiting.secret = secret
    else keys.set(key, { secret, steps: undefined, newer: undefined })
    this.#next ??= after(0, () => this.#turn())
  }

  /** The Secret is gone, or has a state that is read at once. */
  drop(namespace: string, key: string): void {
    const keys = this.#namespaces.get(namespace)
    keys?.delete(key)
    if (keys?.size === 0) this.#namespaces.delete(namespace)
  }

  /** Those of a namespace are not wanted any more. */
  dropAll(namespace: string): void {
    this.#namespaces.delete(namespace)
  }

  close(): void {
    this.#namespaces.clear()
    this.#next?.cancel()
  }

  #turn(): void {
    this.#next = undefined
    const began = monotonicMs()
    const [namespace, keys] = this.#namespaces.entries().next().value ?? []
    const [key, waiting] = keys?.entries().next().value ?? []
    if (namespace === undefined || !keys || key === undefined || !waiting) return
    // The next turn is that of another namespace.
    this.#namespaces.delete(namespace)
    this.#namespaces.set(namespace, keys)
    this.#read(namespace, key, waiting, began + this.#turnMs)
    if (this.#namespaces.size > 0) this.#next ??= after((monotonicMs() - began) * turns.rest, () => this.#turn())
  }

  #read(namespace: string, key: string, waiting: Waiting<Result>, until: number): void {
    waiting.steps ??= waiting.secret.begin()
    let step = waiting.steps.next()
    while (step.done !== true && monotonicMs() < until) step = waiting.steps.next()
    if (step.done !== true) return
    this.drop(namespace, key)
    const { secret, newer } = waiting
    // Before the result is taken, so that what exists and is not read yet is never missing.
    if (newer) this.add(namespace, key, newer)
    secret.done(step.value)
  }
}
