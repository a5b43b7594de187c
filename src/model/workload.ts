/** A proxy's own workload: the service ports that it serves, and its labels. */
import type { Endpoint, Pod, ProxyNode, Service, ServicePort } from '../../protocols/data.ts'

/** One port of a service that the workload serves. */
export interface ServiceInstance {
  readonly service: Service
  readonly port: ServicePort
  readonly endpoint: Endpoint
  /** The port that the workload listens on. */
  readonly targetPort: number
}

/** The host of a service that a workload serves at a port (0: at any); empty: there is none. */
export const servedHost = (instances: readonly ServiceInstance[], port: number): string =>
  instances.find(({ service, targetPort }) => (port === 0 || targetPort === port) && !service.hostname.startsWith('*'))?.service.hostname ?? ''

/**
 * Returns the labels of a proxy (docs/resources.md, O2): those of its pod; where no pod is known, those of its node metadata; otherwise those
 * of its first instance's endpoint.
 */
export function proxyLabels(
  node: ProxyNode,
  instances: readonly ServiceInstance[],
  pod: Pick<Pod, 'labels'> | undefined,
): Readonly<Record<string, string>> {
  return pod?.labels ?? node.labels ?? instances[0]?.endpoint.labels ?? {}
}

/** Whether an endpoint serves a service port. */
export const servesPort = ({ serves }: Pick<Endpoint, 'serves'>, { name }: ServicePort): boolean => serves?.includes(name) ?? true

/**
 * Returns the endpoints that take traffic of those that could serve it (docs/resources.md, E9): the ready ones, and if there is none, those
 * that terminate.
 */
export function takingTraffic(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  if (endpoints.every(isReady)) return endpoints
  const ready = endpoints.filter(isReady)
  return ready.length > 0 ? ready : endpoints.filter(({ readiness }) => readiness === 'terminating')
}

const isReady = ({ readiness }: Endpoint): boolean => readiness === undefined || readiness === 'ready'

/** The port on which an endpoint serves a service port. */
export function portOf(endpoint: Pick<Endpoint, 'ports'>, port: ServicePort): number {
  // Port names are chosen by users and may be the name of a property that every object inherits.
  return (Object.hasOwn(endpoint.ports, port.name) ? endpoint.ports[port.name] : undefined) ?? (port.targetPort || port.number)
}
