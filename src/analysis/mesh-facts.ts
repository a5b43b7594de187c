/** Holds what is known of a mesh for analyzers, records what they ask, and tells which answers have changed. */

import type { ConfigObject, Service } from '../../protocols/data.ts'
import type { Resource, SecretFacts, Workload } from '../../protocols/messages/analysis.ts'
import { configKey, type KindName, kindId, kinds } from '../config/kinds.ts'
import type { PatchCheck } from '../config/patch-faults.ts'
import { LabelIndex } from '../model/label-index.ts'
import { addTo } from '../model/lists.ts'
import type { MeshNames } from '../names/mesh-names.ts'
import { Claimants, type Meeting } from './claimants.ts'
import { claimsOf } from './claims.ts'
import { HostIndex, openHosts } from './host-index.ts'
import type { MeshView, World } from './world.ts'

type Labels = Readonly<Record<string, string>>

/** Constants of a mesh. */
export interface FactSettings extends Pick<World, 'domain' | 'names' | 'patchFaults'> {
  readonly mesh: MeshView
  /** Namespaces that are there although files have no object of them. */
  readonly namespaces?: readonly string[]
}

/** The label that stands for the namespace of a workload in the index of labels. No label has this name. */
const namespaceLabel = '\0namespace'

/** Kinds of workloads of which there may be none in a mesh with others. */
const entryKinds: ReadonlySet<string> = new Set(['WorkloadEntry', 'WorkloadGroup'])

/** Whether a workload says that workloads are known. */
const isCounted = (workload: Workload | undefined): boolean => workload !== undefined && !entryKinds.has(workload.kind)

/** The namespaces that every cluster has. */
const always = ['default', 'kube-system', 'kube-public', 'kube-node-lease']

/** The key of an object that is not configuration of the mesh, `<Kind>/<namespace>/<name>`. */
export const resourceKey = ({ kind, namespace, name }: Pick<Resource, 'kind' | 'namespace' | 'name'>): string => `${kind}/${namespace}/${name}`

/** The most steps of the analysis of one object, some tenths of a second ({@link World.spend}). */
const mostSteps = 10_000_000

/** The facts. Setters replace; undefined removes. */
export class MeshFacts implements World {
  readonly domain: string
  readonly names: MeshNames
  readonly patchFaults: PatchCheck
  #mesh: MeshView
  readonly #objects = new Map<string, ConfigObject>()
  readonly #refused = new Set<string>()
  readonly #paths = new Map<KindName, Set<string>>()
  readonly #claimants = new Claimants((key) => this.#objects.get(key))
  readonly #services = new Map<string, readonly Service[]>()
  readonly #wildcards = new Set<string>()
  /** The hosts of services outside of the cluster. */
  readonly #outside = new HostIndex()
  readonly #servicesIn = new Map<string, Map<string, Service>>()
  readonly #namespaces = new Map<string, Labels>()
  readonly #assumed: ReadonlySet<string>
  /** The Secrets by namespace, by the cluster that they were told of and by name. */
  readonly #secrets = new Map<string, Map<string, Map<string, SecretFacts>>>()
  /** Whether Secrets are known of those namespaces only of which they were told ({@link setSecrets}). */
  #hasSomeSecrets = false
  readonly #workloads = new Map<string, Workload>()
  readonly #labels = new LabelIndex()
  readonly #workloadsIn = new Map<string, Set<string>>()
  readonly #configured = new Map<string, number>()
  readonly #resources = new Map<string, Resource>()
  readonly #known = { namespaces: false, secrets: false, workloads: false }
  /** The kinds of which not all objects were read, with the namespaces whose objects were. */
  readonly #unread = new Map<string, ReadonlySet<string>>()
  #clusters: readonly string[] = []
  #hasOtherClusters = false
  /** The number of workloads other than entries. */
  #counted = 0
  #touched = new Set<string>()
  #reads: Set<string> | undefined
  /** The steps that are left to the object that is analyzed. */
  #stepsLeft = mostSteps

