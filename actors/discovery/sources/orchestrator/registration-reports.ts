/** Tells the registrar of the WorkloadGroups and WorkloadEntries of a cluster as their source reads them (docs/registration.md). */
import type { RegistrationObjectEvent } from '../../../../protocols/messages/registration.ts'
import type { ParsedFile } from '../../../../src/config/parse.ts'
import { mapping } from '../../../../src/config/shape.ts'
import type { MeshDefinition } from '../../../../src/orchestrator/mesh-definitions.ts'
import { entryData, groupData } from '../../../../src/orchestrator/registered-entry.ts'
import type { Peer, Replay } from '../../../runtime/link.ts'

/** The objects, and who is told of them. */
export class RegistrationReports {
  readonly #domain: string | undefined
  readonly #objects = new Map<string, RegistrationObjectEvent>()
  #registrar: Peer<RegistrationObjectEvent> | undefined
  #replay: Replay | undefined
  #isListed = false

  /** `domain`: that of the mesh; undefined: workloads are not registered, and nothing is kept. */
  constructor(domain: string | undefined) {
    this.#domain = domain
  }

  linked(peer: Peer): void {
    if (peer.kind !== 'registrar') return
    this.#registrar = peer as Peer<RegistrationObjectEvent>
    this.#replay = this.#registrar.replay()
    for (const [id, event] of this.#objects) this.#registrar.tell(event, id)
    this.#finish()
  }

  unlinked(peer: Peer): void {
    if (peer.kind !== 'registrar') return
    this.#registrar = undefined
    this.#replay = undefined
  }

  /** All objects have been told, so that what was told before and is not among them is gone. */
  listed(): void {
    this.#isListed = true
    this.#finish()
  }

  /** An object was read. A group for another control plane is not told; of one that cannot be used the last good state stays. */
  read(id: string, { kind, group, version }: MeshDefinition, value: Readonly<Record<string, unknown>>, { objects, foreign }: ParsedFile): void {
    if (this.#domain === undefined || version === undefined) return
    if (kind.name === 'WorkloadEntry') {
      const entry = entryData(value, { group, version }, this.#domain)
      if (entry) this.#set(id, { type: 'WorkloadEntryChanged', id, entry })
    } else if (kind.name === 'WorkloadGroup') {
      if (foreign.size > 0) return this.removed(id)
      const [object] = objects
      const workloadGroup = object && groupData(value, mapping(object.spec), { group, version })
      if (workloadGroup) this.#set(id, { type: 'WorkloadGroupChanged', id, workloadGroup })
    }
  }

  /** An object is gone. */
  removed(id: string): void {
    const event = this.#objects.get(id)
    if (!event) return
    this.#objects.delete(id)
    this.#registrar?.tell(withdrawn(event.type, id), id)
  }

  #set(id: string, event: RegistrationObjectEvent): void {
    this.#objects.set(id, event)
    this.#registrar?.tell(event, id)
  }

  #finish(): void {
    if (!this.#isListed) return
    this.#replay?.finish()
    this.#replay = undefined
  }
}

/** Returns the message that removes an object. */
const withdrawn = (type: RegistrationObjectEvent['type'], id: string): RegistrationObjectEvent =>
  type === 'WorkloadEntryChanged' ? { type, id, entry: undefined } : { type, id, workloadGroup: undefined }
