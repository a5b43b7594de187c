/** The mesh that files describe, for commands that need no server: mesh configuration beside objects of a cluster. */

import type { ConfigObject } from '../../protocols/data.ts'
import type { Resource } from '../../protocols/messages/analysis.ts'
import { clusterKinds, configKey, kindOfKey, kinds } from '../config/kinds.ts'
import { assumedNamespace, metadataRemarks } from '../config/metadata.ts'
import { type DocumentFault, type ParsedFile, parseConfigDocument, parseConfigFile, type Reader, withoutKind } from '../config/parse.ts'
import type { PatchCheck } from '../config/patch-faults.ts'
import { PatternChecks } from '../config/patterns.ts'
import { placeOf, readPlace } from '../config/places.ts'
import { isPolicyKind } from '../config/recognise.ts'
import { keysOfSecret } from '../config/secret-document.ts'
import { mapping } from '../config/shape.ts'
import { Faults } from '../model/faults.ts'
import { remoteSecretLabels } from '../names/secret-names.ts'
import { ClusterRegistry } from '../orchestrator/cluster-registry.ts'
import { cut, type ObjectOrigin } from '../orchestrator/objects.ts'
import { registryName } from '../registry/merged-services.ts'
import type { Settings } from '../snapshot/snapshot.ts'
import { MeshState } from '../snapshot/state.ts'
import { entryWorkload } from './entry-workload.ts'
import { MeshFacts, resourceKey } from './mesh-facts.ts'
import { GivenMesh, type Setting, viewOf } from './mesh-view.ts'
import { backendsOf, resourceOf, templatePath, workloadOf } from './resources.ts'

type Mapping = Readonly<Record<string, unknown>>

/** Kinds of a cluster whose metadata is looked at here: others have other names, and of some the parser tells it. */
const named: ReadonlySet<string> = new Set([
  'ConfigMap',
  'CronJob',
  'DaemonSet',
  'Deployment',
  'Ingress',
  'Job',
  'ReplicaSet',
  'ReplicationController',
  'Secret',
  'Service',
  'StatefulSet',
])

/** Collects files, and tells what mesh they describe. */
export class OfflineMesh {
  readonly faults: DocumentFault[] = []
  readonly warnings: DocumentFault[] = []
  readonly #settings: Settings
  readonly #origin: ObjectOrigin
  readonly #state: MeshState
  readonly #registry: ClusterRegistry
  readonly #patterns = new PatternChecks()
  readonly #given = new GivenMesh()
  readonly #facts: MeshFacts
  readonly #clusters: string[]
  /** The objects of files that are not configuration of the mesh, by key. */
  readonly #ofFiles = new Set<string>()
  /** The place of each of them, with its API. */
  readonly #places = new Map<string, string>()
  /** Whether there are clusters whose names are not known. */
  #hasOtherClusters = false

  /** What files are read with. */
  readonly #reader: Reader

  constructor(settings: Settings, patchFaults: PatchCheck = () => [], reader: Reader = {}) {
    this.#reader = reader
    const { features, names, domain } = settings
    this.#settings = settings
    this.#origin = { names, source: 'files', cluster: features.CLUSTER_ID }
    this.#state = new MeshState(settings, new Faults())
    this.#registry = new ClusterRegistry({ names, domain, cluster: features.CLUSTER_ID })
    this.#clusters = [features.CLUSTER_ID]
    const namespaces = [reader.namespace ?? assumedNamespace, features.POD_NAMESPACE, 'istio-system']
    this.#facts = new MeshFacts({ domain, names, patchFaults, mesh: this.#view(), namespaces })
  }

  #view() {
    const { mesh, networks, proxyImage } = this.#given
    return viewOf(mesh, networks, proxyImage, this.#settings.features)
  }

