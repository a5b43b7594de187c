/** The localities that endpoints have by their nodes (docs/resources.md, O4), and which services have such endpoints. */
import type { Endpoint, RegistryId } from '../../protocols/data.ts'
import { keptSlice, type Slice } from './slices.ts'

type Labels = Readonly<Record<string, string>>

/** The locality in the labels of a node, `region/zone/subzone`; empty without one. `domain` is that of the mesh. */
export function nodeLocality(labels: Labels, domain: string): string {
  const label = (...names: string[]) => names.map((name) => (Object.hasOwn(labels, name) ? labels[name] : undefined)).find(Boolean) ?? ''
  const parts = ['region', 'zone'].map((part) => label(`topology.kubernetes.io/${part}`, `failure-domain.beta.kubernetes.io/${part}`))
  return [...parts, label(`topology.${domain}/subzone`)].join('/').replace(/\/+$/, '')
}

/** A slice in which endpoints have the localities of their nodes, as of a version of these. */
interface Located {
  readonly slice: Slice
  readonly version: number
}

/** The nodes, and the services with endpoints that have their locality from a node. */
export class NodeLocalities {
  /** By name, then by cluster. */
  readonly #nodes = new Map<string, Map<string, string>>()
  /** By the name of a node the services with slices that need it, with the number of these slices. */
  readonly #services = new Map<string, Map<string, number>>()
  readonly #located = new WeakMap<Slice, Located>()
  /** Changes with every change of a node. */
  #version = 0

  /** Sets the locality of a node, or removes the node. Returns the keys of the services with endpoints of nodes of this name. */
  setNode(cluster: string, name: string, locality: string | undefined): Iterable<string> {
    const clusters = this.#nodes.get(name) ?? new Map<string, string>()
    if (clusters.get(cluster) === locality) return []
    if (locality === undefined) clusters.delete(cluster)
    else clusters.set(cluster, locality)
    if (clusters.size > 0) this.#nodes.set(name, clusters)
    else this.#nodes.delete(name)
    this.#version++
    return [...(this.#services.get(name)?.keys() ?? [])]
  }

  /** Notes the slices of a service that came and went. */
  changed(service: string, before: readonly Slice[], now: readonly Slice[]): void {
    if (!before.some(needsNode) && !now.some(needsNode)) return
    const [there, here] = [new Set(before), new Set(now)]
    for (const slice of before) if (!here.has(slice)) this.#count(service, slice, -1)
    for (const slice of now) if (!there.has(slice)) this.#count(service, slice, 1)
  }

  /** Returns a slice of a registry with the localities of its nodes. Endpoints that do not change keep their identity. */
  located(slice: Slice, { cluster }: RegistryId): Slice {
    if (!needsNode(slice) || this.#nodes.size === 0) return slice
    const known = this.#located.get(slice)
    if (known?.version === this.#version) return known.slice
    const endpoints = slice.endpoints.map((endpoint) => this.#locate(endpoint, cluster))
    const isSame = endpoints.every((endpoint, index) => endpoint === slice.endpoints[index])
    const found = isSame ? slice : keptSlice(known?.slice, { key: slice.key, version: '', endpoints })
    this.#located.set(slice, { slice: found, version: this.#version })
    return found
  }

  #locate(endpoint: Endpoint, registry: string): Endpoint {
    const { locality, node, cluster = registry } = endpoint
    if (locality !== '' || !node) return endpoint
    const clusters = this.#nodes.get(node)
    const found = clusters?.get(cluster) ?? clusters?.get('')
    return found ? { ...endpoint, locality: found } : endpoint
  }

  #count(service: string, { nodes }: Slice, by: number): void {
    for (const node of nodes) {
      const services = this.#services.get(node) ?? new Map<string, number>()
      const count = (services.get(service) ?? 0) + by
      if (count > 0) services.set(service, count)
      else services.delete(service)
      if (services.size > 0) this.#services.set(node, services)
      else this.#services.delete(node)
    }
  }
}

const needsNode = ({ nodes }: Slice): boolean => nodes.length > 0
