/** Tells the status writer of the configuration objects of a cluster as their source reads them (`MeshObjectChanged`). */
import type { MeshObject, MeshObjectEvent } from '../../../../protocols/messages/object-status.ts'
import { configKey } from '../../../../src/config/kinds.ts'
import type { ParsedFile } from '../../../../src/config/parse.ts'
import { mapping } from '../../../../src/config/shape.ts'
import { count } from '../../../../src/model/counts.ts'
import type { MeshDefinition } from '../../../../src/orchestrator/mesh-definitions.ts'
import { heldStatus, longestStatus } from '../../../../src/status/object-status.ts'
import type { Peer, Replay } from '../../../runtime/link.ts'
import type { ScopedLogger } from '../../../runtime/logger.ts'

/** The parts of an object that its status depends on. */
export type SeenObject = Omit<MeshObject, 'key' | 'group' | 'version' | 'plural' | 'fault'> & { readonly isTooLong: boolean }

/** Cuts an object of the cluster to what its status depends on. */
export function seenObject(value: Readonly<Record<string, unknown>>): SeenObject {
  const { namespace, name, uid, resourceVersion, generation } = mapping(value.metadata)
  return {
    ...{ namespace: text(namespace), name: text(name), uid: text(uid), resourceVersion: text(resourceVersion) },
    generation: typeof generation === 'number' ? generation : 0,
    ...heldStatus(value.status),
  }
}

const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/** The objects, and who is told of them. */
export class ObjectReports {
  readonly #log: ScopedLogger
  readonly #objects = new Map<string, MeshObject>()
  /** Those whose status is left alone. */
  readonly #tooLong = new Set<string>()
  #writer: Peer<MeshObjectEvent> | undefined
  #replay: Replay | undefined
  #isListed = false

  constructor(log: ScopedLogger) {
    this.#log = log
  }

  linked(peer: Peer): void {
    if (peer.kind !== 'status-writer') return
    this.#writer = peer as Peer<MeshObjectEvent>
    this.#replay = this.#writer.replay()
    for (const id of this.#objects.keys()) this.#tell(id)
    this.#finish()
  }

  unlinked(peer: Peer): void {
    if (peer.kind !== 'status-writer') return
    this.#writer = undefined
    this.#replay = undefined
  }

  /** All objects have been told, so that what was told before and is not among them is gone. */
  listed(): void {
    this.#isListed = true
    this.#finish()
  }

  /** An object was read. One for another control plane is not told. */
  read(id: string, { kind, group, version, plural }: MeshDefinition, seen: SeenObject, { faults, foreign }: ParsedFile): void {
    const { isTooLong, ...rest } = seen
    if (isTooLong && !this.#tooLong.has(id))
      this.#log.warn(`the status of ${id} has more than ${count(longestStatus, 'character')}: it is left alone`)
    if (isTooLong) this.#tooLong.add(id)
    else this.#tooLong.delete(id)
    if (isTooLong || foreign.size > 0 || version === undefined || rest.uid === '') return this.removed(id, isTooLong)
    const [first] = faults
    const fault = first ? `${first.path === '' ? '' : `${first.path}: `}${first.reason}` : ''
    const key = configKey({ kind: kind.name, namespace: rest.namespace, name: rest.name })
    this.#objects.set(id, { key, group, version, plural, fault, ...rest })
    this.#tell(id)
  }

  /** An object is gone. */
  removed(id: string, isTooLong = false): void {
    if (!isTooLong) this.#tooLong.delete(id)
    if (this.#objects.delete(id)) this.#tell(id)
  }

  #tell(id: string): void {
    this.#writer?.tell({ type: 'MeshObjectChanged', id, object: this.#objects.get(id) }, id)
  }

  #finish(): void {
    if (!this.#isListed) return
    this.#replay?.finish()
    this.#replay = undefined
  }
}