  /**
   * Adds the objects of a file, or of a text of a cluster with that name. `isMeant`: whether the file certainly is configuration; of one that is not and
   * has no object only that is told.
   */
  add(file: string, content: string, isMeant = true): void {
    let hasObjects = false
    const { names, optOuts } = this.#settings
    const seen = (value: Mapping, document: number) => {
      const resource = resourceOf(value, placeOf(file, document))
      if (!resource) return
      hasObjects = true
      if (this.#isRepeatedForeign(value, resource)) return
      this.#ofFiles.add(resourceKey(resource))
      if (named.has(resource.kind)) this.#tellMetadata(value, resource)
      this.#addForeign(value, resource)
    }
    const parsed = parseConfigFile(file, content, names, this.#patterns, optOuts, this.#revision, 'files', { ...this.#reader, seen })
    const [first] = parsed.faults
    const isOfOthers = [...parsed.foreign.keys()].some((kind) => kind !== withoutKind)
    if (!isMeant && !hasObjects && parsed.objects.length + parsed.secrets.length === 0 && (first || !isOfOthers)) {
      const reason = first ? `there is no object in it that can be read: ${first.reason}` : 'there is no object in it'
      this.faults.push({ file, document: first?.document ?? 1, key: undefined, path: '', reason })
      return
    }
    this.faults.push(...parsed.faults)
    this.warnings.push(...parsed.warnings)
    this.#addObjects(parsed)
  }

  /** Adds the mesh configuration or the networks of a file of their own, which count in place of those of a ConfigMap. */
  addSetting(setting: Setting, file: string, content: string): void {
    const document = 1
    const { faults, warnings } = this.#given.addFile(setting, content, placeOf(file, document))
    const found = (fault: { readonly path: string; readonly reason: string }): DocumentFault => ({ file, document, key: undefined, ...fault })
    this.faults.push(...faults.map(found))
    this.warnings.push(...warnings.map(found))
  }

  /** Tells the mistakes in the metadata of an object that is not read as one of the mesh's, and so not by itself. */
  #tellMetadata(value: Mapping, resource: Resource): void {
    const at = `${templatePath(resource.kind)}.metadata`
    const ofTemplate = at.split('.').reduce<unknown>((holder, field) => mapping(holder)[field], value)
    for (const { path, reason } of [...metadataRemarks(value.metadata), ...metadataRemarks(ofTemplate, at)])
      this.warnings.push({ ...readPlace(resource.place), key: resourceKey(resource), path, reason })
  }

  get #revision(): string {
    const { REVISION } = this.#settings.features
    return REVISION === 'default' ? '' : REVISION
  }

