/**
 * Which in-thread actor is running. On a thread of its own an actor takes its timers and its uncaught errors with it; actors that
 * share a thread get the same here: their timers end with them, and an error that nobody caught ends its actor, not the process.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { EventEmitter } from 'node:events'

/** An actor that shares its thread, or whatever else owns timers and errors. */
export class Owner {
  readonly #fail: (error: unknown) => void
  readonly #timers = new Set<{ cancel(): void }>()
  #gone = false

  constructor(fail: (error: unknown) => void) {
    this.#fail = fail
  }

  /** Runs something as this owner. Whatever it starts (timers, promises, callbacks) belongs to the owner, too. */
  run<T>(work: () => T): T {
    return current.run(this, work)
  }

  /** Ends the owner with an error. */
  fail(error: unknown): void {
    this.#fail(error)
  }

  /** Takes charge of a timer. One that is set after the end is cancelled at once. */
  keep(timer: { cancel(): void }): void {
    this.#timers.add(timer)
    if (this.#gone) queueMicrotask(() => timer.cancel())
  }

  /** A timer has run or was cancelled. */
  release(timer: { cancel(): void }): void {
    this.#timers.delete(timer)
  }

  /** Cancels the timers that are set. */
  cancelTimers(): void {
    for (const timer of [...this.#timers]) timer.cancel()
  }

  /** Cancels the timers that are set, and from now on each that is set. */
  end(): void {
    this.#gone = true
    this.cancelTimers()
  }
}

const current = new AsyncLocalStorage<Owner>()

/** The owner on whose behalf the calling code runs; undefined outside of in-thread actors. */
export function currentOwner(): Owner | undefined {
  return current.getStore()
}

let catching = false

/** From now on an error that nobody catches ends its owner. One without an owner has the effect that it has without this. */
export function catchErrorsOfOwners(): void {
  if (catching) return
  catching = true
  process.setUncaughtExceptionCaptureCallback((error) => {
    const owner = current.getStore()
    if (owner) return owner.fail(error)
    if (process.listenerCount('uncaughtException') > 0) return void (process as EventEmitter).emit('uncaughtException', error, 'uncaughtException')
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`)
    process.exit(1)
  })
  process.on('unhandledRejection', (reason) => {
    const owner = current.getStore()
    if (owner) owner.fail(reason)
    else if (process.listenerCount('unhandledRejection') === 1) throw reason
  })
}
