/** The addresses at which Ingresses are reached, for their status (docs/resources.md, I7). */
import type { IngressSettings } from '../../protocols/messages/identity.ts'
import { compare } from '../model/order.ts'
import { gatewayLabels, ingressServices } from '../names/mesh-names.ts'
import type { ClusterRegistry } from './cluster-registry.ts'
import { gatewayLabel } from './ingress-conversion.ts'

/**
 * Returns the addresses, sorted: those of load balancers and the external ones of the Service of the settings; without one, those of the nodes of
 * the gateways' pods. Undefined where the Service does not exist: then nothing is known. `namespace`: that of the gateways.
 */
export function ingressAddresses(registry: ClusterRegistry, settings: IngressSettings, namespace: string): readonly string[] | undefined {
  const { service } = settings
  if (service === '') {
    const label = gatewayLabel(settings)
    return sorted(registry.nodeAddresses(namespace, (labels) => gatewayLabels.some((name) => labels[name] === label)))
  }
  const names = ingressServices.includes(service) ? [service, ...ingressServices] : [service]
  const found = names.map((name) => registry.service(`${namespace}/${name}`)).find((each) => each !== undefined)
  if (!found) return undefined
  return sorted(found.externalName === '' ? found.outside.addresses : [found.externalName])
}

const sorted = (addresses: readonly string[]): string[] => [...new Set(addresses)].sort(compare)
