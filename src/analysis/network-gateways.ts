/** Finds services that callers of other networks do not reach, because a gateway of the network does not pass them on (docs/resources.md, G6). */
import type { Service } from '../../protocols/data.ts'
import type { Workload } from '../../protocols/messages/analysis.ts'
import { isClusterLocal } from '../snapshot/cluster-local.ts'
import { sniPort } from '../snapshot/networks.ts'
import type { Gateway } from '../snapshot/objects.ts'
import { isWildcardHost, type PassingMesh, passedOnBy, passesMeshTls, passingGateways, refusalOf, selectsWorkload } from '../snapshot/passed-on.ts'
import type { PassedOn } from '../snapshot/snapshot.ts'
import { allGateways } from './claims.ts'
import type { Tell } from './finding.ts'
import { peerMode } from './peer-modes.ts'
import { listed, selectorOf, someWorkload } from './references.ts'
import { declaredPorts, targetOf } from './workload-ports.ts'
import type { World } from './world.ts'

/** A network that a service is a gateway of, and the service port of the gateway. */
interface GatewayPort {
  readonly network: string
  readonly port: number
}

/**
 * Tells which services of its cluster a gateway of a network does not pass on, once for each reason. What other namespaces do not see, or what the mesh
 * configuration keeps in its cluster, is meant so. Nothing is told while there may be one network only.
 */
export function checkPassedOn(gateway: Service, world: World, tell: Tell): void {
  const ports = gatewayPorts(gateway, world)
  if (ports.length === 0 || !world.isRead('Gateway')) return
  const all = world.hosts().flatMap((host) => world.services(host))
  const networks = new Set([...world.mesh.networks, ...all.flatMap((service) => gatewayPorts(service, world).map(({ network }) => network))])
  if (networks.size < 2 && !world.hasOtherClusters) return
  for (const { network, port } of ports) {
    const passedOn = passedBy(gateway, port, world)
    if (typeof passedOn === 'string')
      tell(
        'MESH0016',
        '',
        `the gateway of the network ${network} passes nothing on, so callers of other networks reach no service behind it: ${passedOn}`,
      )
    if (typeof passedOn !== 'object') continue
    for (const [reason, services] of Map.groupBy(wanted(gateway, all, world), (service) => refusalIn(passedOn, service, world)))
      if (reason !== undefined)
        tell(
          'MESH0016',
          '',
          `the gateway of the network ${network} does not pass ${listed(services.map(({ hostname }) => hostname).sort())} on, so callers of other networks do not reach ${services.length === 1 ? 'it' : 'them'}: ${reason}`,
        )
  }
}

/** The networks that a service is a gateway of: by its label, and by the networks of the mesh. */
function gatewayPorts({ hostname, outside }: Service, { mesh }: World): readonly GatewayPort[] {
  const named = mesh.gatewayHosts.filter(({ host }) => host.toLowerCase() === hostname).map(({ network, port = sniPort }) => ({ network, port }))
  return outside?.gateway ? [outside.gateway, ...named] : named
}

/** What the workloads of a gateway pass on that come to them by a port; a string: why nothing; undefined: it is not known. */
function passedBy(gateway: Service, number: number, world: World): PassedOn | string | undefined {
  const port = gateway.ports.find((each) => each.number === number)
  const selector = selectorOf(gateway)
  const workloads = selector && world.workloads(selector, gateway.namespace)
  if (!port || !workloads?.length) return undefined
  const endpoints = workloads.map((workload) => ({ labels: workload.labels, ports: portsOf(workload, port) }))
  const gateways = world.claimants(allGateways) as readonly Gateway[]
  world.spend(gateways.length * workloads.length)
  const passedOn = passedOnBy(gateway, endpoints, number, passingGateways(gateways), world.mesh.scopesGateways)
  return passedOn ?? otherMode(gateway, workloads, number, gateways, world)
}

/** The port of a workload that a port of its service leads to by name. */
function portsOf(workload: Workload, port: Service['ports'][number]): Readonly<Record<string, number>> {
  const declared = port.targetName ? declaredPorts([workload]) : undefined
  const target = declared && targetOf(port, declared)
  return target === undefined ? {} : { [port.name]: target }
}

/** Why workloads pass nothing on at a port that is one of a server with another TLS mode. */
function otherMode(
  { namespace }: Service,
  workloads: readonly Workload[],
  number: number,
  gateways: readonly Gateway[],
  { mesh }: World,
): string | undefined {
  for (const gateway of gateways) {
    const server = gateway.spec.servers.find((each) => each.port.number === number && !passesMeshTls(each))
    if (server && workloads.some(({ labels }) => selectsWorkload(gateway, { namespace, labels }, mesh.scopesGateways)))
      return `the server of Gateway ${gateway.namespace}/${gateway.name} at the port ${number} has ${server.tls?.mode ? `tls.mode ${server.tls.mode}` : 'no tls'}, and only AUTO_PASSTHROUGH passes the services of the mesh on`
  }
  return undefined
}

/** The services of the cluster of a gateway that callers of other networks may want: with workloads, and seen by other namespaces. */
function wanted(gateway: Service, all: readonly Service[], world: World): Service[] {
  return all.filter((service) => {
    const { namespace, exportTo, cluster, external, hostname } = service
    if (external || cluster !== gateway.cluster || isWildcardHost(service)) return false
    const targets = exportTo.length > 0 ? exportTo : world.mesh.exportTo.services
    const isSeenByOthers = targets.some((target) => !['.', '~', namespace].includes(target))
    return isSeenByOthers && !isClusterLocal(hostname, meshOf(world)) && gatewayPorts(service, world).length === 0
  })
}

/** Why a gateway does not pass on a service that has workloads; undefined: it does, or there is nothing to pass on to. */
function refusalIn(passedOn: PassedOn, service: Service, world: World): string | undefined {
  const selector = selectorOf(service)
  if (!selector) return undefined
  const reason = refusalOf(passedOn, service, meshOf(world)) ?? refusalByMode(service, selector, world)
  return reason !== undefined && someWorkload(selector, service.namespace, world) === true ? reason : undefined
}

function refusalByMode({ namespace }: Service, selector: Readonly<Record<string, string>>, world: World): string | undefined {
  const { mode, policy } = peerMode(namespace, selector, world) ?? {}
  return policy && mode === 'DISABLE'
    ? `PeerAuthentication ${policy.namespace}/${policy.name} disables mutual TLS, which gateways of networks require (E4)`
    : undefined
}

const meshOf = (world: World): PassingMesh => ({
  mesh: world.mesh.config,
  settings: { domain: world.domain },
  services: { get: (host) => world.services(host).map((service) => ({ service })) },
})
