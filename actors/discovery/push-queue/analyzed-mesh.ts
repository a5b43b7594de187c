/** Tells the analyzer what is in force (`InForceEvent`): everything when it is linked, later what a push has changed. */
import type { InForceEvent } from '../../../protocols/messages/analysis.ts'
import { configKey } from '../../../src/config/kinds.ts'
import type { Changes } from '../../../src/snapshot/snapshot.ts'
import type { MeshState } from '../../../src/snapshot/state.ts'
import type { Peer } from '../../runtime/link.ts'

/** What is told of, and what may have changed since the last push. Without an analyzer it keeps nothing. */
export class AnalyzedMesh {
  readonly #state: MeshState
  readonly #keys = new Set<string>()
  #peer: Peer<InForceEvent> | undefined
  /** Whether there was a push: before, not everything that is in force is known. */
  #isComplete = false

  constructor(state: MeshState) {
    this.#state = state
  }

  linked(peer: Peer<InForceEvent>): void {
    this.#peer = peer
    if (this.#isComplete) this.#replay()
  }

  unlinked(): void {
    this.#peer = undefined
    this.#keys.clear()
  }

  /** The object that is in force may differ. */
  changed(key: string): void {
    if (this.#peer) this.#keys.add(key)
  }

  /** A push has these changes. */
  published(changes: Changes): void {
    const isFirst = !this.#isComplete
    this.#isComplete = true
    if (!this.#peer) return
    if (isFirst) this.#replay()
    else {
      for (const { before, now } of changes.objects) this.#keys.add(configKey((now ?? before) as NonNullable<typeof now>))
      for (const key of this.#keys) this.#tellObject(key)
      for (const host of changes.services) this.#tellServices(host)
      if (changes.settings) this.#tellMesh()
    }
    this.#keys.clear()
  }

  #replay(): void {
    const replay = this.#peer?.replay()
    this.#tellMesh()
    for (const object of this.#state.objects.each()) this.#tellObject(configKey(object))
    for (const key of this.#state.keysInClusters()) this.#tellObject(key)
    for (const host of this.#state.current.services.keys()) this.#tellServices(host)
    replay?.finish()
  }

  #tellObject(key: string): void {
    if (!key.startsWith('Node/')) this.#peer?.tell({ type: 'ObjectInForce', key, object: this.#state.object(key) }, `o${key}`)
  }

  #tellServices(host: string): void {
    const services = (this.#state.current.services.get(host) ?? []).map(({ service }) => service)
    this.#peer?.tell({ type: 'ServicesInForce', host, services }, `h${host}`)
  }

  #tellMesh(): void {
    const { mesh } = this.#state.current
    this.#peer?.tell({ type: 'MeshInForce', mesh, networks: this.#state.networks.inForce.value }, 'mesh')
  }
}