  constructor({ domain, names, patchFaults, mesh, namespaces }: FactSettings) {
    this.#assumed = new Set(namespaces)
    this.domain = domain
    this.names = names
    this.patchFaults = patchFaults
    this.#mesh = mesh
  }

  /** Calls `act` and returns the questions that it asked, as topics. */
  record(act: () => void): ReadonlySet<string> {
    const reads = new Set<string>()
    this.#reads = reads
    this.#stepsLeft = mostSteps
    try {
      act()
    } finally {
      this.#reads = undefined
    }
    return reads
  }

  /** Returns the topics whose answers may differ since the last call; `subject <key>` is that of an object itself. */
  takeTouched(): ReadonlySet<string> {
    const touched = this.#touched
    this.#touched = new Set()
    return touched
  }

  /** The object or resource with a key. */
  subject(key: string): ConfigObject | Resource | undefined {
    return this.#objects.get(key) ?? this.#workloads.get(key) ?? this.#resources.get(key)
  }

  spend(steps: number): void {
    if (!this.#reads) return
    this.#stepsLeft -= steps
    if (this.#stepsLeft < 0) throw new Error('it would take too long beside what else there is; what was found before is told')
  }

  #read(topic: string): void {
    this.#reads?.add(topic)
  }

  /** An answer that is a list. */
  #listed<Item>(list: readonly Item[]): readonly Item[] {
    this.spend(list.length)
    return list
  }

