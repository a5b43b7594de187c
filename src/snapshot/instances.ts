/** Which services a workload address is behind: kept up to date host by host, never rebuilt. */
import { portOf, type ServiceInstance } from '../model/workload.ts'
import type { ServiceState } from './snapshot.ts'

/** Finds the service instances of an address. */
export class InstanceIndex {
  readonly #states = new Map<string, readonly ServiceState[]>()
  readonly #hostsByAddress = new Map<string, Set<string>>()

  /** Takes over the present state of a host. Returns addresses whose instances may have changed. */
  update(hostname: string, states: readonly ServiceState[] | undefined): Set<string> {
    const before = this.#states.get(hostname) ?? []
    const after = states ?? []
    const affected = new Set<string>()
    const sameService = before.length === after.length && before.every((state, index) => state.service === after[index]?.service)
    const old = addressesOf(before)
    const now = addressesOf(after)
    for (const address of old) {
      if (!now.has(address)) {
        const hosts = this.#hostsByAddress.get(address)
        hosts?.delete(hostname)
        if (hosts?.size === 0) this.#hostsByAddress.delete(address)
        affected.add(address)
      } else if (!sameService) affected.add(address)
    }
    for (const address of now) {
      if (old.has(address)) continue
      const hosts = this.#hostsByAddress.get(address)
      if (hosts) hosts.add(hostname)
      else this.#hostsByAddress.set(address, new Set([hostname]))
      affected.add(address)
    }
    if (after.length > 0) this.#states.set(hostname, after)
    else this.#states.delete(hostname)
    return affected
  }

  /** The service ports that workloads at these addresses serve, in the order of host names. */
  of(addresses: readonly string[]): ServiceInstance[] {
    const instances: ServiceInstance[] = []
    for (const address of addresses) {
      for (const hostname of [...(this.#hostsByAddress.get(address) ?? [])].sort()) {
        for (const { service, endpoints } of this.#states.get(hostname) ?? []) {
          const endpoint = endpoints.find((candidate) => candidate.address === address)
          if (!endpoint || service.external) continue
          for (const port of service.ports) {
            instances.push({ service, port, endpoint, targetPort: portOf(endpoint, port) })
          }
        }
      }
    }
    return instances
  }
}

function addressesOf(states: readonly ServiceState[]): Set<string> {
  return new Set(states.flatMap((state) => state.endpoints.map((endpoint) => endpoint.address)))
}
