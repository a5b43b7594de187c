/**
 * Allocates addresses to services that have none, so that their names resolve and their connections can be distinguished (docs/resources.md,
 * N4).
 */
import { hash } from 'node:crypto'
import type { Service } from '../../protocols/data.ts'
import { compare } from '../model/order.ts'
import type { ServiceState, ServicesByHost } from '../registry/merged-services.ts'
import type { AddressFamily } from '../registry/slices.ts'

/** The number of values of the last octet of an IPv4 address: 1 to 254. */
const hostsOfNet = 254
/** The number of values of the third octet: 0 to 254. */
const nets = 255
const maxAddresses = hostsOfNet * nets

const keyOf = ({ namespace, hostname }: Service): string => `${namespace}/${hostname}`

/**
 * Whether a service is allocated an address: it is from a ServiceEntry without an address, its host is no wildcard, and its resolution is
 * not NONE.
 */
export function isAllocated({ provider, addresses, hostname, resolution }: Service): boolean {
  return (
    provider === 'ServiceEntry' && resolution !== 'passthrough' && !hostname.startsWith('*') && addresses.every((address) => address === '0.0.0.0')
  )
}

/**
 * The allocated addresses of all services. A service keeps its address when other services are added or removed, except when two services
 * hash to the same address: then the older one has it. Every replica allocates the same addresses. Computed on first use.
 */
export class AllocatedAddresses {
  readonly #services: ServicesByHost
  #places: ReadonlyMap<string, number> | undefined

  constructor(services: ServicesByHost) {
    this.#services = services
  }

  /**
   * The address of a service in a family: in 240.240.0.0/16, or in 2001:2::/48. Undefined when the service is allocated none, or all
   * addresses are taken.
   */
  of(service: Service, family: AddressFamily): string | undefined {
    if (!isAllocated(service)) return undefined
    this.#places ??= allocate(this.#services)
    const place = this.#places.get(keyOf(service))
    if (place === undefined) return undefined
    const [third, fourth] = [Math.floor(place / hostsOfNet), (place % hostsOfNet) + 1]
    return family === 'ipv4' ? `240.240.${third}.${fourth}` : `2001:2::f0f0:${(third * 256 + fourth).toString(16)}`
  }
}

/**
 * Assigns each service an index, by its key: the one that the key hashes to, or the next free one of a probe sequence that depends on the
 * key.
 */
function allocate(services: ServicesByHost): Map<string, number> {
  const wanting = [...services.values()].flatMap((states) => states.flatMap(({ service }) => (isAllocated(service) ? [service] : [])))
  wanting.sort((one, other) => one.createdAt - other.createdAt || compare(keyOf(one), keyOf(other)))
  const taken = new Set<number>()
  const places = new Map<string, number>()
  for (const service of wanting.slice(0, maxAddresses)) {
    const digest = hash('sha1', keyOf(service), 'buffer')
    let place = digest.readUInt32BE(0) % maxAddresses
    let step = 1 + (digest.readUInt32BE(4) % (maxAddresses - 1))
    for (let tries = 0; taken.has(place); tries++) {
      // The probe sequence may return to its start before it has visited every index.
      if (tries === maxAddresses) step = 1
      place = (place + step) % maxAddresses
    }
    taken.add(place)
    places.set(keyOf(service), place)
  }
  return places
}

/** Services, and their states, with other addresses in place of their own. */
const services = new WeakMap<Service, Map<string, Service>>()
const states = new WeakMap<ServiceState, Map<string, ServiceState>>()

/** Returns a service with this address as its only one. The result is the same object for the same service and state. */
export const withAddress = (state: ServiceState, address: string): ServiceState => withAddresses(state, [address])

/** Returns a service with these addresses as its only ones. The result is the same object for the same service and state. */
export function withAddresses(state: ServiceState, addresses: readonly string[]): ServiceState {
  const key = addresses.join()
  const service = kept(services, state.service, key, () => ({ ...state.service, addresses }))
  return kept(states, state, key, () => ({ ...state, service }))
}

function kept<Key extends object, Value>(all: WeakMap<Key, Map<string, Value>>, key: Key, address: string, make: () => Value): Value {
  let made = all.get(key)
  if (!made) all.set(key, (made = new Map()))
  let value = made.get(address)
  if (value === undefined) made.set(address, (value = make()))
  return value
}
