/** What analysis finds in the mesh of a running service, from what it is told to be in force; worked out again for what changed only. */
import type { ConfigObject } from '../../protocols/data.ts'
import type { FaultFound, InForceEvent, Resource, SeenEvent } from '../../protocols/messages/analysis.ts'
import { kindOfKey, kinds, readKey } from '../config/kinds.ts'
import { defaultMeshConfig, type MeshConfig, type MeshNetworks } from '../config/mesh-config.ts'
import { compare } from '../model/order.ts'
import { Analysis } from './analysis.ts'
import { entryWorkload } from './entry-workload.ts'
import type { Finding } from './finding.ts'
import { MeshFacts } from './mesh-facts.ts'
import { proxyImageIn, type ViewFeatures, viewOf } from './mesh-view.ts'
import type { World } from './world.ts'

/** What a live mesh is made of. */
export interface LiveParts extends Pick<World, 'domain' | 'names' | 'patchFaults'> {
  readonly features: ViewFeatures & { readonly CLUSTER_ID: string }
}

/** A Pod or Namespace: in force, and as its source has read it, which says more. */
interface Told {
  inForce?: ConfigObject | undefined
  seen?: Resource | undefined
}

/** The most findings of one object that its status has. */
const mostOfObject = 20

/** A finding of a running service. */
export interface LiveFinding extends Finding {
  /** Where the object stands, for people. */
  readonly place: string
}

/** Takes what is in force, and what sources have read beside it. */
export class LiveMesh {
  readonly #parts: LiveParts
  readonly #facts: MeshFacts
  readonly #analysis: Analysis
  /** The Pods and Namespaces of all clusters, by key. */
  readonly #told = new Map<string, Told>()
  /** The Namespaces of all clusters, by name and key. */
  readonly #namespaces = new Map<string, Map<string, Resource>>()
  /** The names of those that several clusters have. */
  readonly #shared = new Set<string>()
  /** What sources could not use, by what they read together, and by object. */
  readonly #faults = new Map<string, readonly FaultFound[]>()
  readonly #faultsOf = new Map<string, Map<string, readonly FaultFound[]>>()
  #mesh: Extract<InForceEvent, { readonly type: 'MeshInForce' }> | undefined
  #proxyImage: string | undefined
  /** The objects whose faults have changed. */
  readonly #faulty = new Set<string>()

  constructor(parts: LiveParts) {
    this.#parts = parts
    this.#facts = new MeshFacts({ ...parts, mesh: viewOf(defaultMeshConfig(), undefined, undefined, parts.features) })
    this.#facts.setClusters([parts.features.CLUSTER_ID])
    this.#analysis = new Analysis(this.#facts)
  }

  /** Takes an event. Nothing is worked out yet. */
  apply(event: InForceEvent | SeenEvent): void {
    switch (event.type) {
      case 'ServicesInForce':
        return this.#facts.setServices(event.host, event.services)
      case 'MeshInForce':
        this.#mesh = event
        return this.#setMesh()
      case 'InjectorSeen':
        this.#proxyImage = event.values === undefined ? undefined : proxyImageIn(event.values)
        return this.#setMesh()
      case 'SecretsSeen':
        return this.#facts.setSecrets(event.cluster, event.namespace, event.secrets)
      case 'FaultsSeen':
        return this.#setFaults(event.name, event.faults)
      case 'ResourceSeen':
        return this.#setSeen(event.key, event.resource)
      case 'ObjectInForce':
        return this.#setInForce(event.key, event.object)
    }
  }

