/** Finds the services that a workload address is an endpoint of. Updated slice by slice, never rebuilt. */
import type { Endpoint } from '../../protocols/data.ts'
import { portOf, type ServiceInstance, servesPort } from '../model/workload.ts'
import type { ServiceState } from '../registry/merged-services.ts'
import { type Slice, sameFields } from '../registry/slices.ts'

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
    const slices = (of: readonly ServiceState[]) => of.flatMap(({ shards }) => shards.flatMap((shard) => shard.slices))
    const [there, here] = [slices(before), slices(after)]
    // Slices that are in both have the same instances, unless the services differ.
    const [one, other] = sameService ? [without(there, here), without(here, there)] : [there, here]
    const old = endpointsByAddress(one)
    const now = endpointsByAddress(other)
    const gone = new Set([...old.keys()].filter((address) => !now.has(address)))
    if (gone.size > 0 && sameService)
      for (const { endpoints } of after) for (const { address } of endpoints) if (gone.delete(address)) affected.add(address)
    for (const [address, endpoints] of old) {
      const present = now.get(address)
      if (!present) {
        if (gone.has(address)) this.#remove(address, hostname)
        affected.add(address)
      } else if (!sameService || !sameEndpoints(endpoints, present)) affected.add(address)
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

function without(slices: readonly Slice[], others: readonly Slice[]): readonly Slice[] {
  const left = new Set(others)
  return slices.filter((slice) => !left.has(slice))
}

function endpointsByAddress(slices: readonly Slice[]): Map<string, Endpoint[]> {
  const found = new Map<string, Endpoint[]>()
  for (const { endpoints } of slices)
    for (const endpoint of endpoints) {
      if (endpoint.address === '') continue
      const there = found.get(endpoint.address)
      if (there) there.push(endpoint)
      else found.set(endpoint.address, [endpoint])
    }
  return found
}

/** Whether the endpoints of a workload are the same in ports, labels and locality. */
function sameEndpoints(one: readonly Endpoint[], other: readonly Endpoint[]): boolean {
  if (one.length !== other.length) return false
  return one.every((endpoint, index) => {
    const peer = other[index] as Endpoint
    return (
      endpoint === peer || (endpoint.locality === peer.locality && sameFields(endpoint.ports, peer.ports) && sameFields(endpoint.labels, peer.labels))
    )
  })
}
