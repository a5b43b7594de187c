/**
 * Endpoints that several slices of a Service have: while the orchestrator moves an endpoint from one slice to another, both may have it, and
 * whoever reads slices leaves repetitions out (docs/resources.md, O7). Told twice, an endpoint would count twice in the weight of its locality.
 */
import type { Endpoint, ServicePort } from '../../protocols/data.ts'
import { portOf, servesPort } from '../model/workload.ts'
import { isOfWorkloadEntries, keptSlice, type Slice } from './slices.ts'

/** Leaves repeated endpoints out of slices. Slices without any keep their identity, and so does what is left of others while it is equal. */
export class RepeatedEndpoints {
  readonly #left = new WeakMap<Slice, Slice>()

  /**
   * Returns the slices of a Service with some ports, without the endpoints whose address and ports an earlier endpoint has that is as ready.
   * Of one that has other ports besides, these are left. Selected WorkloadEntries are not compared: each is an object of its own.
   */
  without(slices: readonly Slice[], ports: readonly ServicePort[]): readonly Slice[] {
    if (!hasRepeated(slices)) return slices
    const seen = new Map<string, Set<string>>()
    return slices.map((slice) => {
      if (isOfWorkloadEntries(slice)) return slice
      const endpoints = slice.endpoints.flatMap((endpoint) => leftOf(endpoint, ports, seen))
      if (endpoints.length === slice.endpoints.length && endpoints.every((endpoint, index) => endpoint === slice.endpoints[index])) return slice
      const left = keptSlice(this.#left.get(slice), { key: slice.key, version: '', endpoints })
      this.#left.set(slice, left)
      return left
    })
  }
}

/** Whether any address is repeated, which is rare. */
function hasRepeated(slices: readonly Slice[]): boolean {
  const addresses = new Set<string>()
  let count = 0
  for (const slice of slices) {
    if (isOfWorkloadEntries(slice)) continue
    for (const { address } of slice.endpoints) addresses.add(address)
    count += slice.endpoints.length
  }
  return addresses.size < count
}

/** What is left of an endpoint after those that were seen, to which it is added. */
function leftOf(endpoint: Endpoint, ports: readonly ServicePort[], seen: Map<string, Set<string>>): Endpoint[] {
  const at = `${endpoint.readiness ?? 'ready'} ${endpoint.address}`
  const portAt = (port: ServicePort) => `${portOf(endpoint, port)} ${port.name}`
  const serves = ports.filter((port) => servesPort(endpoint, port))
  const known = seen.get(at)
  const left = known ? serves.filter((port) => !known.has(portAt(port))) : serves
  if (known) for (const port of left) known.add(portAt(port))
  else seen.set(at, new Set(serves.map(portAt)))
  if (known && left.length === 0) return []
  return left.length === serves.length ? [endpoint] : [{ ...endpoint, serves: left.map(({ name }) => name) }]
}
