/** Tells the actor `distribution` which pushes were made, and what caused them (`PushPublished`). */
import type { ConfigObject, RegistryId } from '../../../protocols/data.ts'
import type { CausingObject, PublishedPush, PushEvent } from '../../../protocols/messages/distribution.ts'
import type { GroupUpdate, WriterEvent } from '../../../protocols/messages/push.ts'
import { configKey, kindOfKey, kinds } from '../../../src/config/kinds.ts'
import { CollectedChanges } from '../../../src/push/distribution/config-changes.ts'
import type { Peer } from '../../runtime/link.ts'
import { after, type Timer } from '../../runtime/timers.ts'

/** Maximum number of objects that a push names; the others are counted. */
const mostNamed = 32
/** The least time between two messages about changes that led to no push, in milliseconds. */
const idleMs = 1000

const unknown: Partial<ConfigObject> = {}

/** The kinds of which it is told that an object selects no connected proxy. */
const selecting: ReadonlySet<string> = new Set([
  'AuthorizationPolicy',
  'EnvoyFilter',
  'Gateway',
  'PeerAuthentication',
  'RequestAuthentication',
  'Sidecar',
])

/** The parts of a published push that its maker knows. */
export interface MadePush {
  readonly id: number
  readonly startedAt: number
  readonly publishedAt: number
  readonly makingMs: number
  readonly reasons: readonly string[]
  readonly groups: readonly GroupUpdate[]
  /** Returns the type of the resources of a group. */
  readonly typeOf: (group: string) => string
}

/** What changed since the last push, and who is told of pushes. */
export class PushReports {
  readonly #named = new Map<string, CausingObject>()
  /** Keys of changed objects beyond those that are named. */
  readonly #others = new Set<string>()
  /** What happened to configuration objects since it was told last. All that there is at the start is no change. */
  readonly #changes = new CollectedChanges()
  /** Keys of the first changed objects that select proxies. */
  readonly #selecting = new Set<string>()
  #isStarted = false
  #idleTimer: Timer | undefined
  #peer: Peer<PushEvent> | undefined

  linked(peer: Peer<PushEvent>): void {
    this.#peer = peer
  }

  unlinked(): void {
    this.#peer = undefined
  }

  close(): void {
    this.#idleTimer?.cancel()
  }

  /** A configuration object changed or was removed. `now`: as it is from now on; `before`: as it was. */
  object(key: string, now: ConfigObject | undefined, before: ConfigObject | undefined): void {
    const { namespace = '', source = '', cluster = '', uid = '', resourceVersion: version = '', place = '' } = now ?? before ?? unknown
    if (this.#isStarted && kinds.has(kindOfKey(key))) {
      this.#changes.add(key, place, now ? (before ? 'changed' : 'added') : 'removed')
      if (now && selecting.has(kindOfKey(key)) && this.#selecting.size < mostNamed) this.#selecting.add(key)
    }
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

  /** A push with all changes so far was published, or was not needed. `selectingNone`: those keys of objects that select no connected proxy. */
  published(made: MadePush | undefined, selectingNone: (keys: readonly string[]) => readonly string[]): void {
    if (this.#selecting.size > 0) this.#changes.selectNone(selectingNone([...this.#selecting]))
    this.#selecting.clear()
    const isFirst = !this.#isStarted
    this.#isStarted = true
    if (made) {
      const changes = this.#changes.take()
      if (this.#peer) this.#peer.tell({ type: 'PushPublished', push: this.#pushOf(made, isFirst ? undefined : changes) })
    } else this.#tellIdle()
    this.#named.clear()
    this.#others.clear()
  }

  #pushOf({ groups, typeOf, ...push }: MadePush, changes: PublishedPush['changes']): PublishedPush {
    const types = new Map<string, { typeUrl: string; resources: number; removed: number; bytes: number }>()
    for (const { group, changed, removed } of groups) {
      const typeUrl = typeOf(group)
      let type = types.get(typeUrl)
      if (!type) types.set(typeUrl, (type = { typeUrl, resources: 0, removed: 0, bytes: 0 }))
      type.resources += changed.length
      type.removed += removed.length
      for (const { slices } of changed) for (let at = 2; at < slices.length; at += 3) type.bytes += slices[at] as number
    }
    const made = [...types.values()]
    const sum = (of: 'resources' | 'bytes') => made.reduce((total, type) => total + type[of], 0)
    const objects = [...this.#named.values()]
    return { ...push, objects, otherObjects: this.#others.size, changes, types: made, resources: sum('resources'), bytes: sum('bytes') }
  }

  /** Tells of changes that no push has, unless the next push does so before. */
  #tellIdle(): void {
    if (this.#changes.isEmpty) return
    this.#idleTimer ??= after(idleMs, () => {
      this.#idleTimer = undefined
      const changes = this.#changes.take()
      if (changes) this.#peer?.tell({ type: 'NothingPublished', changes })
    }).unref()
  }

  #changed(object: CausingObject): void {
    if (this.#named.has(object.key) || this.#named.size < mostNamed) this.#named.set(object.key, object)
    else this.#others.add(object.key)
  }
}
