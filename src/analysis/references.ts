/** Answers of the mesh to what analyzers look up by name, from indexes that are made once. */
import type { ConfigObject, Service } from '../../protocols/data.ts'
import type { DestinationRuleSpec } from '../config/kinds/destination-rule.ts'
import type { KindName } from '../config/kinds.ts'
import { completeHost, hostCovers, labelsMatch } from '../model/match.ts'
import type { World } from './world.ts'

/** The indexes of a world. Each is made when it is first asked. */
export class References {
  readonly domain: string
  readonly #world: World
  readonly #objects = new Map<KindName, ReadonlyMap<string, ConfigObject>>()
  #wildcards: readonly string[] | undefined
  #subsets: ReadonlyMap<string, readonly { readonly namespace: string; readonly names: readonly string[] }[]> | undefined

  constructor(world: World) {
    this.domain = world.domain
    this.#world = world
  }

  /** The services with a host; else those of the wildcard that covers it. */
  servicesOf(host: string): readonly Service[] {
    const exact = this.#world.services(host)
    if (exact.length > 0) return exact
    this.#wildcards ??= this.#world.hosts().filter((each) => each.startsWith('*'))
    return this.#wildcards.filter((pattern) => hostCovers(pattern, host)).flatMap((pattern) => this.#world.services(pattern))
  }

  /** The hosts that somebody of a namespace may have meant, written as the unknown one is: short or in full. */
  *nearHosts(unknown: string, namespace: string): Generator<string> {
    const suffix = `.${namespace}.svc.${this.domain}`
    for (const host of this.#world.hosts()) {
      if (unknown.includes('.')) yield host
      else if (host.endsWith(suffix)) yield host.slice(0, -suffix.length)
    }
  }

  /** The subsets of a host that a namespace may use: those of its own rules, of the namespace of the service, and of the root namespace. */
  subsetsOf(host: string, namespace: string): ReadonlySet<string> {
    this.#subsets ??= this.#collectSubsets()
    const owners = new Set([namespace, this.#world.rootNamespace, ...this.servicesOf(host).map((service) => service.namespace)])
    const found = new Set<string>()
    const wild = [...this.#subsets.keys()].filter((pattern) => pattern.startsWith('*') && pattern !== host && hostCovers(pattern, host))
    for (const pattern of [host, ...wild])
      for (const rule of this.#subsets.get(pattern) ?? []) if (owners.has(rule.namespace)) for (const name of rule.names) found.add(name)
    return found
  }

  #collectSubsets() {
    const subsets = new Map<string, { namespace: string; names: string[] }[]>()
    for (const { namespace, spec } of this.#world.objects('DestinationRule') as readonly ConfigObject<DestinationRuleSpec>[]) {
      const host = completeHost(spec.host, namespace, this.domain)
      const names = (spec.subsets ?? []).map(({ name }) => name)
      const known = subsets.get(host)
      if (known) known.push({ namespace, names })
      else subsets.set(host, [{ namespace, names }])
    }
    return subsets
  }

  /** The object of a kind at `<namespace>/<name>`. */
  get(kind: KindName, path: string): ConfigObject | undefined {
    return this.#of(kind).get(path)
  }

  has(kind: KindName, path: string): boolean {
    return this.#of(kind).has(path)
  }

  /** The paths of all objects of a kind. */
  names(kind: KindName): Iterable<string> {
    return this.#of(kind).keys()
  }

  #of(kind: KindName): ReadonlyMap<string, ConfigObject> {
    const known = this.#objects.get(kind)
    if (known) return known
    const made = new Map(this.#world.objects(kind).map((object) => [`${object.namespace}/${object.name}`, object]))
    this.#objects.set(kind, made)
    return made
  }

  /** Whether a workload has the labels, in a namespace or, without one, anywhere; undefined: workloads are not known. */
  someWorkload(labels: Readonly<Record<string, string>>, namespace: string | undefined): boolean | undefined {
    return this.#world.workloads?.some(
      (workload) => (namespace === undefined || workload.namespace === namespace) && labelsMatch(labels, workload.labels),
    )
  }
}
