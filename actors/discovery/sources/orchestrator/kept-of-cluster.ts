/** Keeps the watcher of another cluster within its bounds, and tells what is left out (docs/operation.md, J9). */
import type { RegistryWatcherConfig } from '../../../../protocols/messages/orchestrator.ts'
import type { Features } from '../../../../src/config/features.ts'
import { ClusterBounds, type NotTaken } from '../../../../src/orchestrator/cluster-bounds.ts'
import type { Resource } from '../../../../src/orchestrator/resources.ts'
import { memoryOfData } from '../../../../src/xds/stream/budget.ts'

/** What is kept of another cluster. */
export class KeptOfCluster {
  /** The largest number of objects that a list is compared with. */
  readonly mostListed: number
  readonly #cluster: string
  readonly #bounds: ClusterBounds
  readonly #say: (line: string) => void
  /** By path what is told of objects that were left out, and whether some were since the last whole list. */
  readonly #left = new Map<string, { readonly line: string; isRecent: boolean }>()

  /** `say` is called with a line when objects of a kind begin to be left out. */
  constructor({ cluster, features }: Pick<RegistryWatcherConfig, 'cluster' | 'features'>, say: (line: string) => void) {
    const { PILOT_REMOTE_CLUSTER_MAX_OBJECTS: objects, PILOT_REMOTE_CLUSTER_MAX_BYTES: bytes } = features as Features
    this.mostListed = 2 * objects
    this.#cluster = cluster
    this.#bounds = new ClusterBounds({ objects, bytes })
    this.#say = say
  }

  /** Whether objects are left out at present. */
  get isFull(): boolean {
    return this.#left.size > 0
  }

  /** What is left out, for the body of `/ready`. */
  get troubles(): readonly string[] {
    return [...this.#left.values()].map(({ line }) => line)
  }

  /** Takes an object, or says why it is not to be kept. Undefined: it cannot be used. */
  take({ kind, path }: Resource, key: string, version: string, object: unknown): NotTaken | undefined {
    const notTaken = this.#bounds.take(path, key, version, object === undefined ? undefined : memoryOfData(object))
    if (!notTaken) return undefined
    const known = this.#left.get(path)
    if (known) known.isRecent = true
    else {
      const line = `cluster ${this.#cluster}: ${kind} ${key.slice(0, 520)} and others are left out: ${notTaken.reason}; what is known of the cluster stays`
      this.#left.set(path, { line, isRecent: true })
      this.#say(line)
    }
    return notTaken
  }

  removed(path: string, key: string): void {
    this.#bounds.free(path, key)
  }

  freeAll(path: string): void {
    this.#bounds.freeAll(path)
    this.#left.delete(path)
  }

  /** A list was read whole. Returns whether nothing of the resource is left out any more. */
  listed(path: string): boolean {
    const known = this.#left.get(path)
    if (!known) return false
    if (!known.isRecent) return this.#left.delete(path)
    known.isRecent = false
    return false
  }
}
