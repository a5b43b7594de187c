/** Which objects a refused resource is made from, by its name: those that its fault names where no patch is the cause. */
import { configKey } from '../../config/kinds.ts'
import { serviceKey } from '../../snapshot/objects.ts'
import type { View } from '../../snapshot/view.ts'
import { hostOf } from '../../xds/names.ts'
import type { ProxyClass } from '../../xds/traits.ts'
import { clusterType, endpointType, listenerType, routeType } from '../../xds/type-urls.ts'
import type { RefusedResource } from './refusals.ts'

/** The maximum number of objects that a fault names. */
const mostObjects = 20

/** What is known of a proxy that refused resources of a type. */
interface Refuser {
  readonly type: string
  readonly proxyClass: ProxyClass
  readonly view: View
  /** Keys of the policies, Gateways and Sidecar that select it. */
  readonly selecting: readonly string[]
}

/**
 * Finds the objects of a refused resource: of clusters and endpoints of a destination its service and rule; of an outbound listener, or of the routes
 * on a port of a sidecar, the services with the port; of any other those that select the proxy, and its own services.
 */
export function refusedObjects({ type, proxyClass, view, selecting }: Refuser): (resource: RefusedResource) => string[] {
  let known: ReadonlyMap<number, readonly string[]> | undefined
  const onPort = (port: number): readonly string[] => {
    known ??= keysByPort(view)
    return known.get(port) ?? []
  }
  const isOfPort = ({ context }: RefusedResource) =>
    type === listenerType ? context === 'SIDECAR_OUTBOUND' : type === routeType && proxyClass.traits.type === 'sidecar'
  return (resource) => {
    const service = type === clusterType || type === endpointType ? view.service(hostOf(type, resource.name))?.service : undefined
    if (service) return [serviceKey(service), ...(view.ruleFor(service)?.sources ?? []).map(configKey)].slice(0, mostObjects)
    const there = isOfPort(resource) ? onPort(Number(/(\d+)$/.exec(resource.name)?.[1] ?? Number.NaN)) : []
    return there.length > 0 ? [...there] : [...new Set([...selecting, ...proxyClass.instances.map((instance) => serviceKey(instance.service))])]
  }
}

/** The services that a view has on each port. */
function keysByPort(view: View): ReadonlyMap<number, readonly string[]> {
  const found = new Map<number, string[]>()
  for (const { service } of view.services)
    for (const { number } of service.ports) {
      const there = found.get(number)
      if (!there) found.set(number, [serviceKey(service)])
      else if (there.length < mostObjects) there.push(serviceKey(service))
    }
  return found
}
