/** What analysis finds in the mesh of a running service, from what it is told to be in force; worked out again for what changed only. */
import type { ConfigObject } from '../../protocols/data.ts'
import type { InForceEvent } from '../../protocols/messages/analysis.ts'
import { kindOfKey, kinds } from '../config/kinds.ts'
import { defaultMeshConfig, type MeshConfig, type MeshNetworks } from '../config/mesh-config.ts'
import { Analysis } from './analysis.ts'
import { entryWorkload } from './entry-workload.ts'
import type { Code, Finding } from './finding.ts'
import { MeshFacts } from './mesh-facts.ts'
import { type ViewFeatures, viewOf } from './mesh-view.ts'
import type { World } from './world.ts'

/** What a live mesh is made of. */
export interface LiveParts extends Pick<World, 'domain' | 'names' | 'hasEnvoyType'> {
  readonly features: ViewFeatures & { readonly CLUSTER_ID: string }
}

/** Takes what is in force. */
export class LiveMesh {
  readonly #parts: LiveParts
  readonly #facts: MeshFacts
  readonly #analysis: Analysis
  /** The Namespaces of all clusters, by name and key. */
  readonly #namespaces = new Map<string, Map<string, ConfigObject>>()

  constructor(parts: LiveParts) {
    this.#parts = parts
    this.#facts = new MeshFacts({ ...parts, mesh: viewOf(defaultMeshConfig(), undefined, undefined, parts.features) })
    this.#facts.setClusters([parts.features.CLUSTER_ID])
    this.#analysis = new Analysis(this.#facts)
  }

  /** Takes an event. Nothing is worked out yet. */
  apply(event: InForceEvent): void {
    if (event.type === 'ServicesInForce') return this.#facts.setServices(event.host, event.services)
    if (event.type === 'MeshInForce')
      return this.#facts.setMesh(viewOf(event.mesh as MeshConfig, event.networks as MeshNetworks, undefined, this.#parts.features))
    const { key, object } = event
    const kind = kindOfKey(key)
    if (kinds.has(kind)) {
      this.#facts.setObject(key, object)
      if (kind === 'WorkloadEntry' || kind === 'WorkloadGroup') this.#facts.setWorkload(`${key}#`, object && entryWorkload(object))
    } else if (kind === 'Namespace') this.#setNamespace(key, object)
    else if (kind === 'Pod') this.#facts.setWorkload(key, object)
  }

  #setNamespace(key: string, object: ConfigObject | undefined): void {
    const [name = ''] = key.slice('Namespace//'.length).split('@')
    const known = this.#namespaces.get(name) ?? new Map<string, ConfigObject>()
    if (object) this.#namespaces.set(name, known.set(key, object))
    else if (known.delete(key) && known.size === 0) this.#namespaces.delete(name)
    const [first] = [...known].sort(([one], [other]) => (one < other ? -1 : 1))
    this.#facts.setNamespace(name, first?.[1].labels)
  }

  /** Looks at up to `most` objects that changes concern. Returns the findings of those that are new or whose findings differ, by key. */
  refresh(most?: number): Map<string, readonly Finding[]> {
    return this.#analysis.refresh(most)
  }

  /** The number of objects that are still to be looked at. */
  get due(): number {
    return this.#analysis.due
  }

  /** All findings, sorted. */
  all(): Finding[] {
    return this.#analysis.all()
  }

  /** The codes of what is found in an object of a kind of the mesh, each once; undefined: it is not there. */
  codesOf(key: string): Code[] | undefined {
    if (!kinds.has(kindOfKey(key)) || !this.#facts.subject(key)) return undefined
    return [...new Set(this.#analysis.of(key).map(({ code }) => code))]
  }

  /** The keys of all objects of kinds of the mesh. */
  keys(): string[] {
    return this.#facts.keys().filter((key) => kinds.has(kindOfKey(key)) && !key.endsWith('#'))
  }

  /** The place of an object, for people. */
  placeOf(key: string): string {
    return this.#facts.subject(key)?.place ?? ''
  }
}
