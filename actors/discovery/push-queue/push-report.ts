/** Tells the actor `distribution` which pushes were made, and what caused them (`PushPublished`). */
import type { ConfigObject, RegistryId } from '../../../protocols/data.ts'
import type { CausingObject, PushEvent } from '../../../protocols/messages/distribution.ts'
import type { GroupUpdate, WriterEvent } from '../../../protocols/messages/push.ts'
import { configKey } from '../../../src/config/kinds.ts'
import type { Peer } from '../../runtime/link.ts'

/** Maximum number of objects that a push names; the others are counted. */
const mostNamed = 32

const unknown: Partial<ConfigObject> = {}

/** The parts of a published push that its maker knows. */
export interface MadePush {
  readonly id: number
  readonly startedAt: number
  readonly publishedAt: number
  readonly makingMs: number
  readonly reasons: readonly string[]
  readonly groups: readonly GroupUpdate[]
}

/** What changed since the last push, and who is told of pushes. */
export class PushReports {
  readonly #named = new Map<string, CausingObject>()
  /** Keys of changed objects beyond those that are named. */
  readonly #others = new Set<string>()
  #peer: Peer<PushEvent> | undefined

  linked(peer: Peer<PushEvent>): void {
    this.#peer = peer
  }

  unlinked(): void {
    this.#peer = undefined
  }

  /** A configuration object changed or was removed. `now`: as it is from now on; `before`: as it was. */
  object(key: string, now: ConfigObject | undefined, before: ConfigObject | undefined): void {
    const { namespace = '', source = '', cluster = '', uid = '', resourceVersion: version = '', place = '' } = now ?? before ?? unknown
    this.#changed({ key, namespace, generation: now?.generation ?? 0, source, cluster, uid, version, place })
  }

  /** A service of a registry, or its endpoints, changed. `path`: `<namespace>/<hostname>`. */
  service({ provider, cluster }: RegistryId, path: string): void {
    const at = path.indexOf('/')
    const namespace = path.slice(0, at)
    const key = configKey({ kind: 'Service', namespace, name: path.slice(at + 1) })
    this.#changed({ key, namespace, generation: 0, source: provider, cluster, uid: '', version: '', place: '' })
  }

  /** A proxy of a writer refused a response. `objects`: keys of those that may be the cause. */
  refused(writer: string, { connection, typeUrl }: Extract<WriterEvent, { type: 'ResourcesRefused' }>, objects: readonly string[]): void {
    if (objects.length > 0) this.#peer?.tell({ type: 'RefusalBlamed', writer, connection, typeUrl, objects: objects.slice(0, mostNamed) })
  }

  /** A push with all changes so far was published, or was not needed. */
  published(made: MadePush | undefined): void {
    if (made && this.#peer) {
      const { groups, ...push } = made
      let [resources, bytes] = [0, 0]
      for (const { changed } of groups)
        for (const { slices } of changed) {
          resources++
          for (let at = 2; at < slices.length; at += 3) bytes += slices[at] as number
        }
      const objects = [...this.#named.values()]
      this.#peer.tell({ type: 'PushPublished', push: { ...push, objects, otherObjects: this.#others.size, resources, bytes } })
    }
    this.#named.clear()
    this.#others.clear()
  }

  #changed(object: CausingObject): void {
    if (this.#named.has(object.key) || this.#named.size < mostNamed) this.#named.set(object.key, object)
    else this.#others.add(object.key)
  }
}
