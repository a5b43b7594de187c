/**
 * What the visibility of services comes to: hosts visible to all, and the hosts that single namespaces see differently (docs/resources.md, V1
 * to V3). It is made of what each host contributes, and a changed host costs what it contributes.
 */
import type { Service } from '../../protocols/data.ts'
import type { MeshConfig } from '../config/mesh-config.ts'
import type { ResourceFault } from '../model/faults.ts'
import { isExported, isPublic, namespaceInHost } from '../model/match.ts'
import { compare } from '../model/order.ts'
import { differingKeys, OverlaidMap } from '../model/overlaid-map.ts'
import { withNames } from '../model/sorted-names.ts'
import { audience } from './audience.ts'
import { HostNameIndex } from './host-names.ts'
import { serviceKey } from './objects.ts'

/** A service as far as visibility depends on it. */
export interface Visible {
  readonly service: Service
  readonly hasLocalEndpoints?: boolean
}

/** The inputs of the visibility of services. */
export interface ServiceInputs {
  readonly mesh: MeshConfig
  /** The DNS suffix of service hosts. */
  readonly domain: string
  /** Services by host, the oldest first. */
  readonly services: ReadonlyMap<string, readonly Visible[]>
}

type Lists = ReadonlyMap<string, readonly string[]>
type Sets = ReadonlyMap<string, ReadonlySet<string>>

/** The visibility of all services. It is immutable, and the same object while nothing in it differs. */
export interface VisibleServices {
  /** Hosts visible to all namespaces, sorted by the namespace of the visible service, then by name. */
  readonly hosts: readonly string[]
  /** By host the namespace of the service that is visible to all. */
  readonly owners: ReadonlyMap<string, string>
  /** Hosts by the namespace of their services, regardless of visibility; sorted. */
  readonly hostsOf: Lists
  /** Hosts by the namespace in their name; sorted. */
  readonly hostsNaming: Lists
  /** By namespace the hosts that it may see differently. */
  readonly differing: Sets
  /** By namespace the hosts of its services that have endpoints on the caller's own machine, which only some callers get. */
  readonly local: Sets
  /** All hosts. */
  readonly names: HostNameIndex
  /** Services whose visibility could not be determined, by host. */
  readonly faults: ReadonlyMap<string, readonly ResourceFault[]>
}

/** The visibility of no services. */
const noServices = {
  hosts: [],
  owners: OverlaidMap.empty<string, string>(),
  hostsOf: new Map(),
  hostsNaming: new Map(),
  differing: new Map(),
  local: new Map(),
  names: HostNameIndex.empty,
  faults: OverlaidMap.empty<string, readonly ResourceFault[]>(),
} satisfies VisibleServices

/** What the services of one host contribute. */
interface OfHost {
  readonly isThere: boolean
  readonly owner: string | undefined
  readonly named: string | undefined
  readonly namespaces: readonly string[]
  readonly viewers: readonly string[]
  readonly local: readonly string[]
  readonly faults: readonly ResourceFault[]
}

/**
 * Chooses the visible service of a host: the one of the viewer's own namespace, otherwise the oldest visible one. Without a viewer: the
 * oldest one that is visible to all.
 */
export function choose<State extends Visible>(states: readonly State[] | undefined, viewer: string | undefined, mesh: MeshConfig): State | undefined {
  let chosen: State | undefined
  for (const state of states ?? []) {
    const { exportTo, namespace } = state.service
    const fallback = mesh.defaultServiceExportTo
    if (!(viewer === undefined ? isPublic(exportTo, fallback) : isExported(exportTo, fallback, namespace, viewer))) continue
    if (namespace === viewer) return state
    chosen ??= state
  }
  return chosen
}

/** Returns the visibility of the services, from that of the services before, if there were any. */
export function visibleServices(now: ServiceInputs, before: (ServiceInputs & { readonly visible: VisibleServices }) | undefined): VisibleServices {
  const known = before && before.mesh === now.mesh && before.domain === now.domain ? before : undefined
  const changes = new Changes()
  const hosts = known ? differingKeys(known.services, now.services) : now.services.keys()
  for (const host of hosts)
    changes.add(host, known && ofHost(host, known.services.get(host) ?? [], known), ofHost(host, now.services.get(host) ?? [], now))
  return changes.applied(known?.visible ?? noServices)
}

function ofHost(host: string, states: readonly Visible[], { mesh, domain }: ServiceInputs): OfHost {
  const faults: ResourceFault[] = []
  const owner = choose(states, undefined, mesh)?.service.namespace
  const viewers = new Set<string>()
  for (const { service } of states) {
    const { namespace, exportTo } = service
    for (const viewer of audience(() => serviceKey(service), exportTo, mesh.defaultServiceExportTo, namespace, faults)) viewers.add(viewer)
    if (states.length > 1 && owner !== namespace) viewers.add(namespace)
  }
  return {
    isThere: states.length > 0,
    owner,
    named: states.length > 0 ? namespaceInHost(host, domain) : undefined,
    namespaces: states.map(({ service }) => service.namespace),
    viewers: viewers.size > 0 ? [...viewers] : none,
    local: states.flatMap(({ service: { namespace }, hasLocalEndpoints }) =>
      hasLocalEndpoints && namespace !== mesh.rootNamespace ? namespace : [],
    ),
    faults,
  }
}

