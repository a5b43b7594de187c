/** The mesh that files describe, for commands that need no server: mesh configuration beside Services, Pods, Secrets and workloads of a cluster. */
import type { ConfigObject, Service } from '../../protocols/data.ts'
import { configKey } from '../config/kinds.ts'
import { type DocumentFault, type ParsedFile, parseConfigFile, readPlace } from '../config/parse.ts'
import { PatternChecks } from '../config/patterns.ts'
import { isPolicyKind } from '../config/recognise.ts'
import { isMapping } from '../config/shape.ts'
import { readDocuments } from '../config/yaml-documents.ts'
import { Faults } from '../model/faults.ts'
import { ClusterRegistry } from '../orchestrator/cluster-registry.ts'
import { cut, type ObjectOrigin } from '../orchestrator/objects.ts'
import { registryName } from '../registry/merged-services.ts'
import type { MeshSnapshot, Settings } from '../snapshot/snapshot.ts'
import { MeshState } from '../snapshot/state.ts'
import type { Workload, World } from './world.ts'

type Mapping = Readonly<Record<string, unknown>>

/** Kinds of objects that contain a template of pods, with the path of the template. */
const templates: ReadonlyMap<string, readonly string[]> = new Map<string, readonly string[]>([
  ...['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'ReplicationController', 'Job'].map((kind) => [kind, ['spec', 'template']] as const),
  ['CronJob', ['spec', 'jobTemplate', 'spec', 'template']],
])

/** Whether a text may contain an object that is not configuration of the mesh and matters here. Such texts are parsed twice. */
const mayMatter = new RegExp(`["']?kind["']?\\s*:\\s*["']?(Service|List|Secret|${[...templates.keys()].join('|')})\\b`)

/** The namespaces that every cluster has. */
const always = ['default', 'kube-system', 'kube-public', 'kube-node-lease']

/** Collects files, and tells what mesh they describe. */
export class OfflineMesh {
  readonly faults: DocumentFault[] = []
  readonly warnings: DocumentFault[] = []
  readonly #settings: Settings
  readonly #origin: ObjectOrigin
  readonly #state: MeshState
  readonly #registry: ClusterRegistry
  readonly #patterns = new PatternChecks()
  readonly #namespaces = new Set<string>()
  readonly #secrets = new Set<string>()
  readonly #workloads: Workload[] = []

  constructor(settings: Settings) {
    this.#settings = settings
    this.#origin = { names: settings.names, source: 'files', cluster: settings.features.CLUSTER_ID }
    this.#state = new MeshState(settings, new Faults())
    this.#registry = new ClusterRegistry({ names: settings.names, domain: settings.domain, cluster: settings.features.CLUSTER_ID })
  }

  /** Adds the objects of a file. */
  add(file: string, content: string): void {
    const parsed = parseConfigFile(file, content, this.#settings.names, this.#patterns, this.#settings.optOuts)
    this.faults.push(...parsed.faults)
    this.warnings.push(...parsed.warnings)
    this.#addObjects(parsed)
    if (!mayMatter.test(content)) return
    for (const document of readDocuments(content)) if ('value' in document) this.#addForeign(document.value)
  }

  /** The object with a key, if a file has it. */
  object(key: string): ConfigObject | undefined {
    return this.#state.object(key)
  }

  /** What is known of the mesh. Of a kind of which the files have no object they say nothing, since they may be a part of what there is. */
  world(): World {
    for (const change of this.#registry.take())
      if (change.type === 'service')
        this.#state.services.set(registryName(this.#registry.id), change.key, change.service && { service: change.service, slices: change.slices })
    const { snapshot } = this.#state.take(0)
    const services = servicesOf(snapshot)
    return {
      domain: this.#settings.domain,
      rootNamespace: snapshot.mesh.rootNamespace || this.#settings.features.POD_NAMESPACE,
      objects: (kind) => this.#state.objects.ofKind(kind),
      services: (host) => services.get(host) ?? [],
      hosts: () => [...services.keys()],
      namespaces: this.#namespaces.size > 0 ? new Set([...always, ...this.#namespaces]) : undefined,
      secrets: this.#secrets.size > 0 ? this.#secrets : undefined,
      workloads: this.#workloads.length > 0 ? this.#workloads : undefined,
    }
  }

  #addObjects({ objects, secrets }: ParsedFile): void {
    for (const object of objects) {
      if (this.#isRepeated(object)) continue
      if (object.kind === 'Namespace') this.#namespaces.add(object.name)
      if (object.kind === 'Pod') this.#workloads.push({ namespace: object.namespace, labels: object.labels })
      this.#state.setConfig(configKey(object), object, object.source)
    }
    for (const { namespace, name } of secrets) this.#secrets.add(`${namespace}/${name}`)
  }

  /**
   * Whether a file before this one has the object: that one counts, and neither of two policies that differ (docs/operation.md, F4). A file
   * that is given twice is no other.
   */
  #isRepeated(object: ConfigObject): boolean {
    const key = configKey(object)
    const first = this.#state.object(key)
    if (!first) return false
    if (first.place === object.place) return true
    const isContested = isPolicyKind(object.kind) && JSON.stringify(first.spec) !== JSON.stringify(object.spec)
    const { file, document } = readPlace(object.place)
    const consequence = isContested ? 'it differs, so neither counts: remove one' : 'the first one counts: remove one'
    const fault = { file, document, key, path: 'metadata.name', reason: `the same object is in ${first.place}; ${consequence}` }
    ;(isContested ? this.faults : this.warnings).push(fault)
    return true
  }

  /** Adds an object that is not configuration of the mesh, or those of a list. */
  #addForeign(value: unknown): void {
    if (!isMapping(value)) return
    const { kind, items } = value
    if (kind === 'List' && Array.isArray(items)) for (const item of items) this.#addForeign(item)
    if (typeof kind !== 'string') return
    const metadata = mappingAt(value, ['metadata'])
    const [namespace, name] = [metadata?.namespace ?? 'default', metadata?.name]
    if (typeof namespace !== 'string' || typeof name !== 'string') return
    if (kind === 'Secret') this.#secrets.add(`${namespace}/${name}`)
    if (kind === 'Service' && value.apiVersion === 'v1') {
      const { object } = cut('Service', { ...value, metadata: { ...metadata, namespace } }, this.#origin)
      if (object) this.#registry.set('Service', `${namespace}/${name}`, object)
    }
    const template = templates.get(kind)
    if (template) this.#workloads.push({ namespace, labels: labelsIn(mappingAt(value, [...template, 'metadata'])) })
  }
}

function servicesOf({ services }: MeshSnapshot): ReadonlyMap<string, readonly Service[]> {
  return new Map([...services].map(([host, states]) => [host, states.map(({ service }) => service)]))
}

function mappingAt(value: Mapping, path: readonly string[]): Mapping | undefined {
  let at: unknown = value
  for (const field of path) at = isMapping(at) ? at[field] : undefined
  return isMapping(at) ? at : undefined
}

function labelsIn(metadata: Mapping | undefined): Record<string, string> {
  const labels = metadata?.labels
  return isMapping(labels)
    ? Object.fromEntries(Object.entries(labels).filter((entry): entry is [string, string] => typeof entry[1] === 'string'))
    : {}
}
