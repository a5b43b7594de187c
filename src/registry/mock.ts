/**
 * The Mock registry: generates services, endpoints, churn and rollouts from a seed, for load tests without a cluster. Equal settings
 * generate equal services, and the n-th step of churn or of a rollout changes the same endpoints in every run.
 */
import type { Endpoint, EndpointSlice, RegistryId, Service } from '../../protocols/data.ts'

/** The size and shape of the generated mesh. */
export interface MockSettings {
  readonly services: number
  readonly endpoints: number
  readonly namespaces: number
  /** The number of endpoints of each service that are workloads. A load client can pose as such a workload by using its address. */
  readonly proxiesPerService: number
  readonly churnPerSecond: number
  /** The number of services with more endpoints than the others, whose workloads are replaced by rollouts; and the endpoints of each. */
  readonly largeServices: number
  readonly largeEndpoints: number
  readonly seed: number
  readonly domain: string
  /** The id of the cluster that the services are in. */
  readonly cluster: string
}

/** The registry of the generated services. */
export const mockRegistry = ({ cluster }: MockSettings): RegistryId => ({ provider: 'Mock', cluster })

/** One service of the Mock registry with the slices of its endpoints. */
export interface MockService {
  readonly service: Service
  readonly slices: readonly EndpointSlice[]
}

/** A slice that a step changed, of the service at an index. */
export interface MockChange {
  readonly index: number
  readonly slice: EndpointSlice
}

/** The number of endpoints, or of places of a large service, in one slice. */
const sliceLength = 100

/** Pseudo-random numbers in [0, 1) from a seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/**
 * Generates the services, the large ones last. Addresses: services in 240.0.0.0/12, workloads in 10.64.0.0/10, other endpoints in
 * 10.128.0.0/9, those of large services in 172.16.0.0/12; all ranges wrap around.
 */
export function mockServices(settings: MockSettings): MockService[] {
  const ordinary = Array.from({ length: Math.max(0, settings.services) }, (_, index): MockService => {
    const service = mockService(settings, `mock-${index}`, index)
    return { service, slices: slicesOf(service, settings.endpoints, (slot) => [mockEndpoint(settings, service, index, slot, 0)]) }
  })
  const large = Array.from({ length: Math.max(0, settings.largeServices) }, (_, number): MockService => {
    const service = mockService(settings, `large-${number}`, ordinary.length + number)
    return { service, slices: slicesOf(service, settings.largeEndpoints, (slot) => [largeEndpoint(settings, service, number, slot, 0)]) }
  })
  return [...ordinary, ...large]
}

function mockService(settings: MockSettings, name: string, index: number): Service {
  const namespace = `mock-${index % Math.max(1, settings.namespaces)}`
  return {
    hostname: `${name}.${namespace}.svc.${settings.domain}`,
    namespace,
    name,
    ...mockRegistry(settings),
    addresses: [`240.${(index >> 16) & 15}.${(index >> 8) & 255}.${index & 255}`],
    ports: [
      { number: 80, name: 'http', protocol: 'http', targetPort: 8080 },
      { number: 9090, name: 'grpc', protocol: 'grpc', targetPort: 9091 },
      { number: 5000 + (index % 100), name: 'tcp', protocol: 'tcp', targetPort: 5000 },
    ],
    resolution: 'static',
    external: false,
    exportTo: [],
    serviceAccounts: [],
    selector: undefined,
    createdAt: 0,
  }
}

/** The slices of a service with `count` places, each with the endpoints that `at` returns for it. */
function slicesOf(service: Service, count: number, at: (slot: number) => Endpoint[]): EndpointSlice[] {
  return Array.from({ length: Math.ceil(count / sliceLength) }, (_, part) => ({
    key: keyOf(service, part),
    version: '0',
    endpoints: Array.from({ length: Math.min(sliceLength, count - part * sliceLength) }, (_, slot) => at(part * sliceLength + slot)).flat(),
  }))
}

const keyOf = ({ name }: Service, part: number): string => `${name}-${String(part).padStart(4, '0')}`

