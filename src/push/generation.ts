/**
 * Makes the groups of resources that classes need, for one snapshot after another. Each group knows which kinds of objects
 * it cannot depend on; everything else makes it look again at its inputs, and what was made from the same inputs is kept.
 */
import { TypedExtensionConfigSchema } from '../../protocols/gen/envoy/config/core/v3/extension_pb.js'
import type { GroupUse } from '../../protocols/messages/push.ts'
import { configKey } from '../config/kinds.ts'
import { consequences, contain, type Faults, type ResourceFault } from '../model/faults.ts'
import type { Changes, MeshSnapshot } from '../snapshot/snapshot.ts'
import { buildView, type View, type ViewKey } from '../snapshot/view.ts'
import { type ListenerConflict, makeAll, settle } from '../xds/draft.ts'
import { extensionConfigs } from '../xds/patches/apply.ts'
import type { GroupStore } from '../xds/slab/group-store.ts'
import type { Resource } from '../xds/slab/resource.ts'
import type { KeyedSums } from '../xds/slab/sums.ts'
import { clusterType, endpointType, extensionConfigType } from '../xds/type-urls.ts'
import { ListenerGroups } from './groups/listener-groups.ts'
import { type GroupKind, type GroupSpec, type Making, patched } from './groups/making.ts'
import { OutboundGroups } from './groups/outbound-groups.ts'
import { RouteGroups } from './groups/route-groups.ts'
import { WorkloadGroups } from './groups/workload-groups.ts'
import { Memo } from './memo.ts'
import type { ProxyClass } from './proxy-class.ts'

const workloads = ['WorkloadEntry', 'WorkloadGroup']
/** What the requests of a workload must bring: it touches listeners only. */
const requestPolicies = ['AuthorizationPolicy', 'RequestAuthentication', 'KeySets']
const policies = [...requestPolicies, 'PeerAuthentication']

/** Kinds that alone never touch a group of the type (discovery behaviour 1.6); an unknown kind touches everything. */
const untouchedBy: Readonly<Record<GroupKind, ReadonlySet<string>>> = {
  'clusters-outbound': new Set(['Gateway', 'VirtualService', ...workloads, ...requestPolicies]),
  'clusters-inbound': new Set(['Gateway', 'VirtualService', ...workloads, ...policies]),
  endpoints: new Set(['Gateway', 'VirtualService', ...workloads, ...requestPolicies]),
  'listeners-outbound': new Set(['Gateway', 'DestinationRule', ...workloads, ...policies]),
  'listeners-inbound': new Set(['Gateway', 'DestinationRule', 'VirtualService', ...workloads]),
  'listeners-gateway': new Set(['DestinationRule', 'Sidecar', ...workloads, 'PeerAuthentication']),
  'routes-outbound': new Set(['Gateway', ...workloads, ...policies]),
  'routes-gateway': new Set(['Sidecar', ...workloads, ...policies]),
  extensions: new Set(['Service', 'Gateway', 'VirtualService', 'DestinationRule', 'Sidecar', 'Mesh', ...workloads, ...policies]),
}

/** Types whose resources outlive their reason for a moment: routes that still name them must go first. */
const lingers = new Set([clusterType, endpointType])
/** How long they do, in milliseconds. */
const lingerMs = 2000

/** Kinds that views are made from. */
const viewKinds = ['Service', 'VirtualService', 'DestinationRule', 'Sidecar', 'Mesh']

/** Owner, in the memory, of what is made before any proxy wants it. */
const ahead = 'ahead of need'

/** Maker and owner of the groups. */
export class Generation implements Making {
  readonly memo = new Memo()
  readonly sums: KeyedSums
  readonly #groups: GroupStore
  readonly #faults: Faults
  readonly #views = new Map<string, View>()
  readonly #specs = new Map<string, GroupSpec>()
  /** What groups hide of those that all share. */
  readonly #hidden = new Map<string, readonly string[]>()
  readonly #outbound: OutboundGroups
  readonly #listeners: ListenerGroups
  readonly #routes: RouteGroups
  readonly #workloads: WorkloadGroups
  #built = new Set<string>()
  /** The group that is being built. */
  #building = ''
  #snapshot: MeshSnapshot
  #now = 0
  /** Conflicts between listeners by group. */
  readonly #conflicts = new Map<string, readonly ListenerConflict[]>()

  constructor(snapshot: MeshSnapshot, groups: GroupStore, faults: Faults, sums: KeyedSums) {
    this.sums = sums
    this.#snapshot = snapshot
    this.#groups = groups
    this.#faults = faults
    this.#outbound = new OutboundGroups(this)
    this.#listeners = new ListenerGroups(this)
    this.#routes = new RouteGroups(this)
    this.#workloads = new WorkloadGroups(this)
  }

  get snapshot(): MeshSnapshot {
    return this.#snapshot
  }

  lastGood(): ReadonlyMap<string, Resource> {
    return this.#groups.resources(this.#building)
  }

  valueOf(resource: Resource): Uint8Array {
    return this.#groups.valueOf(resource)
  }

  /** Sets of routes that are kept. */
  get routeSets(): number {
    return this.#routes.kept
  }

