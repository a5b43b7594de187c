/** Finds what matches of EnvoyFilters name and no proxy has, where that follows from services, rules and Gateways (docs/analysis.md, Y20). */
import type { ConfigObject } from '../../protocols/data.ts'
import type { ConfigPatch, EnvoyFilterSpec } from '../config/kinds/envoy-filter.ts'
import { suggestion } from '../model/edit-distance.ts'
import { gatewayPath } from '../model/gateway-ports.ts'
import { completeHost } from '../model/match.ts'
import { routesOf } from './claims.ts'
import type { Tell } from './finding.ts'
import { hostSuggestion } from './near-hosts.ts'
import { isAbsent, subsetNames, tellMissing } from './references.ts'
import type { World } from './world.ts'

type Match = NonNullable<ConfigPatch['match']>

/** Tells the services, subsets, ports, virtual hosts and Gateways that patches name and that are not there. */
export function checkPatchMatches({ namespace, spec }: ConfigObject<EnvoyFilterSpec>, world: World, tell: Tell): void {
  for (const [index, { match = {} }] of (spec.configPatches ?? []).entries()) {
    const at = `spec.configPatches[${index}].match`
    if (match.cluster && !match.cluster.name) checkCluster(match.cluster, `${at}.cluster`, namespace, world, tell)
    if (match.routeConfiguration) checkRoutes(match, `${at}.routeConfiguration`, namespace, world, tell)
  }
}

function checkCluster({ service, subset, portNumber }: NonNullable<Match['cluster']>, at: string, namespace: string, world: World, tell: Tell): void {
  if (!service) return
  const services = world.services(service)
  if (services.length === 0) return tellNoService(service, `${at}.service`, 'so the patch changes no cluster', namespace, world, tell)
  const ports = services.flatMap((each) => each.ports)
  const numbers = new Set(ports.flatMap(({ number, targetPort }) => [number, targetPort || number]))
  if (portNumber && !numbers.has(portNumber) && !ports.some(({ targetName }) => targetName))
    tell(
      'IST0101',
      `${at}.portNumber`,
      `the service ${service} has no port ${portNumber}, only ${[...numbers].join(', ')}, so the patch changes no cluster`,
    )
  if (!subset || !world.isRead('DestinationRule')) return
  const subsets = subsetNames(service, world)
  if (!subsets.has(subset))
    tell(
      'IST0101',
      `${at}.subset`,
      `no DestinationRule defines a subset ${JSON.stringify(subset)} of ${service}, so the patch changes no cluster`,
      () => suggestion(subset, subsets),
    )
}

/** Tells a Gateway that is not there, and a virtual host of a service that is not there. Gateways and inbound ports have virtual hosts of other names. */
function checkRoutes({ context, routeConfiguration }: Match, at: string, namespace: string, world: World, tell: Tell): void {
  const { gateway, vhost } = routeConfiguration ?? {}
  if (gateway) {
    const path = gatewayPath(gateway, namespace)
    if (!world.object('Gateway', path) && world.isRead('Gateway', path.slice(0, path.indexOf('/'))))
      tellMissing('Gateway', path, ', so the patch changes no route', { at: `${at}.gateway`, world, tell })
  }
  const host = vhost?.name?.replace(/:\d+$/, '')
  if (!host?.endsWith(`.svc.${world.domain}`) || context !== 'SIDECAR_OUTBOUND') return
  if (world.services(host).length === 0 && world.claimants(routesOf(host)).length === 0)
    tellNoService(host, `${at}.vhost.name`, 'so the patch changes no virtual host', namespace, world, tell)
}

/** Tells a service that is not there. Matches have hosts in full. */
function tellNoService(host: string, at: string, consequence: string, namespace: string, world: World, tell: Tell): void {
  if (!isAbsent(host, world)) return
  const full = completeHost(host, namespace, world.domain)
  tell('IST0101', at, `there is no service ${host}, ${consequence}`, () =>
    full !== host && world.services(full).length > 0 ? `; did you mean ${JSON.stringify(full)}?` : hostSuggestion(host, namespace, world),
  )
}