/** Returns what churn step `step` (0, 1, 2 ...) changes: it replaces one endpoint. Undefined when no endpoint can be replaced. */
export function mockChurn(settings: MockSettings, services: readonly MockService[], step: number): MockChange | undefined {
  const replaceable = settings.endpoints - Math.min(settings.endpoints, settings.proxiesPerService)
  if (settings.services <= 0 || replaceable <= 0) return undefined
  const random = seededRandom(settings.seed + 7919 * (step + 1))
  const index = Math.floor(random() * settings.services)
  const slot = settings.proxiesPerService + Math.floor(random() * replaceable)
  const { service, slices } = services[index] as MockService
  const slice = slices[Math.floor(slot / sliceLength)] as EndpointSlice
  const endpoints = [...slice.endpoints]
  endpoints[slot % sliceLength] = mockEndpoint(settings, service, index, slot, 1 + (step % 3))
  return { index, slice: { key: slice.key, version: `${step + 1}`, endpoints } }
}

/** The steps after the last workload of a rollout was begun to be replaced, until the last one before it is gone. */
const closingSteps = 2

/** The number of steps of one rollout. */
export const rolloutSteps = ({ largeEndpoints }: MockSettings): number => largeEndpoints + closingSteps

/**
 * Returns what step `step` (0, 1, 2 ...) of the rollouts changes. Rollouts replace the workloads of one large service after the other, each
 * in three steps: the new one is there and not ready, the new one is ready and the old one terminates, the old one is gone.
 */
export function mockRollout(settings: MockSettings, services: readonly MockService[], step: number): MockChange[] {
  const { largeServices, largeEndpoints } = settings
  if (largeServices <= 0 || largeEndpoints <= 0) return []
  const rollout = Math.floor(step / rolloutSteps(settings))
  const place = step % rolloutSteps(settings)
  const number = rollout % largeServices
  const generation = Math.floor(rollout / largeServices)
  const index = Math.max(0, settings.services) + number
  const { service } = services[index] as MockService
  const at = (slot: number): Endpoint[] => {
    const [old, next] = [generation, generation + 1].map((of) => largeEndpoint(settings, service, number, slot, of)) as [Endpoint, Endpoint]
    const age = place - slot
    if (age < 0) return [old]
    if (age === 0) return [old, { ...next, readiness: 'unready' }]
    return age === 1 ? [{ ...old, readiness: 'terminating' }, next] : [next]
  }
  const slots = [place, place - 1, place - closingSteps].filter((slot) => slot >= 0 && slot < largeEndpoints)
  return [...new Set(slots.map((slot) => Math.floor(slot / sliceLength)))].map((part) => {
    const length = Math.min(sliceLength, largeEndpoints - part * sliceLength)
    const endpoints = Array.from({ length }, (_, slot) => at(part * sliceLength + slot)).flat()
    return { index, slice: { key: keyOf(service, part), version: `${step + 1}`, endpoints } }
  })
}

/** The endpoint in a slot of a service. `generation` (0 to 3) distinguishes the replacements of one slot. */
function mockEndpoint(settings: MockSettings, service: Service, index: number, slot: number, generation: number): Endpoint {
  const impersonated = slot < settings.proxiesPerService
  const serial = impersonated ? index * settings.proxiesPerService + slot : (index * settings.endpoints + slot) * 4 + generation
  const second = impersonated ? 64 + ((serial >> 16) & 63) : 128 + ((serial >> 16) & 127)
  return endpointAt(`10.${second}.${(serial >> 8) & 255}.${serial & 255}`, service, slot, impersonated ? `${service.name}-${slot}` : '')
}

/** The endpoint in a slot of a large service, after `generation` rollouts. */
function largeEndpoint(settings: MockSettings, service: Service, number: number, slot: number, generation: number): Endpoint {
  const serial = (number * settings.largeEndpoints + slot) * 4 + (generation % 4)
  return endpointAt(`172.${16 + ((serial >> 16) & 15)}.${(serial >> 8) & 255}.${serial & 255}`, service, slot, '')
}

function endpointAt(address: string, { name, namespace }: Service, slot: number, workload: string): Endpoint {
  return {
    address,
    ports: {},
    labels: { app: name, version: slot % 2 === 0 ? 'v1' : 'v2' },
    locality: `region-1/zone-${slot % 3}`,
    network: '',
    weight: 1,
    serviceAccount: 'default',
    namespace,
    workload,
    node: `node-${slot % 60}`,
  }
}