  setMesh(mesh: MeshView): void {
    if (JSON.stringify(mesh) === JSON.stringify(this.#mesh)) return
    this.#mesh = mesh
    this.#touched.add('mesh')
  }

  setClusters(clusters: readonly string[]): void {
    this.#clusters = clusters
    this.#touched.add('mesh')
  }

  setHasOtherClusters(hasOtherClusters: boolean): void {
    if (hasOtherClusters === this.#hasOtherClusters) return
    this.#hasOtherClusters = hasOtherClusters
    this.#touched.add('mesh')
  }

  /** Says that of a kind only the objects of some namespaces could be read. */
  setUnread(kind: string, readIn: readonly string[]): void {
    this.#unread.set(kind, new Set(readIn))
    this.#touched.add('mesh')
  }

  isRead(kind: string, namespace?: string): boolean {
    this.#read('mesh')
    const readIn = this.#unread.get(kind)
    return readIn === undefined || (namespace !== undefined && readIn.has(namespace))
  }

  /** Says that all of a kind of facts is known from now on, also where there is none. Otherwise it is known while there is one. */
  know(what: 'namespaces' | 'secrets' | 'workloads'): void {
    if (this.#known[what]) return
    this.#known[what] = true
    this.#touched.add(`known ${what}`)
  }

  /** Sets or removes an object of a kind of the mesh. */
  setObject(key: string, now: ConfigObject | undefined): void {
    const before = this.#objects.get(key)
    if (before === now) return
    if (now) this.#objects.set(key, now)
    else this.#objects.delete(key)
    const { namespace, name } = (now ?? before) as ConfigObject
    this.#touch(`subject ${key}`, `object ${key}`)
    if (!before || !now) {
      const kind = kindId((now ?? before) as ConfigObject) as KindName
      const paths = this.#paths.get(kind) ?? new Set()
      this.#paths.set(kind, paths)
      if (now) paths.add(`${namespace}/${name}`)
      else paths.delete(`${namespace}/${name}`)
      this.#touch(`paths ${kind}`)
      this.#countConfigured(namespace, now ? 1 : -1)
    }
    for (const claim of before ? claimsOf(before, this.domain) : []) this.#unclaim(claim, key)
    for (const claim of now ? claimsOf(now, this.domain) : []) {
      this.#claimants.add(claim, key)
      this.#touch(`claim ${claim}`)
    }
  }

  /** Says whether an object has faults of reading. */
  setRefused(key: string, isRefused: boolean): void {
    if (isRefused === this.#refused.has(key)) return
    if (isRefused) this.#refused.add(key)
    else this.#refused.delete(key)
    this.#touch(`object ${key}`)
  }

  #unclaim(claim: string, key: string): void {
    this.#claimants.delete(claim, key)
    this.#touch(`claim ${claim}`)
  }

  #countConfigured(namespace: string, more: number): void {
    const count = (this.#configured.get(namespace) ?? 0) + more
    if (count > 0) this.#configured.set(namespace, count)
    else this.#configured.delete(namespace)
    if (count === 0 || (count === 1 && more === 1)) this.#touch(`configured ${namespace}`, 'configured')
  }

  /** Sets the services with a host; none: there is none. */
  setServices(host: string, now: readonly Service[]): void {
    const before = this.#services.get(host) ?? []
    if (before.length > 0 === now.length > 0 && before.every((service, index) => service === now[index]) && before.length === now.length) return
    if (now.length > 0) this.#services.set(host, now)
    else this.#services.delete(host)
    this.#touch(`host ${host}`)
    if (before.length > 0 !== now.length > 0) {
      this.#touch('hosts')
      if (host.startsWith('*')) {
        if (now.length > 0) this.#wildcards.add(host)
        else this.#wildcards.delete(host)
        this.#touch('wildcards')
      } else if (!host.endsWith(`.svc.${this.domain}`)) {
        if (now.length > 0) this.#outside.add(host)
        else this.#outside.delete(host)
        this.#touch(...openHosts(host).map((rest) => `hosts like ${rest}`))
      }
    }
    for (const service of before) this.#setServiceIn(service, undefined)
    for (const service of now) this.#setServiceIn(service, service)
  }

  #setServiceIn({ namespace, name, provider }: Service, now: Service | undefined): void {
    if (provider === 'ServiceEntry') return
    const services = this.#servicesIn.get(namespace) ?? new Map<string, Service>()
    this.#servicesIn.set(namespace, services)
    if (now) services.set(name, now)
    else services.delete(name)
    if (services.size === 0) this.#servicesIn.delete(namespace)
    this.#touch(`services in ${namespace}`, `subject ${resourceKey({ kind: 'Service', namespace, name })}`)
  }

  /** Sets the labels of a namespace, or removes it. */
  setNamespace(name: string, labels: Labels | undefined): void {
    const wasKnown = this.#namespaces.size > 0
    if (labels) this.#namespaces.set(name, labels)
    else this.#namespaces.delete(name)
    this.#touch(`namespace ${name}`, 'namespaces')
    if (this.#namespaces.size > 0 !== wasKnown) this.#touch('known namespaces')
  }

  /** Adds a Secret of files, or of a cluster of which all are added. */
  addSecret(namespace: string, secret: SecretFacts): void {
    const known = this.#secrets.get(namespace) ?? new Map<string, Map<string, SecretFacts>>([['', new Map()]])
    this.#secrets.set(namespace, known)
    known.get('')?.set(secret.name, secret)
    this.#touch(`secrets ${namespace}`, 'known secrets')
  }

  /** Sets all Secrets of a namespace in a cluster; undefined: they are not known there. Then none is said to be missing in other namespaces. */
  setSecrets(cluster: string, namespace: string, secrets: readonly SecretFacts[] | undefined): void {
    this.#hasSomeSecrets = true
    const known = this.#secrets.get(namespace) ?? new Map<string, Map<string, SecretFacts>>()
    if (secrets) this.#secrets.set(namespace, known.set(cluster, new Map(secrets.map((secret) => [secret.name, secret]))))
    else if (known.delete(cluster) && known.size === 0) this.#secrets.delete(namespace)
    this.#touch(`secrets ${namespace}`)
  }

  /** Sets or removes a workload. Its labels count in the mesh form, as those of selectors do, whichever form its source has. */
  setWorkload(key: string, given: Workload | undefined): void {
    const now = given && { ...given, labels: this.names.canonicalKeys(given.labels) }
    const before = this.#workloads.get(key)
    if (now) {
      this.#workloads.set(key, now)
      this.#labels.set(key, { ...now.labels, [namespaceLabel]: now.namespace })
    } else {
      this.#workloads.delete(key)
      this.#labels.delete(key)
    }
    const namespace = (now ?? before)?.namespace ?? ''
    const hadSome = this.#workloadsIn.get(namespace)?.size
    if (now?.pod) addTo(this.#workloadsIn, namespace, key)
    else this.#workloadsIn.get(namespace)?.delete(key)
    if (now?.pod || before?.pod) this.#touch(`subject ${key}`, `workloads in ${namespace}`)
    if (!hadSome !== !this.#workloadsIn.get(namespace)?.size) this.#touch(`some workloads in ${namespace}`)
    for (const workload of [before, now])
      if (workload)
        for (const [label, value] of Object.entries(workload.labels))
          this.#touch(`workloads ${workload.namespace} ${label}=${value}`, `workloads * ${label}=${value}`)
    const more = Number(isCounted(now)) - Number(isCounted(before))
    this.#counted += more
    if (more !== 0 && (this.#counted === 0 || this.#counted === more)) this.#touch('known workloads')
  }

  /** Sets or removes a resource that is looked at by itself, for its annotations or labels. */
  setResource(key: string, now: Resource | undefined): void {
    if (now) this.#resources.set(key, now)
    else this.#resources.delete(key)
    this.#touch(`subject ${key}`)
  }

  #touch(...topics: readonly string[]): void {
    for (const topic of topics) this.#touched.add(topic)
  }

  get mesh(): MeshView {
    this.#read('mesh')
    return this.#mesh
  }

  get clusters(): readonly string[] {
    this.#read('mesh')
    return this.#clusters
  }

  get hasOtherClusters(): boolean {
    this.#read('mesh')
    return this.#hasOtherClusters
  }

  get knowsNamespaces(): boolean {
    this.#read('known namespaces')
    return (this.#known.namespaces || this.#namespaces.size > 0) && this.isRead('Namespace')
  }

  knowsSecrets(namespace: string): boolean {
    this.#read('known secrets')
    this.#read(`secrets ${namespace}`)
    const isKnown = this.#hasSomeSecrets ? this.#secrets.has(namespace) : this.#known.secrets || this.#secrets.size > 0
    return isKnown && this.isRead('Secret', namespace)
  }

  object(kind: KindName, path: string): ConfigObject | undefined {
    const key = `${kind}/${path}`
    this.#read(`object ${key}`)
    return this.#objects.get(key)
  }

  isRefused(kind: KindName, path: string): boolean {
    const key = `${kind}/${path}`
    this.#read(`object ${key}`)
    return this.#refused.has(key) && !this.#objects.has(key)
  }

  paths(kind: KindName): readonly string[] {
    this.#read(`paths ${kind}`)
    return this.#listed([...(this.#paths.get(kind) ?? [])])
  }

  claimants(claim: string): readonly ConfigObject[] {
    this.#read(`claim ${claim}`)
    return this.#listed(this.#claimants.all(claim))
  }

  meeting(claim: string, object: ConfigObject, fallback: readonly string[], most: number): Meeting {
    this.#read(`claim ${claim}`)
    return this.#claimants.meeting(claim, object, fallback, most)
  }

  /** The number of claimants that were looked at for {@link meeting} and {@link claimants}, since the start. */
  get claimantSteps(): number {
    return this.#claimants.steps
  }

  services(host: string): readonly Service[] {
    this.#read(`host ${host}`)
    return this.#services.get(host) ?? []
  }

  hosts(): readonly string[] {
    this.#read('hosts')
    return this.#listed([...this.#services.keys()])
  }

  wildcards(): readonly string[] {
    this.#read('wildcards')
    return this.#listed([...this.#wildcards])
  }

  similarHosts(host: string): readonly string[] {
    const found = openHosts(host).flatMap((rest) => {
      this.#read(`hosts like ${rest}`)
      return this.#listed([...this.#outside.having(rest)])
    })
    return [...new Set(found)]
  }

  servicesIn(namespace: string): readonly Service[] {
    this.#read(`services in ${namespace}`)
    return this.#listed([...(this.#servicesIn.get(namespace)?.values() ?? [])])
  }

  hasService(namespace: string, name: string): boolean {
    const key = resourceKey({ kind: 'Service', namespace, name })
    this.#read(`subject ${key}`)
    return this.#resources.has(key)
  }

  /** The service of a cluster that a subject is. */
  serviceAt(namespace: string, name: string): Service | undefined {
    return this.#servicesIn.get(namespace)?.get(name)
  }

  hasNamespace(name: string): boolean {
    this.#read(`namespace ${name}`)
    if (!this.knowsNamespaces || this.#namespaces.has(name) || always.includes(name)) return true
    if (this.#known.namespaces) return false
    return this.#assumed.has(name) || name === this.mesh.rootNamespace || this.hasWorkloads(name) || this.servicesIn(name).length > 0
  }

  namespaceLabels(name: string): Labels | undefined {
    this.#read(`namespace ${name}`)
    return this.#namespaces.get(name)
  }

  namespaces(): readonly string[] {
    this.#read('namespaces')
    return this.#listed([...new Set([...always, ...this.#namespaces.keys()])])
  }

  secrets(namespace: string, name: string): readonly SecretFacts[] {
    this.#read(`secrets ${namespace}`)
    return [...(this.#secrets.get(namespace)?.values() ?? [])].flatMap((secrets) => secrets.get(name) ?? [])
  }

  secretNames(namespace: string): readonly string[] {
    this.#read(`secrets ${namespace}`)
    return this.#listed([...(this.#secrets.get(namespace)?.values() ?? [])].flatMap((secrets) => [...secrets.keys()]))
  }

  workloads(labels: Labels, namespace: string | undefined): readonly Workload[] | undefined {
    this.#read('known workloads')
    if (!this.#known.workloads && this.#counted === 0) return undefined
    const [first = ['', '']] = Object.entries(labels)
    this.#read(`workloads ${namespace ?? '*'} ${first[0]}=${first[1]}`)
    const wanted = namespace === undefined ? labels : { ...labels, [namespaceLabel]: namespace }
    this.spend(1 + (this.#labels.unindexed(wanted) * this.#workloads.size) / 10)
    return this.#listed(this.#labels.having(wanted).flatMap((key) => this.#workloads.get(key) ?? []))
  }

  workloadsIn(namespace: string): readonly Workload[] {
    this.#read(`workloads in ${namespace}`)
    return this.#listed([...(this.#workloadsIn.get(namespace) ?? [])].flatMap((key) => this.#workloads.get(key) ?? []))
  }

  hasWorkloads(namespace: string): boolean {
    this.#read(`some workloads in ${namespace}`)
    return (this.#workloadsIn.get(namespace)?.size ?? 0) > 0
  }

  hasOthers(namespace: string): boolean {
    this.#read('configured')
    const { rootNamespace } = this.mesh
    for (const other of this.#configured.keys()) if (other !== namespace && other !== rootNamespace) return true
    return false
  }

  hasConfiguration(namespace: string): boolean {
    this.#read(`configured ${namespace}`)
    return this.#configured.has(namespace)
  }

  /** All keys of objects, workloads and resources. */
  keys(): string[] {
    return [...this.#objects.keys(), ...this.#workloads.keys(), ...this.#resources.keys()]
  }

  /** Sets an object of any kind of the mesh by its own key. */
  add(object: ConfigObject): void {
    if (kinds.has(kindId(object))) this.setObject(configKey(object), object)
  }
}