  #setMesh(): void {
    const { mesh, networks } = this.#mesh ?? {}
    this.#facts.setMesh(viewOf(mesh as MeshConfig | undefined, networks as MeshNetworks | undefined, this.#proxyImage, this.#parts.features))
  }

  #setInForce(key: string, object: ConfigObject | undefined): void {
    const kind = kindOfKey(key)
    if (kinds.has(kind)) {
      this.#facts.setObject(key, object)
      if (kind === 'WorkloadEntry' || kind === 'WorkloadGroup') this.#facts.setWorkload(`${key}#`, object && entryWorkload(object))
    } else if (kind === 'Namespace' || kind === 'Pod') this.#setTold(key, { ...this.#told.get(key), inForce: object })
  }

  #setSeen(key: string, resource: Resource | undefined): void {
    const kind = kindOfKey(key)
    if (kind === 'Namespace' || kind === 'Pod') this.#setTold(key, { ...this.#told.get(key), seen: resource })
    else this.#facts.setResource(key, resource)
  }

  /** Nothing is there that is no longer in force, though its source may still have to say that it is gone. */
  #setTold(key: string, told: Told): void {
    if (told.inForce || told.seen) this.#told.set(key, told)
    else this.#told.delete(key)
    const now = told.inForce && (told.seen ?? told.inForce)
    if (kindOfKey(key) === 'Pod') this.#facts.setWorkload(key, now)
    else this.#setNamespace(key, now)
  }

  #setNamespace(key: string, now: Resource | undefined): void {
    const { name } = readKey(key, this.#parts.domain)
    const known = this.#namespaces.get(name) ?? new Map<string, Resource>()
    if (now) this.#namespaces.set(name, known.set(key, now))
    else if (known.delete(key) && known.size === 0) this.#namespaces.delete(name)
    // Namespaces of one name are of several clusters.
    if (known.size > 1) this.#shared.add(name)
    else this.#shared.delete(name)
    this.#facts.setHasOtherClusters(this.#shared.size > 0)
    const [first] = [...known].sort(([one], [other]) => (one < other ? -1 : 1))
    this.#facts.setNamespace(name, first?.[1].labels)
    this.#facts.setResource(key, now)
  }

  #setFaults(name: string, faults: readonly FaultFound[]): void {
    for (const { object } of this.#faults.get(name) ?? []) this.#clearFaults(object, name)
    if (faults.length > 0) this.#faults.set(name, faults)
    else this.#faults.delete(name)
    for (const [object, own] of Map.groupBy(faults, (fault) => fault.object)) {
      this.#faultsOf.set(object, (this.#faultsOf.get(object) ?? new Map<string, readonly FaultFound[]>()).set(name, own))
      this.#facts.setRefused(object, true)
      this.#faulty.add(object)
    }
  }

  #clearFaults(object: string, name: string): void {
    const known = this.#faultsOf.get(object)
    known?.delete(name)
    if (known?.size === 0) this.#faultsOf.delete(object)
    this.#facts.setRefused(object, this.#faultsOf.has(object))
    this.#faulty.add(object)
  }

  /**
   * Looks at up to `most` objects that changes concern. Returns the findings of those that are new or whose findings differ, by key, without faults of
   * reading, which their source has told; also of those whose faults have changed.
   */
  refresh(most?: number): Map<string, readonly Finding[]> {
    const changed = this.#analysis.refresh(most)
    for (const key of this.#faulty) if (key !== '' && !changed.has(key)) changed.set(key, this.#analysis.of(key))
    this.#faulty.clear()
    return changed
  }

  /** The number of objects that are still to be looked at. */
  get due(): number {
    return Math.max(this.#analysis.due, Number(this.#faulty.size > 0))
  }

  /** All findings, sorted, those of objects that cannot be used before the others. */
  all(): LiveFinding[] {
    return [
      ...[...this.#faults.values()].flat().sort((one, other) => compare(one.object, other.object)),
      ...this.#analysis.all().map((finding) => ({ ...finding, place: this.placeOf(finding.object) })),
    ]
  }

  /** The number of findings. */
  get size(): number {
    return this.#analysis.all().length + [...this.#faults.values()].reduce((sum, { length }) => sum + length, 0)
  }

  /** The first findings of an object of a kind of the mesh, faults of reading it before others; undefined: it is not there. */
  findingsOf(key: string): Finding[] | undefined {
    const faults = [...(this.#faultsOf.get(key)?.values() ?? [])].flat()
    if (!kinds.has(kindOfKey(key)) || (faults.length === 0 && !this.#facts.subject(key))) return undefined
    return [...faults, ...this.#analysis.of(key)].slice(0, mostOfObject)
  }

  /** The keys of all objects of kinds of the mesh. */
  keys(): string[] {
    const all = new Set([...this.#facts.keys(), ...this.#faultsOf.keys()])
    return [...all].filter((key) => kinds.has(kindOfKey(key)) && !key.endsWith('#'))
  }

  /** The place of an object, for people. */
  placeOf(key: string): string {
    return this.#facts.subject(key)?.place ?? ''
  }
}
