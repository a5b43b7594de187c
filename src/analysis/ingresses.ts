/** Finds Ingresses whose backends are not there. */
import type { IngressBackend, Resource } from '../../protocols/messages/analysis.ts'
import { suggestion } from '../model/edit-distance.ts'
import type { Tell } from './finding.ts'
import type { World } from './world.ts'

/** Tells the Services and ports of an Ingress that do not exist. */
export function analyzeIngress({ namespace }: Resource, backends: readonly IngressBackend[], world: World, tell: Tell): void {
  const services = world.servicesIn(namespace)
  for (const { service: named, port, path } of backends) {
    const service = services.find(({ name }) => name === named)
    if (!service) {
      if (world.isRead('Service', namespace))
        tell(
          'IST0101',
          `${path}.service.name`,
          `there is no Service ${named} in the namespace ${namespace}, so requests are answered with an error`,
          () =>
            suggestion(
              named,
              services.map(({ name }) => name),
            ),
        )
      continue
    }
    if (port === undefined || service.ports.some(({ name, number }) => number === port || name === port)) continue
    const known = service.ports.map(({ name, number }) => (typeof port === 'string' ? name : number)).join(', ')
    tell(
      'IST0101',
      `${path}.service.port.${typeof port === 'string' ? 'name' : 'number'}`,
      `the Service ${named} has no port ${port}, only ${known || 'none'}, so requests are answered with an error`,
    )
  }
}
