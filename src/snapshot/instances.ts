/**
 * Finds the services that a workload is an endpoint of: by its address, and the Services of the orchestrator that select it by its labels
 * (docs/resources.md, P6). Updated slice by slice, never rebuilt.
 */
import type { Endpoint, Service } from '../../protocols/data.ts'
import { labelsMatch } from '../model/match.ts'
import { compare } from '../model/order.ts'
import { portOf, type ServiceInstance, servesPort } from '../model/workload.ts'
import { registryName, type ServiceState } from '../registry/merged-services.ts'
import { isOfWorkloadEntries, sameFields } from '../registry/slices.ts'

type Labels = Readonly<Record<string, string>>

/** A workload as far as Services select it. */
export interface LabelledWorkload {
  readonly namespace: string
  readonly labels: Labels
  /** The cluster of the workload; empty: it is not known. */
  readonly cluster: string
  readonly serviceAccount: string
  /** Its named ports. */
  readonly ports: Readonly<Record<string, number>>
}

/** What has changed with a host: the addresses, and the places of selectors, whose instances may be others. */
export interface AffectedWorkloads {
  readonly addresses: ReadonlySet<string>
  readonly places: ReadonlySet<string>
}

/** The largest number of labels of a workload whose places are looked up one by one. */
const mostPlaces = 64

/** The places of the selectors that may select a workload: one for each of its labels, or that of the whole namespace. */
export function placesOf({ namespace, labels }: Pick<LabelledWorkload, 'namespace' | 'labels'>): string[] {
  const all = Object.entries(labels)
  return all.length > mostPlaces ? [namespace] : all.map(([name, value]) => `${namespace} ${name}=${value}`)
}

/** Finds the service instances of an address, and of labels. */
export class InstanceIndex {
  readonly #states = new Map<string, readonly ServiceState[]>()
  /** The hosts of the Services that select workloads, by namespace and the first label of their selector. */
  readonly #selecting = new Map<string, Set<string>>()
  /** The hosts of all these, by namespace. */
  readonly #selectingIn = new Map<string, Set<string>>()
  /** The hosts that have an address. Nearly all addresses have one host, for which no set is made. */
  readonly #hostsByAddress = new Map<string, string | Set<string>>()

  /** Replaces the state of a host. Returns what it may have changed. */
  update(hostname: string, states: readonly ServiceState[] | undefined): AffectedWorkloads {
    const places = this.#updateSelecting(hostname, this.#states.get(hostname) ?? [], states ?? [])
    return { addresses: this.#update(hostname, states ?? []), places }
  }

  /** Returns the places of the selectors of changed Services. */
  #updateSelecting(hostname: string, before: readonly ServiceState[], after: readonly ServiceState[]): Set<string> {
    const places = new Set<string>()
    const same = before.length === after.length && before.every((state, index) => isAlike(state, after[index] as ServiceState))
    if (same) return places
    const placesIn = (states: readonly ServiceState[]) =>
      states.flatMap(({ service }) => {
        const place = placeOf(service)
        return place ? [place] : []
      })
    for (const [namespace, place] of placesIn(before)) {
      drop(this.#selectingIn, namespace, hostname)
      drop(this.#selecting, place, hostname)
    }
    for (const [namespace, place] of placesIn(after)) {
      put(this.#selectingIn, namespace, hostname)
      put(this.#selecting, place, hostname)
    }
    for (const [namespace, place] of [...placesIn(before), ...placesIn(after)]) places.add(namespace).add(place)
    return places
  }

  #update(hostname: string, after: readonly ServiceState[]): Set<string> {
    const before = this.#states.get(hostname)
    if (after.length > 0) this.#states.set(hostname, after)
    else this.#states.delete(hostname)
    if (!before) return this.#addHost(hostname, after)
    const affected = new Set<string>()
    const sameService = before.length === after.length && before.every((state, index) => state.service === after[index]?.service)
    // Slices that a service keeps have the same instances, unless the services differ.
    const old = entriesByAddress(before, sameService ? after : [])
    const now = entriesByAddress(after, sameService ? before : [])
    const gone = new Set([...old.keys()].filter((address) => !now.has(address)))
    if (gone.size > 0 && sameService)
      for (const { endpoints } of after) for (const { address } of endpoints) if (gone.delete(address)) affected.add(address)
    for (const [address, entries] of old) {
      const present = now.get(address)
      if (!present) {
        if (gone.has(address)) this.#remove(address, hostname)
        affected.add(address)
      } else if (!sameService || !sameEntries(entries, present)) affected.add(address)
    }
    for (const address of now.keys()) {
      if (old.has(address)) continue
      this.#add(address, hostname)
      affected.add(address)
    }
    return affected
  }

  #addHost(hostname: string, states: readonly ServiceState[]): Set<string> {
    const addresses = new Set<string>()
    for (const { endpoints } of states) for (const { address } of endpoints) if (address !== '') addresses.add(address)
    for (const address of addresses) this.#add(address, hostname)
    return addresses
  }

  #add(address: string, hostname: string): void {
    const hosts = this.#hostsByAddress.get(address)
    if (hosts === undefined) this.#hostsByAddress.set(address, hostname)
    else if (typeof hosts !== 'string') hosts.add(hostname)
    else if (hosts !== hostname) this.#hostsByAddress.set(address, new Set([hosts, hostname]))
  }

  #remove(address: string, hostname: string): void {
    const hosts = this.#hostsByAddress.get(address)
    if (typeof hosts === 'object') hosts.delete(hostname)
    if (hosts === hostname || (typeof hosts === 'object' && hosts.size === 0)) this.#hostsByAddress.delete(address)
  }

