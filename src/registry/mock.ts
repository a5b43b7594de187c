/**
 * The Mock registry: generates services, endpoints and churn from a seed, for load tests without a cluster. Equal settings generate equal
 * services, and the n-th churn step replaces the same endpoint in every run.
 */
import type { Endpoint, RegistryId, Service } from '../../protocols/data.ts'

/** The size and shape of the generated mesh. */
export interface MockSettings {
  readonly services: number
  readonly endpoints: number
  readonly namespaces: number
  /** The number of endpoints of each service that are workloads. A load client can pose as such a workload by using its address. */
  readonly proxiesPerService: number
  readonly churnPerSecond: number
  readonly seed: number
  readonly domain: string
  /** The id of the cluster that the services are in. */
  readonly cluster: string
}

/** The registry of the generated services. */
export const mockRegistry = ({ cluster }: MockSettings): RegistryId => ({ provider: 'Mock', cluster })

/** One service of the Mock registry with its endpoints. */
export interface MockService {
  readonly service: Service
  readonly endpoints: readonly Endpoint[]
}

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
 * Generates the services. Addresses: services in 240.0.0.0/12, workloads in 10.64.0.0/10, other endpoints in 10.128.0.0/9; all ranges wrap
 * around.
 */
export function mockServices(settings: MockSettings): MockService[] {
  return Array.from({ length: Math.max(0, settings.services) }, (_, index): MockService => {
    const namespace = `mock-${index % Math.max(1, settings.namespaces)}`
    const name = `mock-${index}`
    const service: Service = {
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
    return { service, endpoints: Array.from({ length: settings.endpoints }, (_, slot) => mockEndpoint(settings, service, index, slot, 0)) }
  })
}

/**
 * Returns the service in which churn step `step` (0, 1, 2 ...) replaces an endpoint, and its index. Undefined when no endpoint can be
 * replaced.
 */
export function mockChurn(
  settings: MockSettings,
  services: readonly MockService[],
  step: number,
): { index: number; replaced: MockService } | undefined {
  const replaceable = settings.endpoints - Math.min(settings.endpoints, settings.proxiesPerService)
  if (services.length === 0 || replaceable <= 0) return undefined
  const random = seededRandom(settings.seed + 7919 * (step + 1))
  const index = Math.floor(random() * services.length)
  const current = services[index] as MockService
  const slot = settings.proxiesPerService + Math.floor(random() * replaceable)
  const endpoints = current.endpoints.map((endpoint, at) =>
    at === slot ? mockEndpoint(settings, current.service, index, slot, 1 + (step % 3)) : endpoint,
  )
  return { index, replaced: { service: current.service, endpoints } }
}

/** The endpoint in a slot of a service. `generation` (0 to 3) distinguishes the replacements of one slot. */
function mockEndpoint(settings: MockSettings, service: Service, index: number, slot: number, generation: number): Endpoint {
  const impersonated = slot < settings.proxiesPerService
  const serial = impersonated ? index * settings.proxiesPerService + slot : (index * settings.endpoints + slot) * 4 + generation
  const second = impersonated ? 64 + ((serial >> 16) & 63) : 128 + ((serial >> 16) & 127)
  return {
    address: `10.${second}.${(serial >> 8) & 255}.${serial & 255}`,
    ports: {},
    labels: { app: service.name, version: slot % 2 === 0 ? 'v1' : 'v2' },
    locality: `region-1/zone-${slot % 3}`,
    network: '',
    weight: 1,
    serviceAccount: 'default',
    namespace: service.namespace,
    workload: impersonated ? `${service.name}-${slot}` : '',
  }
}
