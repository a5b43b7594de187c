/**
 * Lets each asker have one name looked up at a time, so that names whose servers do not answer occupy sockets, or where the system is asked
 * one of its threads, once for an asker.
 */
import { type LookupAll, lookUpName } from './name-lookup.ts'

/** A lookup without the signal that ends it. */
export type LookupParts = Parameters<LookupAll> extends [...infer Parts, AbortSignal] ? Parts : never

/** The turns of all askers of a thread. */
export class LookupTurns {
  readonly #lookup: LookupAll
  /** By asker the end of its last lookup, which waits for those before it. */
  readonly #last = new Map<string, Promise<void>>()

  /** `find`: how a name is looked up. */
  constructor(find: LookupAll = lookUpName) {
    this.#lookup = find
  }

  /** The number of askers with a lookup under way. */
  get size(): number {
    return this.#last.size
  }

  /** Returns a lookup in the turns of an asker. It fails without a lookup when the signal is aborted before its turn. */
  of(asker: string, signal: AbortSignal): (...lookup: LookupParts) => void {
    return (name, options, done) => {
      const find = () =>
        new Promise<void>((resolve) => {
          const ended: LookupParts[2] = (error, addresses) => {
            resolve()
            done(error, addresses)
          }
          if (signal.aborted) ended(new Error('the fetch has ended'), [])
          else this.#lookup(name, options, ended, signal)
        })
      const before = this.#last.get(asker)
      const own = before ? before.then(find) : find()
      this.#last.set(asker, own)
      void own.then(() => this.#last.get(asker) === own && this.#last.delete(asker))
    }
  }
}
