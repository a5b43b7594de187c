/** Addresses for services that have none, so that a name can be resolved and its connections told apart (docs/resources.md, N4). */
import { hash } from 'node:crypto'
import type { Service } from '../../protocols/data.ts'
import { compare } from '../model/order.ts'
import type { ServiceState, ServicesByHost } from '../registry/merged-services.ts'

/** Which addresses a proxy can use. */
export type AddressFamily = 'ipv4' | 'ipv6'

/** Last numbers of an IPv4 address that are given out: 1 to 254. */
const hostsOfNet = 254
/** Third numbers that are given out: 0 to 254. */
const nets = 255
const mostAddresses = hostsOfNet * nets

const keyOf = ({ namespace, hostname }: Service): string => `${namespace}/${hostname}`

/** Whether a service is given an address: one of a ServiceEntry without an address, a wildcard or resolution NONE. */
export function isAllocated({ provider, addresses, hostname, resolution }: Service): boolean {
  return (
    provider === 'ServiceEntry' && resolution !== 'passthrough' && !hostname.startsWith('*') && addresses.every((address) => address === '0.0.0.0')
  )
}

/**
 * The addresses of all services that are given one. A service keeps its address whatever other services come and go, except where two want the same
 * one: the older has it. Every replica gives out the same. Worked out when the first is asked for.
 */
export class AllocatedAddresses {
  readonly #services: ServicesByHost
  #places: ReadonlyMap<string, number> | undefined

  constructor(services: ServicesByHost) {
    this.#services = services
  }

  /** The address of a service in a family: in 240.240.0.0/16, or in 2001:2::/48. Undefined where it is given none, or all are taken. */
  of(service: Service, family: AddressFamily): string | undefined {
    if (!isAllocated(service)) return undefined
    this.#places ??= allocate(this.#services)
    const place = this.#places.get(keyOf(service))
    if (place === undefined) return undefined
    const [third, fourth] = [Math.floor(place / hostsOfNet), (place % hostsOfNet) + 1]
    return family === 'ipv4' ? `240.240.${third}.${fourth}` : `2001:2::f0f0:${(third * 256 + fourth).toString(16)}`
  }
}

/** A place for each service, by its key: the one that its key comes to, or the next of a sequence that its key comes to. */
function allocate(services: ServicesByHost): Map<string, number> {
  const wanting = [...services.values()].flatMap((states) => states.flatMap(({ service }) => (isAllocated(service) ? [service] : [])))
  wanting.sort((one, other) => one.createdAt - other.createdAt || compare(keyOf(one), keyOf(other)))
  const taken = new Set<number>()
  const places = new Map<string, number>()
  for (const service of wanting.slice(0, mostAddresses)) {
    const digest = hash('sha1', keyOf(service), 'buffer')
    let place = digest.readUInt32BE(0) % mostAddresses
    let step = 1 + (digest.readUInt32BE(4) % (mostAddresses - 1))
    for (let tries = 0; taken.has(place); tries++) {
      // The sequence may come back to its begin before it was everywhere.
      if (tries === mostAddresses) step = 1
      place = (place + step) % mostAddresses
    }
    taken.add(place)
    places.set(keyOf(service), place)
  }
  return places
}

/** Services and their states as they are seen with addresses. */
const services = new WeakMap<Service, Map<string, Service>>()
const states = new WeakMap<ServiceState, Map<string, ServiceState>>()

/** A service as one that has just this address: the same object for the same service, and for the same state of it. */
export function withAddress(state: ServiceState, address: string): ServiceState {
  const service = kept(services, state.service, address, () => ({ ...state.service, addresses: [address] }))
  return kept(states, state, address, () => ({ ...state, service }))
}

function kept<Key extends object, Value>(all: WeakMap<Key, Map<string, Value>>, key: Key, address: string, make: () => Value): Value {
  let made = all.get(key)
  if (!made) all.set(key, (made = new Map()))
  let value = made.get(address)
  if (value === undefined) made.set(address, (value = make()))
  return value
}
