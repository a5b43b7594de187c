/** Finds the services that a workload address is an endpoint of. Updated host by host, never rebuilt. */
import type { Endpoint } from '../../protocols/data.ts'
import { portOf, type ServiceInstance, servesPort } from '../model/workload.ts'
import type { ServiceState } from '../registry/merged-services.ts'

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
    const old = endpointsByAddress(before)
    const now = endpointsByAddress(after)
    for (const [address, endpoints] of old) {
      const present = now.get(address)
      if (!present) {
        this.#remove(address, hostname)
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
    else if (typeof hosts === 'string') this.#hostsByAddress.set(address, new Set([hosts, hostname]))
    else hosts.add(hostname)
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

function endpointsByAddress(states: readonly ServiceState[]): Map<string, Endpoint[]> {
  const found = new Map<string, Endpoint[]>()
  for (const { endpoints } of states)
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
    return endpoint === peer || (endpoint.locality === peer.locality && sameMap(endpoint.ports, peer.ports) && sameMap(endpoint.labels, peer.labels))
  })
}

function sameMap(one: Readonly<Record<string, unknown>>, other: Readonly<Record<string, unknown>>): boolean {
  const keys = Object.keys(one)
  return keys.length === Object.keys(other).length && keys.every((key) => Object.hasOwn(other, key) && one[key] === other[key])
}
