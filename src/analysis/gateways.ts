/** Finds Gateways whose certificates are not there, and ports that nobody reaches. */
import type { ConfigObject } from '../../protocols/data.ts'
import type { GatewaySpec } from '../config/kinds/gateway.ts'
import { suggestion } from '../model/edit-distance.ts'
import type { Tell } from './finding.ts'
import { checkSharedPorts } from './gateway-ports.ts'
import { listed, serves } from './references.ts'
import type { World } from './world.ts'

/** Tells what is wrong with a Gateway. */
export function analyzeGateway(gateway: ConfigObject<GatewaySpec>, world: World, tell: Tell): void {
  checkPorts(gateway, world, tell)
  checkSharedPorts(gateway, world, tell)
  const { namespace, spec } = gateway
  if (!world.knowsSecrets || !world.isRead('Secret', namespace)) return
  const check = (at: string, name: string) => {
    if (world.hasSecret(`${namespace}/${name}`)) return
    const near = () => suggestion(name, world.secretsIn(namespace))
    tell('IST0101', at, `there is no Secret ${name} in the namespace ${namespace}, so the server takes no connections`, near)
  }
  for (const [index, { tls }] of spec.servers.entries()) {
    const at = `spec.servers[${index}].tls`
    if (tls?.credentialName) check(`${at}.credentialName`, tls.credentialName)
    for (const [number, name] of (tls?.credentialNames ?? []).entries()) check(`${at}.credentialNames[${number}]`, name)
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