  /** Conflicts between listeners in all views and classes that are in use, each once. */
  get conflicts(): readonly ListenerConflict[] {
    const found = new Map<string, ListenerConflict>()
    for (const conflicts of this.#conflicts.values())
      for (const conflict of conflicts) found.set(`${conflict.kind}|${conflict.view}|${conflict.key}`, conflict)
    return [...found.values()]
  }

  /** Turns to a new snapshot at a time (monotonic milliseconds). Groups that the changes may touch are built again when a class asks for them. */
  advance(snapshot: MeshSnapshot, changes: Changes, now: number): void {
    this.#snapshot = snapshot
    this.#now = now
    if (changes.endpointHosts.size > 0 || viewKinds.some((kind) => changes.kinds.has(kind))) this.#views.clear()
    for (const id of this.#built) {
      const spec = this.#specs.get(id)
      const untouched = spec && untouchedBy[spec.kind]
      const touched = [...changes.kinds].some((kind) => !untouched?.has(kind) || (spec?.scoped && kind === 'VirtualService'))
      if (touched) this.#built.delete(id)
    }
    for (const host of changes.endpointHosts) this.#refreshEndpoints(host)
  }

  /** The groups of a class by type URL, every one built for the present snapshot. */
  groupsFor(proxy: ProxyClass): Record<string, GroupUse[]> {
    const groups: Record<string, GroupUse[]> = {}
    for (const spec of this.#specsOf(proxy)) {
      const { id, typeUrl, hiddenBy } = spec
      this.#specs.set(id, spec)
      if (!this.#built.has(id)) {
        this.#built.add(id)
        this.#building = id
        this.memo.owner = id
        this.#rebuild(spec, proxy)
      }
      const use = { group: id, hide: (hiddenBy !== undefined && this.#hidden.get(hiddenBy)) || nothing }
      const uses = groups[typeUrl]
      if (uses) uses.push(use)
      else groups[typeUrl] = [use]
    }
    return groups
  }

  #specsOf(proxy: ProxyClass): GroupSpec[] {
    const own =
      proxy.traits.type === 'router'
        ? this.#workloads.gateway(proxy)
        : [...this.#listeners.specs(proxy), ...this.#routes.specs(proxy), ...this.#workloads.inbound(proxy)]
    return [...this.#outbound.specs(proxy), ...own, ...extensions(proxy)]
  }

  /**
   * Makes a group anew. This is the one place where errors end: a resource that fails stays at its last good state, or is left out,
   * and so does the group if it fails as a whole. Its faults are those of this making.
   */
  #rebuild({ id, typeUrl, build }: GroupSpec, proxy: ProxyClass): void {
    const faults: ResourceFault[] = []
    contain(
      () => {
        const built = build()
        const settled = settle(built.outcomes, (name) => this.#groups.resources(id).get(name))
        this.#groups.replace(id, settled.resources, lingers.has(typeUrl) ? this.#now + lingerMs : undefined)
        this.#conflicts.set(id, settled.conflicts)
        if (built.hide) this.#hidden.set(id, built.hide)
        faults.push(...settled.faults)
      },
      (reason) => {
        const kept = this.#groups.has(id)
        if (!kept) this.#groups.replace(id, [])
        const { sidecar } = proxy.viewKey
        const objects = [...(sidecar ? [configKey(sidecar)] : []), ...proxy.gateways.map((name) => `Gateway/${name}`)]
        faults.push({ type: 'group', resource: id, objects, reason, consequence: kept ? consequences.kept : consequences.leftOut })
      },
    )
    this.#faults.replace(id, faults)
  }

  /** Forgets groups that no class uses. */
  retain(used: ReadonlySet<string>): void {
    for (const id of [...this.#groups.ids()]) {
      if (used.has(id)) continue
      this.#groups.retire(id)
      this.#specs.delete(id)
      this.#hidden.delete(id)
      this.#built.delete(id)
      this.#conflicts.delete(id)
      this.#faults.clear(id)
      this.memo.release(id)
      for (const maker of [this.#outbound, this.#listeners, this.#routes]) maker.forget(id)
    }
  }

  /** A view in the present snapshot. */
  view(key: ViewKey): View {
    let view = this.#views.get(key.id)
    if (!view) this.#views.set(key.id, (view = buildView(this.#snapshot, key)))
    return view
  }

  /**
   * Makes, ahead of need, what a sidecar's services turn into; its first group then finds most of it in memory. Yields the
   * bytes made for each service, so that the caller can stop and go on between services.
   */
  *prepare(proxy: ProxyClass): Generator<number> {
    this.memo.owner = ahead
    for (const steps of [this.#outbound.prepare(proxy), this.#routes.prepare(proxy)])
      for (const made of steps) {
        yield made
        this.memo.owner = ahead
      }
  }

  /** The short way of an endpoint change: only the load assignments of this host, in every group that has them and is not built anew. */
  #refreshEndpoints(host: string): void {
    for (const id of this.#outbound.endpointGroups(host)) {
      if (!this.#built.has(id)) continue
      const remade = new Set<string>([host])
      const faults: ResourceFault[] = []
      contain(
        () => {
          this.memo.owner = id
          const settled = settle(this.#outbound.endpointsOf(host, id), (name) => this.#groups.resources(id).get(name))
          this.#groups.update(id, settled.resources)
          for (const { name } of settled.resources) remade.add(name)
          faults.push(...settled.faults)
        },
        (reason) => faults.push({ type: 'eds', resource: host, objects: [], reason, consequence: consequences.kept }),
      )
      for (const { resource } of faults) remade.add(resource)
      this.#faults.amend(id, remade, faults)
    }
  }
}

const nothing: readonly string[] = []

function extensions({ traits }: ProxyClass): GroupSpec[] {
  if (traits.filters.length === 0) return []
  const build = () => ({
    outcomes: patched(traits, 'extensions', (context) => makeAll(TypedExtensionConfigSchema, 'ecds', extensionConfigs(context))),
  })
  return [{ id: `extensions|${traits.filterKey}`, kind: 'extensions', typeUrl: extensionConfigType, build }]
}