const none: readonly never[] = []

/** Names that join and leave a list or a set. */
interface Moves {
  readonly added: string[]
  readonly removed: string[]
}

/** Names that join and leave lists or sets, by the key of these. */
export class MovesByKey {
  readonly #moves = new Map<string, Moves>()

  at(key: string): Moves {
    let moves = this.#moves.get(key)
    if (!moves) this.#moves.set(key, (moves = { added: [], removed: [] }))
    return moves
  }

  /** Notes that a name was in the values of some keys, and is now in those of others. */
  move(name: string, before: readonly string[], now: readonly string[]): void {
    for (const key of before) if (!now.includes(key)) this.at(key).removed.push(name)
    for (const key of now) if (!before.includes(key)) this.at(key).added.push(name)
  }

  /** Returns a map with changed values. Empty values are removed. A map without changes stays the same object. */
  applied<Value>(
    before: ReadonlyMap<string, Value>,
    change: (value: Value | undefined, moves: Moves) => Value | undefined,
  ): ReadonlyMap<string, Value> {
    if (this.#moves.size === 0) return before
    const now = new Map(before)
    for (const [key, moves] of this.#moves) {
      const value = change(now.get(key), moves)
      if (value === undefined) now.delete(key)
      else now.set(key, value)
    }
    return now
  }
}

/** Changes of what hosts contribute. */
class Changes {
  readonly #owners = new Map<string, string | undefined>()
  readonly #faults = new Map<string, readonly ResourceFault[] | undefined>()
  readonly #names: Moves = { added: [], removed: [] }
  readonly #lists = { hostsOf: new MovesByKey(), hostsNaming: new MovesByKey() }
  readonly #sets = { differing: new MovesByKey(), local: new MovesByKey() }
  #areSame = true

  add(host: string, before: OfHost | undefined, now: OfHost): void {
    if (before && JSON.stringify(before) === JSON.stringify(now)) return
    this.#areSame = false
    if (before?.owner !== now.owner) this.#owners.set(host, now.owner)
    if ((before?.faults.length ?? 0) + now.faults.length > 0) this.#faults.set(host, now.faults.length > 0 ? now.faults : undefined)
    if ((before?.isThere ?? false) !== now.isThere) (now.isThere ? this.#names.added : this.#names.removed).push(host)
    this.#lists.hostsOf.move(host, before?.namespaces ?? none, now.namespaces)
    this.#lists.hostsNaming.move(host, keysOf(before?.named), keysOf(now.named))
    this.#sets.differing.move(host, before?.viewers ?? none, now.viewers)
    this.#sets.local.move(host, before?.local ?? none, now.local)
  }

  applied(before: VisibleServices): VisibleServices {
    if (this.#areSame) return before
    const [then, there] = [before.owners as OverlaidMap<string, string>, before.faults as OverlaidMap<string, readonly ResourceFault[]>]
    const owners = this.#owners.size > 0 ? then.with(this.#owners) : then
    const by = (of: ReadonlyMap<string, string>) => (one: string, other: string) =>
      compare(of.get(one) ?? '', of.get(other) ?? '') || compare(one, other)
    const moved = [...this.#owners.keys()]
    const hosts = { removed: moved.filter((host) => then.has(host)), added: moved.filter((host) => owners.has(host)) }
    return {
      hosts: withNames(before.hosts, hosts, by(then), by(owners)),
      owners,
      hostsOf: this.#lists.hostsOf.applied(before.hostsOf, changedList),
      hostsNaming: this.#lists.hostsNaming.applied(before.hostsNaming, changedList),
      differing: this.#sets.differing.applied(before.differing, changedSet),
      local: this.#sets.local.applied(before.local, changedSet),
      names: this.#names.added.length + this.#names.removed.length > 0 ? before.names.with(this.#names) : before.names,
      faults: this.#faults.size > 0 ? there.with(this.#faults) : there,
    }
  }
}

const keysOf = (key: string | undefined): readonly string[] => (key === undefined ? none : [key])

function changedList(names: readonly string[] = [], moves: Moves): readonly string[] | undefined {
  const now = withNames(names, moves)
  return now.length > 0 ? now : undefined
}

/** Returns a set with some names added and others removed; undefined if it is empty. */
export function changedSet(names: ReadonlySet<string> | undefined, { added, removed }: Moves): ReadonlySet<string> | undefined {
  const now = new Set(names)
  for (const name of removed) now.delete(name)
  for (const name of added) now.add(name)
  return now.size > 0 ? now : undefined
}
