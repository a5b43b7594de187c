/**
 * The part of a cluster's watcher that tells the analyzer what it looks at in objects that are no configuration of the mesh (`ResourceSeen`;
 * docs/analysis.md, Y4): annotations of Services, Namespaces and pods, containers of pods, and what Ingresses lead to.
 */
import type { Resource } from '../../../../protocols/messages/analysis.ts'
import { resourceKey } from '../../../../src/analysis/mesh-facts.ts'
import { backendsOf, resourceOf, workloadOf } from '../../../../src/analysis/resources.ts'
import { configKey } from '../../../../src/config/kinds.ts'
import { analyzedPodFields } from '../../../../src/orchestrator/object-fields.ts'
import type { Peer } from '../../../runtime/link.ts'
import type { SeenReports } from '../seen-reports.ts'
import type { Follower, WatcherPart } from './watcher-part.ts'

type Mapping = Readonly<Record<string, unknown>>

/** An object as the part that follows it uses it, and as analysis looks at it. */
interface Tapped {
  readonly inner: unknown
  readonly resource: Resource | undefined
}

/** The kinds that are looked at. */
const kinds: ReadonlySet<string> = new Set(['Namespace', 'Service', 'Pod', 'Ingress'])

/** Takes objects from the parts that follow them, and keeps the reports of the watcher. */
export class ResourcesPart implements WatcherPart {
  readonly followers = []
  readonly #reports: SeenReports
  readonly #cluster: string
  readonly #isListed: () => boolean

  constructor(reports: SeenReports, cluster: string, isListed: () => boolean) {
    this.#reports = reports
    this.#cluster = cluster
    this.#isListed = isListed
  }

  /** Returns a follower that tells the analyzer of its objects too. */
  tap(follower: Follower): Follower {
    const { kind } = follower.resource
    if (!kinds.has(kind)) return follower
    return {
      ...follower,
      resource: kind === 'Pod' ? { ...follower.resource, fields: analyzedPodFields } : follower.resource,
      cut: (value) => {
        const { object, ...rest } = follower.cut(value)
        return { ...rest, object: object === undefined ? undefined : ({ inner: object, resource: this.#seen(kind, value) } satisfies Tapped) }
      },
      set: (key, object) => {
        const tapped = object as Tapped | undefined
        follower.set(key, tapped?.inner)
        this.#reports.tell({ type: 'ResourceSeen', key: this.#keyOf(kind, key), resource: tapped?.resource })
      },
    }
  }

  #seen(kind: string, value: Mapping): Resource | undefined {
    const resource = resourceOf({ ...value, kind }, `cluster ${this.#cluster}`)
    if (!resource) return undefined
    if (kind === 'Ingress') return { ...resource, backends: backendsOf(value) }
    return workloadOf(value, resource) ?? resource
  }

  /** Pods and Namespaces have the keys that they have in force. */
  #keyOf(kind: string, key: string): string {
    const [namespace = '', name = ''] = key.split('/')
    const id = { kind, namespace, name }
    return kind === 'Pod' || kind === 'Namespace' ? configKey({ ...id, cluster: this.#cluster }) : resourceKey(id)
  }

  replay(): void {}

  linked(peer: Peer): void {
    this.#reports.linked(peer)
  }

  unlinked(peer: Peer): void {
    this.#reports.unlinked(peer)
  }

  settled(): void {
    if (this.#isListed()) this.#reports.complete()
  }
}
