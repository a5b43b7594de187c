/** The classes of the connected proxies: finds the class of each, makes what a class needs, and drops classes without proxies. */
import { hash } from 'node:crypto'
import type { ProxyNode } from '../../../protocols/data.ts'
import type { ClassAssignment, Manifest } from '../../../protocols/messages/push.ts'
import { configKey } from '../../config/kinds.ts'
import type { Faults, ResourceFault } from '../../model/faults.ts'
import type { ServiceInstance } from '../../model/workload.ts'
import type { Settings } from '../../snapshot/snapshot.ts'
import type { ProxyClass } from '../../xds/traits.ts'
import type { Product } from '../dependencies/dependencies.ts'
import type { GroupBuilder } from '../group-builder.ts'
import type { OwnInstances } from './own-instances.ts'
import { classOf, sameClass } from './proxy-class.ts'
import type { Refusals } from './refusals.ts'
import { ServedClass } from './served-class.ts'

/** What classes are found by, and what makes their groups. */
interface Inputs {
  readonly instances: OwnInstances
  readonly refusals: Refusals
  readonly builder: GroupBuilder
  readonly faults: Faults
}

/** A connected proxy. */
export interface ConnectedProxy {
  readonly connection: string
  readonly node: ProxyNode
  /** The class that it is assigned to. Undefined while none could be found. */
  served: ServedClass | undefined
  /** The record of what was read to find the class. */
  record: Product<ConnectedProxy> | undefined
}

/** What writers have to be told of classes. */
interface ClassChanges {
  readonly manifests: readonly Manifest[]
  readonly retiredClasses: readonly string[]
  readonly assignments: readonly ClassAssignment[]
}

/** What proxies of a class do not get that a setting asks for, since they do not have it. */
function lacksOf({ traits }: ProxyClass, { features }: Settings): readonly ResourceFault[] {
  if (!features.PILOT_ENABLE_MYSQL_FILTER || traits.readsMysql || traits.isProxyless) return []
  return [
    {
      type: 'class',
      resource: 'PILOT_ENABLE_MYSQL_FILTER',
      objects: [],
      reason:
        'there are proxies without the extension envoy.filters.network.mysql_proxy, which only contrib builds of Envoy have (L18 in docs/resources.md)',
      consequence: 'their MySQL ports stay plain TCP',
      isLoss: true,
    },
  ]
}

/** The connected proxies, and the classes in use. */
export class Classes {
  readonly #inputs: Inputs
  readonly #proxies = new Map<string, ConnectedProxy>()
  /** Proxies whose class may be another one, because something that was read to find it has changed. */
  readonly #outdated = new Set<ConnectedProxy>()
  readonly #classes = new Map<string, ServedClass>()
  /**
   * Ids of transitional classes for which no groups had to be kept, since the last {@link begin}. Their proxies were assigned to their
   * class directly.
   */
  readonly #directlyAssigned = new Set<string>()
  /** The time of the last {@link begin}, in monotonic milliseconds. */
  #now = 0
  #assignments: ClassAssignment[] = []
  readonly #changed = new Set<ServedClass>()
  #retired: string[] = []

  constructor(inputs: Inputs) {
    this.#inputs = inputs
  }

  get size(): number {
    return this.#classes.size
  }

  get(id: string): ServedClass | undefined {
    return this.#classes.get(id)
  }

  [Symbol.iterator](): Iterator<ServedClass> {
    return this.#classes.values()
  }

  /** Begins a round of changes at `now` (monotonic milliseconds). Proxies that change their class in one round share transitional classes. */
  begin(now: number): void {
    this.#now = now
    this.#directlyAssigned.clear()
  }

  /** The connected proxies. */
  get proxies(): Iterable<ConnectedProxy> {
    return this.#proxies.values()
  }

  proxy(connection: string): ConnectedProxy | undefined {
    return this.#proxies.get(connection)
  }

  /** Adds a connected proxy and assigns it to its class. */
  connect(connection: string, node: ProxyNode): void {
    const proxy: ConnectedProxy = { connection, node, served: undefined, record: undefined }
    this.#proxies.set(connection, proxy)
    this.classify(proxy)
  }

  /** Removes a disconnected proxy. Returns whether it was connected. */
  disconnect(connection: string): boolean {
    const proxy = this.#proxies.get(connection)
    if (!proxy) return false
    this.#proxies.delete(connection)
    this.#inputs.faults.clear(`proxy|${connection}`)
    if (proxy.record) this.#inputs.builder.record.forget(proxy.record)
    proxy.served?.leave()
    return true
  }

