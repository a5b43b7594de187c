/** What a proxy's own workload is: the service ports it serves, and its labels. */
import type { Endpoint, ProxyNode, Service, ServicePort } from '../../protocols/data.ts'

/** One port of a service that the workload serves. */
export interface ServiceInstance {
  readonly service: Service
  readonly port: ServicePort
  readonly endpoint: Endpoint
  /** Port the workload listens on. */
  readonly targetPort: number
}

/** The labels of a proxy: its node metadata's, else those of its first instance. */
export function proxyLabels(node: ProxyNode, instances: readonly ServiceInstance[]): Readonly<Record<string, string>> {
  return node.labels ?? instances[0]?.endpoint.labels ?? {}
}

/** Whether an endpoint serves a service port. */
export const servesPort = ({ serves }: Pick<Endpoint, 'serves'>, { name }: ServicePort): boolean => serves?.includes(name) ?? true

/** Port on which an endpoint serves a service port. */
export function portOf(endpoint: Pick<Endpoint, 'ports'>, port: ServicePort): number {
  // Names of ports are users': one may be the name of something that every object has.
  return (Object.hasOwn(endpoint.ports, port.name) ? endpoint.ports[port.name] : undefined) ?? (port.targetPort || port.number)
}
