/** Tells the actor `distribution` of which objects patches are withdrawn from proxies, since these refuse them (`ObjectsWithdrawn`). */
import type { ObjectsWithdrawn } from '../../../protocols/messages/object-status.ts'
import type { Planner } from '../../../src/push/planner.ts'
import type { Peer } from '../../runtime/link.ts'
import { after, type Timer } from '../../runtime/timers.ts'

/** The least time between two messages, in milliseconds. */
const tellMs = 200

/** The objects that are withdrawn, and who is told of them. */
export class WithdrawnObjects {
  readonly #planner: Pick<Planner, 'withdrawn'>
  #peer: Peer<ObjectsWithdrawn> | undefined
  #timer: Timer | undefined
  /** What was told last, as JSON; empty: nothing. */
  #told = ''

  constructor(planner: Pick<Planner, 'withdrawn'>) {
    this.#planner = planner
  }

  linked(peer: Peer<ObjectsWithdrawn>): void {
    this.#peer = peer
    this.#told = ''
    this.changed()
  }

  unlinked(): void {
    this.#peer = undefined
  }

  close(): void {
    this.#timer?.cancel()
  }

  /** Proxies, what they refused, or objects may have changed. */
  changed(): void {
    if (!this.#peer) return
    this.#timer ??= after(tellMs, () => {
      this.#timer = undefined
      this.#tell()
    }).unref()
  }

  #tell(): void {
    const found = new Map<string, { key: string; reason: string; connections: string[] }>()
    for (const { key, reason, connection } of this.#planner.withdrawn()) {
      const known = found.get(key)
      if (known) known.connections.push(connection)
      else found.set(key, { key, reason, connections: [connection] })
    }
    const objects = [...found.values()]
    const text = JSON.stringify(objects)
    if (text === this.#told) return
    this.#told = text
    this.#peer?.tell({ type: 'ObjectsWithdrawn', objects }, 'withdrawn')
  }
}