  /** The hosts that have an address, sorted. */
  #hostsAt(address: string): string[] {
    const hosts = this.#hostsByAddress.get(address) ?? []
    return typeof hosts === 'string' ? [hosts] : [...hosts].sort()
  }

  /**
   * Returns the service ports of the Services that select a workload by its labels, sorted by host name: the target ports of each, those with
   * a name by the named ports of the workload. A port whose name the workload does not have is served where an endpoint at its address says.
   */
  selecting(workload: LabelledWorkload, addresses: readonly string[]): ServiceInstance[] {
    const { namespace, labels, cluster, serviceAccount, ports } = workload
    const places = placesOf(workload)
    const isAll = places.length === 1 && places[0] === namespace
    const hosts = new Set(places.flatMap((place) => [...((isAll ? this.#selectingIn : this.#selecting).get(place) ?? [])]))
    return [...hosts].sort(compare).flatMap((hostname) =>
      (this.#states.get(hostname) ?? []).flatMap((state): ServiceInstance[] => {
        const { service, shards, endpoints } = state
        const isThere = cluster === '' || shards.length === 0 || shards.some((shard) => shard.cluster === cluster)
        if (service.namespace !== namespace || !placeOf(service) || !isThere || !labelsMatch(service.selector, labels)) return []
        const listed = endpoints.find(({ address }) => addresses.includes(address))
        const endpoint = listed ?? madeEndpoint(addresses[0] ?? '', labels, namespace, serviceAccount)
        return service.ports.flatMap((port): ServiceInstance[] => {
          const { targetName } = port
          const named = targetName !== undefined && Object.hasOwn(ports, targetName) ? ports[targetName] : undefined
          if (named === undefined && targetName !== undefined && !(listed && servesPort(listed, port))) return []
          const targetPort = named ?? (targetName === undefined ? port.targetPort || port.number : portOf(endpoint, port))
          return [{ service, port, endpoint, targetPort }]
        })
      }),
    )
  }

  /** Whether a WorkloadEntry with this address is an endpoint of a Service that selects it. */
  hasWorkloadEntry(address: string): boolean {
    const isThere = ({ shards }: ServiceState) =>
      shards.some(({ slices }) =>
        slices.some((slice) => isOfWorkloadEntries(slice) && slice.endpoints.some((endpoint) => endpoint.address === address)),
      )
    return this.#hostsAt(address).some((hostname) => (this.#states.get(hostname) ?? []).some(isThere))
  }

  /**
   * Returns the service ports that a workload of a namespace serves at these addresses, sorted by host name: only those of services of the
   * same namespace (docs/resources.md, P6), because otherwise anybody who can write a service in another namespace could change the
   * protocol that the workload's port is guarded for. Without a namespace: those of all services.
   */
  of(addresses: readonly string[], namespace: string | undefined): ServiceInstance[] {
    const instances: ServiceInstance[] = []
    for (const address of addresses) {
      for (const hostname of this.#hostsAt(address)) {
        for (const { service, endpoints } of this.#states.get(hostname) ?? []) {
          if (service.external || (namespace !== undefined && service.namespace !== namespace)) continue
          const here = endpoints.filter((candidate) => candidate.address === address)
          for (const port of service.ports) {
            const targets = new Map<number, Endpoint>()
            for (const endpoint of here) {
              const targetPort = portOf(endpoint, port)
              if (servesPort(endpoint, port) && !targets.has(targetPort)) targets.set(targetPort, endpoint)
            }
            for (const [targetPort, endpoint] of targets) instances.push({ service, port, endpoint, targetPort })
          }
        }
      }
    }
    return instances
  }
}

/** Whether an instance is of a Service of the orchestrator that selects workloads or lists endpoints. */
export const isOfOrchestrator = ({ service }: ServiceInstance): boolean => service.provider === 'Orchestrator'

/** The namespace of a Service that selects workloads, and the place of its selector; undefined for other services. */
function placeOf({ provider, namespace, selector, external }: Service): readonly [namespace: string, place: string] | undefined {
  if (provider !== 'Orchestrator' || external || !selector) return undefined
  const [first] = Object.entries(selector).sort(([one], [other]) => compare(one, other))
  return first && [namespace, `${namespace} ${first[0]}=${first[1]}`]
}

/** Whether two states select the same workloads of the same clusters on the same ports. */
const isAlike = (one: ServiceState, other: ServiceState): boolean =>
  one.service === other.service && one.shards.map(registryName).join() === other.shards.map(registryName).join()

/** The endpoint of a workload that is not listed yet. */
const madeEndpoint = (address: string, labels: Labels, namespace: string, serviceAccount: string): Endpoint => ({
  ...{ address, ports: {}, labels, locality: '', network: '', weight: 0, serviceAccount, namespace, workload: '' },
})

function put(index: Map<string, Set<string>>, at: string, host: string): void {
  const known = index.get(at)
  if (known) known.add(host)
  else index.set(at, new Set([host]))
}

function drop(index: Map<string, Set<string>>, at: string, host: string): void {
  const known = index.get(at)
  known?.delete(host)
  if (known?.size === 0) index.delete(at)
}

/** An endpoint of one of the services that have a host name. */
interface Entry {
  readonly service: Service
  readonly endpoint: Endpoint
}

/** Returns the endpoints with an address, by address, except those in slices that the same service has in `others`. */
function entriesByAddress(states: readonly ServiceState[], others: readonly ServiceState[]): Map<string, Entry[]> {
  const found = new Map<string, Entry[]>()
  for (const [index, { service, shards }] of states.entries()) {
    const kept = new Set(others[index]?.shards.flatMap(({ slices }) => slices))
    for (const slice of shards.flatMap(({ slices }) => slices)) {
      if (kept.has(slice)) continue
      for (const endpoint of slice.endpoints) {
        if (endpoint.address === '') continue
        const there = found.get(endpoint.address)
        if (there) there.push({ service, endpoint })
        else found.set(endpoint.address, [{ service, endpoint }])
      }
    }
  }
  return found
}

/** Whether the endpoints of a workload are the same in service, ports, labels and locality. */
function sameEntries(one: readonly Entry[], other: readonly Entry[]): boolean {
  if (one.length !== other.length) return false
  return one.every(({ service, endpoint }, index) => {
    const { service: peerService, endpoint: peer } = other[index] as Entry
    if (service !== peerService) return false
    return (
      endpoint === peer || (endpoint.locality === peer.locality && sameFields(endpoint.ports, peer.ports) && sameFields(endpoint.labels, peer.labels))
    )
  })
}
