/** The key sets (JWKS) that the configuration references, and the keys received for them. */
import { isDeepStrictEqual } from 'node:util'
import type { ResolverCommand } from '../../../protocols/messages/push.ts'
import type { NeededKeys } from '../../../src/snapshot/key-sources.ts'
import type { MeshState } from '../../../src/snapshot/state.ts'
import type { Peer } from '../../runtime/link.ts'
import { after, type Timer } from '../../runtime/timers.ts'

/** The maximum time that the first push waits for key sets, in milliseconds. */
const maxWaitMs = 6000

/** Subscribes to key sets at the resolver and stores the received keys in the mesh state. */
export class WantedKeys {
  readonly #state: Pick<MeshState, 'keySources' | 'setKeySet'>
  #resolver: Peer<ResolverCommand> | undefined
  #wanted: ReadonlyMap<string, NeededKeys> = new Map()
  /** Sources for which no answer has arrived yet. */
  readonly #awaited = new Set<string>()
  #timer: Timer | undefined
  #subscribing: NodeJS.Immediate | undefined

  constructor(state: Pick<MeshState, 'keySources' | 'setKeySet'>) {
    this.#state = state
  }

  /** Subscribes at a newly linked resolver, which has no subscriptions yet. */
  linked(resolver: Peer<ResolverCommand>): void {
    this.#resolver = resolver
    this.#send(resolver)
    this.subscribe()
  }

  unlinked(): void {
    this.#resolver = undefined
  }

  /** Sends the resolver the set of referenced key sets, if it changed. */
  subscribe(): void {
    const wanted = this.#state.keySources()
    if (!this.#resolver || wanted === this.#wanted || isDeepStrictEqual(wanted, this.#wanted)) return
    for (const source of wanted.keys()) if (!this.#wanted.has(source)) this.#awaited.add(source)
    for (const source of this.#wanted.keys()) if (!wanted.has(source)) this.#state.setKeySet(source, undefined)
    this.#wanted = wanted
    this.#send(this.#resolver)
  }

  #send(resolver: Peer<ResolverCommand>): void {
    const sources = [...this.#wanted].map(([source, needed]) => ({ source, ...needed }))
    resolver.tell({ type: 'ResolveKeySets', sources }, 'sources')
  }

  /** Calls {@link subscribe} once for all configuration events of this turn of the event loop. */
  subscribeLater(): void {
    this.#subscribing ??= setImmediate(() => {
      this.#subscribing = undefined
      this.subscribe()
    })
  }

  /** Stores the keys of a source. `keys` undefined: the fetch failed, and the previous keys stay. Returns whether the keys changed. */
  received(source: string, keys: string | undefined): boolean {
    this.#awaited.delete(source)
    return keys !== undefined && this.#state.setKeySet(source, keys)
  }

  /** Removes the keys of a source for which the resolver has no place. Returns whether there were any. */
  dropped(source: string): boolean {
    this.#awaited.delete(source)
    return this.#state.setKeySet(source, undefined)
  }

  /**
   * Whether the first push should wait for key sets. The wait is limited, because it delays all proxies; without the wait, proxies that
   * had the keys before would reject valid tokens. `then` is called when the wait times out.
   */
  delaysFirstPush(then: () => void): boolean {
    if (this.#awaited.size === 0) {
      this.#timer?.cancel()
      return false
    }
    this.#timer ??= after(maxWaitMs, () => {
      this.#awaited.clear()
      then()
    })
    return true
  }

  close(): void {
    this.#timer?.cancel()
    clearImmediate(this.#subscribing)
  }
}
