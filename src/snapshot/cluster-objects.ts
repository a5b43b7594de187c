/** The objects that describe clusters, as the arbiter decided on them: pods, namespaces and nodes (docs/resources.md, O1 to O5). */
import type { ClusterNode, ConfigObject, Namespace, Pod } from '../../protocols/data.ts'
import { configKey, kindOfKey } from '../config/kinds.ts'
import { sameFields } from '../registry/slices.ts'
import { noPods, type PodIndex, withPods } from './pods.ts'
import { sameContent } from './same-content.ts'

/** A namespace or node before and after a change. */
export interface ClusterChange<Object> {
  readonly before: Object | undefined
  readonly now: Object | undefined
}

/** Told of each change. Which pods there are is taken with the next snapshot. */
export interface ClusterListener {
  namespaceChanged(change: ClusterChange<Namespace>): void
  nodeChanged(change: ClusterChange<ClusterNode>): void
  podChanged(key: string, change: ClusterChange<Pod>): void
}

/** Collects the objects of all clusters. An object with equal content is not a change. */
export class ClusterObjects {
  readonly #listener: ClusterListener
  readonly #held = new Map<string, ConfigObject>()
  /** Clusters that had an object; empty for sources without a cluster. */
  readonly #clusters = new Set<string>()
  #pods = noPods
  /** Pods changed since the last {@link takePods}, by key. */
  readonly #changed = new Map<string, ClusterChange<Pod>>()

  constructor(listener: ClusterListener) {
    this.#listener = listener
  }

  get(key: string): ConfigObject | undefined {
    return this.#held.get(key)
  }

  /** The keys of all objects. */
  keys(): Iterable<string> {
    return this.#held.keys()
  }

  /** The objects of a kind with a name, of all clusters. */
  named(kind: string, namespace: string, name: string): ConfigObject[] {
    return [...this.#clusters].flatMap((cluster) => this.#held.get(configKey({ kind, namespace, name, cluster })) ?? [])
  }

  /** Adds, replaces or removes an object. Returns whether it differs from before. */
  set(key: string, given: ConfigObject | undefined): boolean {
    const before = this.#held.get(key)
    if (before === given || (before && given && sameContent(before, given))) return false
    // Labels that are equal keep their identity, since most changes of pods and nodes are of their status.
    const now = before && given && sameFields(before.labels, given.labels) ? { ...given, labels: before.labels } : given
    if (now) {
      this.#held.set(key, now)
      this.#clusters.add(now.cluster)
    } else this.#held.delete(key)
    const kind = kindOfKey(key)
    if (kind === 'Pod') this.#podChanged(key, before as Pod | undefined, now as Pod | undefined)
    else if (before?.labels !== now?.labels && kind === 'Namespace') this.#listener.namespaceChanged({ before, now } as ClusterChange<Namespace>)
    else if (before?.labels !== now?.labels && kind === 'Node') this.#listener.nodeChanged({ before, now } as ClusterChange<ClusterNode>)
    return kind === 'Pod' || before?.labels !== now?.labels
  }

  /** The pods as they are now. It is the same index while none has changed. */
  takePods(): PodIndex {
    if (this.#changed.size > 0) this.#pods = withPods(this.#pods, this.#changed.values())
    this.#changed.clear()
    return this.#pods
  }

  #podChanged(key: string, before: Pod | undefined, now: Pod | undefined): void {
    const first = this.#changed.has(key) ? this.#changed.get(key)?.before : before
    this.#changed.set(key, { before: first, now })
    this.#listener.podChanged(key, { before, now })
  }
}