  /** Finds the classes again of the proxies whose class may be another one since the last change. */
  classifyOutdated(): void {
    for (const proxy of [...this.#outdated]) this.classify(proxy)
  }

  /**
   * Finds the class of a proxy, makes the class unless it is there, and assigns the proxy to it. If that fails, the proxy keeps its present
   * class.
   */
  classify(proxy: ConnectedProxy): void {
    const found = this.#find(proxy)
    if (!found) return
    const served = this.#servedFor(proxy.served, found)
    if (proxy.served === served) return
    served.join()
    proxy.served?.leave()
    proxy.served = served
    this.#assignments.push({ connection: proxy.connection, classId: served.id })
  }

  /** Finds the class of a proxy and records what that is read from. */
  #find(proxy: ConnectedProxy): ProxyClass | undefined {
    const { faults, builder } = this.#inputs
    const { connection, node, served } = proxy
    proxy.record ??= builder.record.product(proxy, this.#outdated)
    const { record } = proxy
    const find = () => builder.record.produce(record, () => this.#classWithout(connection, node))
    const subject = { type: 'class', resource: node.id }
    return faults.attempt<ProxyClass | undefined>(`proxy|${connection}`, subject, find, undefined, served !== undefined)
  }

  /** The class of a proxy without its refusals. */
  baseOf(node: ProxyNode): ProxyClass {
    return classOf(node, this.#instancesOf(node), this.#inputs.builder.snapshot)
  }

  #instancesOf(node: ProxyNode): readonly ServiceInstance[] {
    const { instances, builder } = this.#inputs
    return instances.of(node, builder.snapshot.podOf(node))
  }

  /** The class of a proxy, without what the proxy refused. */
  #classWithout(connection: string, node: ProxyNode): ProxyClass {
    const { refusals, faults, builder } = this.#inputs
    const proxyClass = this.baseOf(node)
    if (!refusals.concerns(connection)) return proxyClass
    const present = new Set(proxyClass.traits.filters.flatMap(({ spec }) => spec.configPatches ?? []))
    if (refusals.prune(connection, present)) faults.replace(`refused|${connection}`, refusals.faults(connection))
    return classOf(node, this.#instancesOf(node), builder.snapshot, refusals.fallback(connection))
  }

  /**
   * The class to assign to a proxy that was in class `from`: the one that was found, or, while groups of `from` have to be kept, a
   * transitional class for proxies that came from there.
   */
  #servedFor(from: ServedClass | undefined, found: ProxyClass): ServedClass {
    if (!from || from.id === found.id) return this.#own(found)
    if (from.isTransitional && from.proxyClass.id === found.id && from.kept.length > 0) return this.#updated(from, found)
    const id = hash('sha1', `${found.id} from ${from.id} at ${this.#now}`, 'hex').slice(0, 20)
    const known = this.#classes.get(id)
    if (known?.isTransitional) return this.#updated(known, found)
    if (this.#directlyAssigned.has(id)) return this.#own(found)
    const transitional = this.#add(id, this.#classes.get(found.id)?.proxyClass ?? found, from)
    if (transitional.kept.length > 0) return this.#updated(transitional, found)
    this.drop(transitional)
    this.#directlyAssigned.add(id)
    return this.#own(found)
  }

  #own(found: ProxyClass): ServedClass {
    const known = this.#classes.get(found.id)
    return known ? this.#updated(known, found) : this.#add(found.id, found)
  }

  #add(id: string, proxyClass: ProxyClass, from?: ServedClass): ServedClass {
    const served = new ServedClass(id, proxyClass)
    this.#classes.set(id, served)
    this.make(served, from)
    return served
  }

  /** Makes a class again if what was found is not equal to it. An equal class stays the same object, because groups compare their inputs by identity. */
  #updated(served: ServedClass, found: ProxyClass): ServedClass {
    if (sameClass(served.proxyClass, found)) return served
    served.proxyClass = found
    this.make(served)
    return served
  }

  /** Makes the groups of a class for the present snapshot. When proxies have just come from the class `from`, it keeps what they had there. */
  make(served: ServedClass, from: ServedClass = served): void {
    const { builder, faults } = this.#inputs
    const { id, manifest: before } = served
    const { sidecar } = served.proxyClass.viewKey
    const subject = { type: 'class', resource: id, objects: sidecar ? [configKey(sidecar)] : [] }
    const make = () => builder.resourcesOf(served, from)
    faults.replace(`lacks|${id}`, lacksOf(served.proxyClass, builder.snapshot.settings))
    const groups = faults.attempt<Manifest['groups'] | undefined>(`class|${id}`, subject, make, undefined, before !== undefined)
    if (!groups) return
    const { policies } = served
    if (before && before.policies === policies && JSON.stringify(before.groups) === JSON.stringify(groups)) return
    served.manifest = { classId: id, groups, ...(policies === undefined ? {} : { policies }) }
    this.#changed.add(served)
  }

  /** Ends the transition of proxies of classes that keep nothing any more: they join the class that follows. */
  endTransitions(ended: ReadonlySet<ServedClass>): void {
    if (ended.size === 0) return
    for (const proxy of this.#proxies.values()) if (proxy.served && ended.has(proxy.served)) this.classify(proxy)
    for (const served of ended) if (served.connections === 0) this.drop(served)
  }

  /** Drops the classes without connections. After a change they are based on old state, because they were not found again. */
  dropEmpty(): void {
    for (const served of this.#classes.values()) if (served.connections === 0) this.drop(served)
  }

  /** Drops the classes whose grace period is over at `now` (monotonic milliseconds). Returns whether there were any. */
  collect(now: number): boolean {
    const before = this.#classes.size
    for (const served of this.#classes.values()) if (served.isExpired(now)) this.drop(served)
    return this.#classes.size < before
  }

  /** Drops a class. */
  drop(served: ServedClass): void {
    const { builder, faults } = this.#inputs
    const { id } = served
    served.end()
    this.#classes.delete(id)
    this.#changed.delete(served)
    faults.clear(`class|${id}`)
    faults.clear(`lacks|${id}`)
    builder.dropClass(served)
    this.#retired.push(id)
  }

  /** Returns the changes since the last call. */
  take(): ClassChanges {
    const manifests = [...this.#changed].flatMap(({ manifest }) => manifest ?? [])
    this.#changed.clear()
    // Proxies may have disconnected since they were assigned a class.
    const assignments = this.#assignments.splice(0).filter(({ connection }) => this.#proxies.has(connection))
    return { manifests, retiredClasses: this.#retired.splice(0), assignments }
  }
}
