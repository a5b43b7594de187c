/** Finds the services that a workload address is an endpoint of. Updated slice by slice, never rebuilt. */
import type { Endpoint, Service } from '../../protocols/data.ts'
import { portOf, type ServiceInstance, servesPort } from '../model/workload.ts'
import type { ServiceState } from '../registry/merged-services.ts'
import { sameFields } from '../registry/slices.ts'

/** Finds the service instances of an address. */
export class InstanceIndex {
  readonly #states = new Map<string, readonly ServiceState[]>()
  /** The hosts that have an address. Nearly all addresses have one host, for which no set is made. */
  readonly #hostsByAddress = new Map<string, string | Set<string>>()

  /** Replaces the state of a host. Returns the addresses whose instances may have changed. */
  update(hostname: string, states: readonly ServiceState[] | undefined): Set<string> {
    const after = states ?? []
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