  /** Adds an object of a cluster. One that a file has, or an object before, counts in its place: files are added first, as if they were applied. */
  addOfCluster(value: Mapping): void {
    const { names, optOuts } = this.#settings
    if (!kinds.has(String(value.kind))) {
      const resource = resourceOf(value, '')
      if (resource && !this.#ofFiles.has(resourceKey(resource))) this.#addForeign(value, resource, resource.kind !== 'Secret')
      return
    }
    const { namespace, name } = mapping(value.metadata)
    if (this.#state.object(configKey({ kind: String(value.kind), namespace: String(namespace), name: String(name) }))) return
    const parsed = parseConfigDocument('', value, names, { optOuts, revision: this.#revision, source: 'cluster' })
    this.faults.push(...parsed.faults)
    this.warnings.push(...parsed.warnings)
    this.#addObjects(parsed)
  }

  /** Says that of a kind only the objects of some namespaces could be read. */
  setUnread(kind: string, readIn: readonly string[]): void {
    this.#facts.setUnread(kind, readIn)
  }

  /** Says that all objects of a kind have been added, so that others do not exist. */
  know(what: 'namespaces' | 'secrets' | 'workloads'): void {
    this.#facts.know(what)
  }

  /** The place of the object with a key, or of the networks of the mesh, `<file>, document <n>`; empty where it is not known. */
  placeOf(key: string): string {
    if (kindOfKey(key) === 'MeshNetworks') return this.#given.networksIn?.place ?? ''
    return this.#state.object(key)?.place ?? this.#facts.subject(key)?.place ?? ''
  }

  /** The object in a file that has a field of the object with a key, and where: of the networks of the mesh the text in their ConfigMap. */
  holderOf(key: string, path: string): { readonly key: string; readonly path: string } {
    const holder = kindOfKey(key) === 'MeshNetworks' ? this.#given.networksIn?.resource : undefined
    return holder ? { key: resourceKey(holder), path: 'data.meshNetworks' } : { key, path }
  }

  /** What is known of the mesh. Of a kind of which the files have no object they say nothing, since they may be a part of what there is. */
  facts(): MeshFacts {
    for (const change of this.#registry.take())
      if (change.type === 'service')
        this.#state.services.set(registryName(this.#registry.id), change.key, change.service && { service: change.service, slices: change.slices })
    const { services } = this.#state.services.merge()
    for (const [host, states] of services)
      this.#facts.setServices(
        host,
        states.map(({ service }) => service),
      )
    for (const object of this.#state.objects.each()) this.#facts.add(object)
    for (const { key } of this.faults) if (key !== undefined) this.#facts.setRefused(key, true)
    this.#facts.setMesh(this.#view())
    if (this.#given.networks && !this.#hasOtherClusters) this.#facts.setClusters(this.#clusters)
    this.#facts.setHasOtherClusters(this.#hasOtherClusters || this.#clusters.length > 1)
    return this.#facts
  }

  #addObjects({ objects }: ParsedFile): void {
    for (const object of objects) {
      if (this.#isRepeated(object)) continue
      const key = configKey(object)
      this.#state.setConfig(key, object, object.source)
      const workload = entryWorkload(object)
      if (workload) this.#facts.setWorkload(key, workload)
    }
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

  /** Whether a file before this one has an object that is not configuration of the mesh: that one counts. */
  #isRepeatedForeign({ apiVersion }: Mapping, resource: Resource): boolean {
    const key = `${String(apiVersion)} ${resourceKey(resource)}`
    const first = this.#places.get(key)
    if (first === undefined) this.#places.set(key, resource.place)
    // Kinds of a cluster that files of configuration may have are told with those of the mesh.
    if (first === undefined || clusterKinds.has(resource.kind)) return false
    // A second one of another kind may be a patch of the first one.
    if (first !== resource.place && resource.kind === 'Service')
      this.warnings.push({
        ...readPlace(resource.place),
        key: resourceKey(resource),
        path: 'metadata.name',
        reason: `the same object is in ${first}; the first one counts: remove one`,
      })
    return true
  }

  /** Adds an object that is not configuration of the mesh. `isWhole`: not only its metadata was read. */
  #addForeign(value: Mapping, resource: Resource, isWhole = true): void {
    const { kind, namespace, name } = resource
    const key = resourceKey(resource)
    const workload = workloadOf(value, resource)
    if (workload) return this.#facts.setWorkload(key, workload)
    switch (kind) {
      case 'Namespace':
        this.#facts.setNamespace(name, resource.labels)
        break
      case 'Secret':
        if (remoteSecretLabels.some((label) => resource.labels[label])) {
          const ofClusters = Object.keys({ ...mapping(value.data), ...mapping(value.stringData) })
          if (ofClusters.length === 0) this.#hasOtherClusters = true
          this.#clusters.push(...ofClusters)
        }
        return this.#facts.addSecret(namespace, { name, keys: isWhole ? keysOfSecret(value) : undefined })
      case 'ConfigMap':
        for (const { path, faults, warnings } of this.#given.add(resource, value, this.#settings.features.POD_NAMESPACE, this.#revision)) {
          const found = (reason: string): DocumentFault => ({ ...readPlace(resource.place), key, path, reason })
          this.faults.push(...faults.map(found))
          this.warnings.push(...warnings.map(found))
        }
        return
      case 'Ingress':
        return this.#facts.setResource(key, { ...resource, backends: backendsOf(value) })
      case 'Service': {
        if (value.apiVersion !== 'v1') return
        const { object, faults } = cut('Service', { ...value, metadata: { ...mapping(value.metadata), namespace } }, this.#origin)
        this.faults.push(...faults.map(({ path, reason }) => ({ ...readPlace(resource.place), key, path, reason })))
        if (object) this.#registry.set('Service', `${namespace}/${name}`, object)
        break
      }
    }
    if (kind === 'Namespace' || Object.keys(resource.annotations).length > 0) this.#facts.setResource(key, resource)
    else if (kind === 'Service') this.#facts.setResource(key, resource)
  }
}
