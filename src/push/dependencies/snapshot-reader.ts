/** The snapshot as makers of resources read it: whatever they ask is recorded. What has no question of its own is recorded as a whole. */

import { sameItems } from '../../model/lists.ts'
import { reachesClusters, type ServiceState } from '../../registry/merged-services.ts'
import type { HostNames } from '../../snapshot/host-names.ts'
import type { MeshSnapshot, Settings } from '../../snapshot/snapshot.ts'
import type { HostLookup, ResolvedVirtualService } from '../../snapshot/virtual-services.ts'
import type { Difference, Visibility } from '../../snapshot/visibility.ts'
import type { Dependencies } from './dependencies.ts'

type Recording = Dependencies<MeshSnapshot>

/** A snapshot of which every read is recorded. */
export class SnapshotReader implements MeshSnapshot {
  readonly #record: Recording
  readonly services: ReadonlyMap<string, readonly ServiceState[]>
  readonly sidecars: MeshSnapshot['sidecars']
  readonly keySets: MeshSnapshot['keySets']
  readonly destinationRules: MeshSnapshot['destinationRules']
  readonly policies: MeshSnapshot['policies']
  readonly visibility: Visibility

  constructor(record: Recording) {
    this.#record = record
    this.services = new RecordedMap(record, 'services', '', (services) => services, sameServices)
    this.sidecars = new RecordedMap(record, 'sidecars', '', (sidecars) => sidecars, sameItems)
    this.keySets = new RecordedMap(record, 'keySets', '', (keySets) => keySets)
    this.destinationRules = { byNamespace: new RecordedMap(record, 'destinationRules', '', ({ byNamespace }) => byNamespace) }
    this.policies = {
      authorization: new RecordedMap(record, 'policies', 'authorization', ({ authorization }) => authorization, sameItems),
      requests: new RecordedMap(record, 'policies', 'requests', ({ requests }) => requests, sameItems),
      peers: new RecordedMap(record, 'policies', 'peers', ({ peers }) => peers, sameItems),
    }
    this.visibility = new VisibilityReader(record)
  }

  get settings(): Settings {
    return this.#record.state.settings
  }

  get mesh(): MeshSnapshot['mesh'] {
    return this.#whole('mesh')
  }

  get networks(): MeshSnapshot['networks'] {
    return this.#whole('networks')
  }

  get networkGateways(): MeshSnapshot['networkGateways'] {
    return this.#whole('networkGateways')
  }

  get virtualServices(): MeshSnapshot['virtualServices'] {
    return this.#whole('virtualServices')
  }

  get gateways(): MeshSnapshot['gateways'] {
    return this.#whole('gateways')
  }

  get envoyFilters(): MeshSnapshot['envoyFilters'] {
    return this.#whole('envoyFilters')
  }

  #whole<Field extends keyof MeshSnapshot>(field: Field): MeshSnapshot[Field] {
    return this.#record.read(field, '', (value) => value)
  }
}

/** Who sees what, of which every read is recorded. */
class VisibilityReader implements Visibility {
  readonly #record: Recording
  readonly hostsOf: Visibility['hostsOf']
  readonly virtualServicesOf: Visibility['virtualServicesOf']
  readonly differences: ReadonlyMap<string, Difference>
  readonly names: HostNames
  readonly virtualServices: HostLookup

  constructor(record: Recording) {
    this.#record = record
    this.hostsOf = new RecordedMap(record, 'visibility', 'hosts of', ({ hostsOf }) => hostsOf, sameItems)
    this.virtualServicesOf = new RecordedMap(record, 'visibility', 'routes of', ({ virtualServicesOf }) => virtualServicesOf, sameItems)
    this.differences = new RecordedMap(record, 'visibility', 'difference of', ({ differences }) => differences)
    const names = () => record.read('visibility', 'names', (visibility) => visibility.names)
    this.names = {
      get size() {
        return names().size
      },
      has: (name) => names().has(name),
      covered: (pattern) => record.read('visibility', `covered ${pattern}`, ({ names }) => names.covered(pattern), sameItems),
    }
    this.virtualServices = new RecordedLookup(record)
  }

  get hosts(): readonly string[] {
    return this.#record.read('visibility', 'hosts', ({ hosts }) => hosts, sameItems)
  }
}

class RecordedLookup implements HostLookup {
  readonly #record: Recording

  constructor(record: Recording) {
    this.#record = record
  }

  get all(): readonly ResolvedVirtualService[] {
    return this.#record.read('visibility', 'routes', ({ virtualServices }) => virtualServices.all, sameItems)
  }

  find(host: string): ResolvedVirtualService | undefined {
    return this.#record.read('visibility', `route ${host}`, ({ virtualServices }) => virtualServices.find(host))
  }

  covering(host: string): readonly ResolvedVirtualService[] {
    return this.#record.read('visibility', `routes ${host}`, ({ virtualServices }) => virtualServices.covering(host), sameItems)
  }

  hosts(): Iterable<string> {
    return this.#record.read('visibility', 'routed hosts', ({ virtualServices }) => [...virtualServices.hosts()], sameItems)
  }
}

/** A map in the state of which each entry that is looked for is recorded by itself, there or not. */
class RecordedMap<Field extends keyof MeshSnapshot, Value> implements ReadonlyMap<string, Value> {
  readonly #record: Recording
  readonly #field: Field
  readonly #name: string
  readonly #pick: (value: MeshSnapshot[Field]) => ReadonlyMap<string, Value>
  readonly #alike: (one: Value | undefined, other: Value | undefined) => boolean

  constructor(
    record: Recording,
    field: Field,
    name: string,
    pick: (value: MeshSnapshot[Field]) => ReadonlyMap<string, Value>,
    alike: (one: Value, other: Value) => boolean = (one, other) => one === other,
  ) {
    this.#record = record
    this.#field = field
    this.#name = name
    this.#pick = pick
    this.#alike = (one, other) => one !== undefined && other !== undefined && alike(one, other)
  }

  get(key: string): Value | undefined {
    return this.#record.read(this.#field, `${this.#name} ${key}`, (value) => this.#pick(value).get(key), this.#alike)
  }

  has(key: string): boolean {
    return this.get(key) !== undefined
  }

  get #whole(): ReadonlyMap<string, Value> {
    return this.#record.read(this.#field, this.#name, this.#pick)
  }

  get size(): number {
    return this.#whole.size
  }

  forEach(visit: (value: Value, key: string, map: ReadonlyMap<string, Value>) => void): void {
    this.#whole.forEach(visit)
  }

  entries(): MapIterator<[string, Value]> {
    return this.#whole.entries()
  }

  keys(): MapIterator<string> {
    return this.#whole.keys()
  }

  values(): MapIterator<Value> {
    return this.#whole.values()
  }

  [Symbol.iterator](): MapIterator<[string, Value]> {
    return this.#whole[Symbol.iterator]()
  }
}

/** Endpoints reach proxies by themselves; whoever else reads a service is outdated only when they show in clusters. */
function sameServices(one: readonly ServiceState[], other: readonly ServiceState[]): boolean {
  return (
    one.length === other.length &&
    one.every((state, index) => {
      const peer = other[index] as ServiceState
      return state === peer || (state.service === peer.service && !reachesClusters(peer, state))
    })
  )
}
