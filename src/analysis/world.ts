/** What analyzers may ask of the mesh. They hold no object but their own, so that an answer that changes says which objects to look at again. */
import type { ConfigObject, Service } from '../../protocols/data.ts'
import type { KindName } from '../config/kinds.ts'

/** A workload that selectors may match: a pod, a template of pods, or an entry. */
export interface Workload {
  readonly namespace: string
  readonly labels: Readonly<Record<string, string>>
}

/** Everything that is known of a mesh. What could not be read is undefined, and nothing is said to be missing in it. */
export interface World {
  /** The DNS suffix of the cluster. */
  readonly domain: string
  readonly rootNamespace: string
  /** All objects of a kind, by namespace and name. */
  objects(kind: KindName): readonly ConfigObject[]
  /** The services with exactly this host, a wildcard included. */
  services(host: string): readonly Service[]
  /** All hosts of services. */
  hosts(): readonly string[]
  /** The namespaces that exist. */
  readonly namespaces: ReadonlySet<string> | undefined
  /** The Secrets that exist, `<namespace>/<name>`. */
  readonly secrets: ReadonlySet<string> | undefined
  readonly workloads: readonly Workload[] | undefined
}
