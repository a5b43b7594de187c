/** Which key sets the configuration names, and what is known of them. */
import type { ResolverCommand } from '../../../protocols/messages/push.ts'
import type { MeshState } from '../../../src/snapshot/state.ts'
import type { Peer } from '../../runtime/link.ts'
import { after, type Timer } from '../../runtime/timers.ts'

/** How long the first push waits for key sets, in milliseconds. */
const keysMs = 6000

/** The key sets that are asked for. */
export class WantedKeys {
  readonly #state: Pick<MeshState, 'keySources' | 'setKeySet'>
  #resolver: Peer<ResolverCommand> | undefined
  #wanted: ReadonlyMap<string, number> = new Map()
  /** Those that nothing has been heard of. */
  readonly #awaited = new Set<string>()
  #timer: Timer | undefined
  #asking: NodeJS.Immediate | undefined

  constructor(state: Pick<MeshState, 'keySources' | 'setKeySet'>) {
    this.#state = state
  }

  /** A resolver has come, which knows of no source yet. */
  linked(resolver: Peer<ResolverCommand>): void {
    this.#resolver = resolver
    this.#tell(resolver)
    this.ask()
  }

  unlinked(): void {
    this.#resolver = undefined
  }

  /** Tells the resolver which key sets are wanted now, if they are others than before. */
  ask(): void {
    const wanted = this.#state.keySources()
    if (
      !this.#resolver ||
      wanted === this.#wanted ||
      (wanted.size === this.#wanted.size && [...wanted].every(([source, ms]) => this.#wanted.get(source) === ms))
    )
      return
    for (const source of wanted.keys()) if (!this.#wanted.has(source)) this.#awaited.add(source)
    for (const source of this.#wanted.keys()) if (!wanted.has(source)) this.#state.setKeySet(source, undefined)
    this.#wanted = wanted
    this.#tell(this.#resolver)
  }

  #tell(resolver: Peer<ResolverCommand>): void {
    const sources = [...this.#wanted].map(([source, timeoutMs]) => ({ source, timeoutMs }))
    resolver.tell({ type: 'ResolveKeySets', sources }, 'sources')
  }

  /** The same once for all events that come together: there may be many. */
  askLater(): void {
    this.#asking ??= setImmediate(() => {
      this.#asking = undefined
      this.ask()
    })
  }

  /** The keys of a source are these, or could not be had: those that are known stay then. Returns whether they are others than before. */
  heard(source: string, keys: string | undefined): boolean {
    this.#awaited.delete(source)
    return keys !== undefined && this.#state.setKeySet(source, keys)
  }

  /**
   * Whether the first push should wait, which it does for a moment: without their keys, proxies that were served before would
   * refuse good tokens. `then` is called when the moment is over.
   */
  holdBack(then: () => void): boolean {
    if (this.#awaited.size === 0) {
      this.#timer?.cancel()
      return false
    }
    this.#timer ??= after(keysMs, () => {
      this.#awaited.clear()
      then()
    })
    return true
  }

  close(): void {
    this.#timer?.cancel()
    clearImmediate(this.#asking)
  }
}
