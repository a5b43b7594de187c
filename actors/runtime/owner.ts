/**
 * Tracks which in-thread actor the running code belongs to. An actor on a worker thread takes its timers and uncaught errors with it when
 * it ends; this module gives actors that share a thread the same: their timers end with them, and an uncaught error ends its actor, not
 * the process.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { EventEmitter } from 'node:events'

/** An owner of timers and errors, such as an actor that shares its thread. */
export class Owner {
  readonly #fail: (error: unknown) => void
  readonly #timers = new Set<{ cancel(): void }>()
  #gone = false

  constructor(fail: (error: unknown) => void) {
    this.#fail = fail
  }

  /** Runs code as this owner. Timers, promises and callbacks that the code starts belong to this owner too. */
  run<T>(work: () => T): T {
    return current.run(this, work)
  }

  /** Ends the owner with an error. */
  fail(error: unknown): void {
    this.#fail(error)
  }

  /** Registers a timer. A timer set after {@link end} is cancelled at once. */
  keep(timer: { cancel(): void }): void {
    this.#timers.add(timer)
    if (this.#gone) queueMicrotask(() => timer.cancel())
  }

  /** Unregisters a timer that has run or was cancelled. */
  release(timer: { cancel(): void }): void {
    this.#timers.delete(timer)
  }

  /** Cancels all registered timers. */
  cancelTimers(): void {
    for (const timer of [...this.#timers]) timer.cancel()
  }

  /** Cancels all registered timers, and every timer set later. */
  end(): void {
    this.#gone = true
    this.cancelTimers()
  }
}

const current = new AsyncLocalStorage<Owner>()

/** The owner of the running code; undefined outside of in-thread actors. */
export function currentOwner(): Owner | undefined {
  return current.getStore()
}

/** Runs code as no owner: its timers stay when the actor that runs it ends. */
export function unowned<T>(work: () => T): T {
  return current.exit(work)
}

let catching = false

/**
 * Makes uncaught errors and rejections end their owner from now on. Those without an owner have the effect that they have without this
 * function.
 */
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
