/**
 * Lets each asker have one name looked up at a time. Node looks up names on threads that the whole process shares, two at once, and a lookup
 * cannot be ended: without turns, names whose servers do not answer would occupy both for one asker.
 */
import { type LookupAddress, type LookupAllOptions, lookup } from 'node:dns'

type Done = (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void

/** Looks up all addresses of a name. */
export type LookupAll = (name: string, options: LookupAllOptions, done: Done) => void

/** The turns of all askers of a thread. */
export class LookupTurns {
  readonly #lookup: LookupAll
  /** By asker the end of its last lookup, which waits for those before it. */
  readonly #last = new Map<string, Promise<void>>()

  /** `find`: looks up a name, if not the system. */
  constructor(find: LookupAll = lookup) {
    this.#lookup = find
  }

  /** The number of askers with a lookup under way. */
  get size(): number {
    return this.#last.size
  }

  /** Returns a lookup in the turns of an asker. It fails without a lookup when the signal is aborted before its turn. */
  of(asker: string, signal: AbortSignal): LookupAll {
    return (name, options, done) => {
      const find = () =>
        new Promise<void>((resolve) => {
          const ended: Done = (error, addresses) => {
            resolve()
            done(error, addresses)
          }
          if (signal.aborted) ended(new Error('the fetch has ended'), [])
          else this.#lookup(name, options, ended)
        })
      const before = this.#last.get(asker)
      const own = before ? before.then(find) : find()
      this.#last.set(asker, own)
      void own.then(() => this.#last.get(asker) === own && this.#last.delete(asker))
    }
  }
}
