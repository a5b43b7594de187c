/** The push queue's answers about configuration objects that are served to other control planes (docs/xds-protocol.md, "Configuration objects"). */
import { randomBytes } from 'node:crypto'
import type { ListPiece } from '../../../protocols/messages/pages.ts'
import type { ServedChanges, ServedObject } from '../../../protocols/messages/served-config.ts'
import { configKey } from '../../../src/config/kinds.ts'
import { Recent } from '../../../src/model/recent.ts'
import type { MeshState } from '../../../src/snapshot/state.ts'
import { kindToServe } from '../../../src/xds/config-objects/config-resource.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { within } from '../../runtime/timers.ts'
import { Listings, type WeighedRow } from './listings.ts'

/** The changes that are kept: their number, and the size of their keys in characters. */
const kept = { items: 20_000, bytes: 4_194_304 }
/** Maximum number of changed objects in one answer; if there are more, all objects are asked for, in pieces. */
const mostChanges = 1000
/** Maximum time for which a change is waited for in one question, in milliseconds: well below the deadline of questions. */
const longestWaitMs = 3000
/** What copying an object costs, in small objects ({@link WeighedRow}). */
const objectWeight = 20

/** Which objects changed of late. */
export class ServedObjects {
  readonly #state: MeshState
  readonly #domain: string
  readonly #isReady: () => boolean
  readonly #lists = new Listings()
  readonly #changed = new Recent<string>(kept, randomBytes(4).toString('hex'), (key) => key.length)
  /** Resolved with the next change. */
  #next = Promise.withResolvers<void>()

  /** `isReady`: whether the state is complete; before, nothing is said of it, since what is missing would pass for removed. */
  constructor(state: MeshState, domain: string, isReady: () => boolean) {
    this.#state = state
    this.#domain = domain
    this.#isReady = isReady
  }

  /** An object was sent by its source, changed or not: one of equal content may be of another source. */
  changed(key: string): void {
    this.#changed.add(key)
    this.#next.resolve()
    this.#next = Promise.withResolvers()
  }

  /** The source of any object may differ: all of them are to be looked at again. */
  allMayDiffer(): void {
    this.#changed.gap()
    this.#next.resolve()
    this.#next = Promise.withResolvers()
  }

  readonly answers = {
    /** All objects that are served, in pieces. `next`: the number of the piece after the first one. */
    servedObjects: (next?: number): ListPiece<unknown> => {
      this.#checkReady()
      return next === undefined ? this.#lists.first(this.#rows()) : this.#lists.more(next)
    },
    /** The objects that changed after a cursor; if there are none, waits for one up to `waitMs` milliseconds. An empty cursor has a gap. */
    servedChanges: async (cursor: string, waitMs: number): Promise<ServedChanges> => {
      this.#checkReady()
      const until = monotonicMs() + Math.min(waitMs, longestWaitMs)
      for (;;) {
        const { items, cursor: now, isGap } = this.#changed.since(cursor)
        const keys = new Set(items)
        const isTooMuch = isGap || keys.size > mostChanges
        const restMs = until - monotonicMs()
        if (isTooMuch || keys.size > 0 || !(restMs > 0))
          return { objects: isTooMuch ? [] : Array.from(keys, (key) => this.#served(key)), cursor: now, isGap: isTooMuch }
        await within(restMs, this.#next.promise)
      }
    },
  }

  #checkReady(): void {
    if (!this.#isReady()) throw new Error('the configuration is not complete yet')
  }

  #served(key: string): ServedObject {
    const object = this.#state.objects.get(key)
    return { key, object: object && kindToServe(object, this.#domain) ? object : undefined }
  }

  *#rows(): Generator<WeighedRow<ServedObject>> {
    for (const object of this.#state.objects.each()) if (kindToServe(object, this.#domain)) yield [{ key: configKey(object), object }, objectWeight]
  }
}
