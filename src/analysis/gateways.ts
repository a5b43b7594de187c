/** Finds Gateways whose certificates are not there, and ports that nobody reaches. */
import type { ConfigObject } from '../../protocols/data.ts'
import type { GatewaySpec } from '../config/kinds/gateway.ts'
import { checkServerSecrets } from './credentials.ts'
import type { Tell } from './finding.ts'
import { checkSharedPorts } from './gateway-ports.ts'
import { listed, serves, tellNoNamespace } from './references.ts'
import type { World } from './world.ts'

/** Tells what is wrong with a Gateway. */
export function analyzeGateway(gateway: ConfigObject<GatewaySpec>, world: World, tell: Tell): void {
  checkHostNamespaces(gateway, world, tell)
  checkPorts(gateway, world, tell)
  checkSharedPorts(gateway, world, tell)
  checkServerSecrets(gateway, world, tell)
}

/** Tells hosts that are for the routes of a namespace that does not exist. */
function checkHostNamespaces({ spec }: ConfigObject<GatewaySpec>, world: World, tell: Tell): void {
  for (const [server, { hosts }] of spec.servers.entries())
    for (const [index, host] of hosts.entries()) {
      const owner = host.includes('/') ? host.slice(0, host.indexOf('/')) : '*'
      if (owner !== '*' && owner !== '.')
        tellNoNamespace(owner, ', so it has no routes', { at: `spec.servers[${server}].hosts[${index}]`, world, tell })
    }
}

/** Tells ports that no Service of the selected workloads has. Without such a Service its workloads are reached by other ways. */
function checkPorts({ spec }: ConfigObject<GatewaySpec>, world: World, tell: Tell): void {
  const { selector = {}, servers } = spec
  if (Object.keys(selector).length === 0) return
  const workloads = world.workloads(selector, undefined) ?? []
  const namespaces = [...new Set(workloads.map(({ namespace }) => namespace))]
  const services = namespaces.flatMap((namespace) =>
    world
      .servicesIn(namespace)
      .filter((service) => workloads.some((workload) => workload.namespace === namespace && serves(service, workload.labels))),
  )
  if (services.length === 0) return
  const ports = services.flatMap((service) => service.ports)
  // A named port of the workload may be any.
  if (ports.some(({ targetName }) => targetName)) return
  const numbers = new Set(ports.flatMap(({ number, targetPort }) => [number, targetPort || number]))
  for (const [index, { port }] of servers.entries())
    if (!numbers.has(port.number))
      tell(
        'IST0104',
        `spec.servers[${index}].port.number`,
        `the Service ${listed(services.map(({ name }) => name))} of the selected workloads has no port ${port.number}, so no connection arrives there`,
      )
}
