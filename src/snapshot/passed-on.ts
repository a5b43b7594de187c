/**
 * What the gateways of networks pass on by SNI (docs/resources.md, G6). The listeners of gateways and the endpoints that lead to them (E4) are
 * made by the same rule, so that no caller is led to a gateway that refuses its calls.
 */
import type { Endpoint, Service } from '../../protocols/data.ts'
import { type GatewayServer, type GatewaySpec, gateway as gatewayKind } from '../config/kinds/gateway.ts'
import { splitServerHost } from '../model/gateway-ports.ts'
import { sameItems } from '../model/lists.ts'
import { hostCovers, labelsMatch } from '../model/match.ts'
import { portOf } from '../model/workload.ts'
import { isClusterLocal } from './cluster-local.ts'
import type { Gateway } from './objects.ts'
import type { MeshSnapshot, NetworkGateway, NetworkGateways, PassedOn, ServerHost, Settings } from './snapshot.ts'
import { visibleRule } from './visibility.ts'
import { choose, type Visible } from './visible-services.ts'

/** Returns the hosts of a server of a Gateway with their namespaces. */
export const serverHosts = ({ hosts }: GatewayServer, { namespace }: Gateway): readonly ServerHost[] =>
  hosts.map((host) => splitServerHost(host, namespace))

/** Whether a server passes mutual TLS of the mesh on, to the service that the SNI names. */
export const passesMeshTls = ({ tls }: GatewayServer): boolean => tls?.mode === 'AUTO_PASSTHROUGH'

/** Whether a Gateway selects a workload. `isScoped`: those of other namespaces do not (`PILOT_SCOPE_GATEWAY_TO_NAMESPACE`). */
export const selectsWorkload = (
  gateway: Gateway,
  { namespace, labels }: { readonly namespace: string; readonly labels: Readonly<Record<string, string>> },
  isScoped: boolean,
): boolean => (!isScoped || gateway.namespace === namespace) && labelsMatch(gatewayKind.selects.labels(gateway.spec as GatewaySpec), labels)

/** The Gateways among others that have a server with AUTO_PASSTHROUGH. */
export const passingGateways = (gateways: readonly Gateway[]): readonly Gateway[] =>
  gateways.filter(({ spec }) => spec.servers.some((server) => passesMeshTls(server)))

/**
 * Returns what the workloads of a service pass on that come to them by a port of the service, by the Gateways that select them; undefined where
 * none has a server with AUTO_PASSTHROUGH for the port, so that what they pass on is not known here. While a service has no endpoints, its selector stands for them.
 */
export function passedOnBy(
  service: Service,
  endpoints: readonly Pick<Endpoint, 'labels' | 'ports'>[],
  number: number,
  gateways: readonly Gateway[],
  isScoped: boolean,
): PassedOn | undefined {
  const { namespace, selector = {}, ports } = service
  const port = ports.find((each) => each.number === number)
  if (!port || gateways.length === 0) return undefined
  const given = endpoints.length > 0 ? endpoints : [{ labels: selector, ports: {} }]
  // Most pods of a gateway have the same labels.
  const workloads = new Map(
    given.map(({ labels, ports: targets }) => [JSON.stringify([labels, targets]), { labels, target: portOf({ ports: targets }, port) }]),
  )
  const servers = new Map<GatewayServer, Gateway>()
  for (const { labels, target } of workloads.values()) {
    const listens = ({ port: { number: own, targetPort } }: GatewayServer) => (targetPort ? targetPort === target : own === number || own === target)
    for (const gateway of gateways) {
      if (!selectsWorkload(gateway, { namespace, labels }, isScoped)) continue
      for (const server of gateway.spec.servers) if (passesMeshTls(server) && listens(server)) servers.set(server, gateway)
    }
  }
  if (servers.size === 0) return undefined
  const before = known.get(service)
  if (before && sameItems(before.servers, [...servers.keys()])) return before.passedOn
  const names = new Set([...servers.values()].map((gateway) => `${gateway.namespace}/${gateway.name}`))
  const passedOn = { namespace, gateways: [...names], hosts: [...servers].flatMap(([server, gateway]) => serverHosts(server, gateway)) }
  known.set(service, { servers: [...servers.keys()], passedOn })
  return passedOn
}

/** By service what it passes on, and the servers that say so. It is the same object while these are the same. */
const known = new WeakMap<Service, { readonly servers: readonly GatewayServer[]; readonly passedOn: PassedOn }>()

/** Whether the hosts of a server cover a service. */
export function coversService(hosts: readonly ServerHost[], service: Service): boolean {
  const found = covered.get(hosts) ?? new WeakMap<Service, boolean>()
  covered.set(hosts, found)
  const { namespace: own, hostname } = service
  const isCovered = found.get(service) ?? hosts.some(({ namespace, host }) => (namespace === '*' || namespace === own) && hostCovers(host, hostname))
  found.set(service, isCovered)
  return isCovered
}

/** By the hosts of servers whether they cover services, which is asked for each slice and subset. */
const covered = new WeakMap<readonly ServerHost[], WeakMap<Service, boolean>>()

/** Whether a service has a host with a star, which no SNI names. */
export const isWildcardHost = ({ hostname }: Service): boolean => hostname.startsWith('*')

/** What is looked at of a mesh to say what gateways pass on. */
export interface PassingMesh extends Pick<MeshSnapshot, 'mesh'> {
  readonly settings: Pick<Settings, 'domain'>
  /** The services by host, the oldest first. */
  readonly services: { get(host: string): readonly Visible[] | undefined }
}

/** Why a server with AUTO_PASSTHROUGH and some hosts passes no call of a service on that its namespace sees; undefined: it passes them on. */
export function refusalByHosts(hosts: readonly ServerHost[], service: Service, mesh: PassingMesh): string | undefined {
  if (service.external) return 'the service is outside of the mesh'
  if (isWildcardHost(service)) return 'its host is a wildcard'
  if (!coversService(hosts, service)) return 'no host of their servers covers it'
  return isClusterLocal(service.hostname, mesh) ? 'its host is local to clusters (E11)' : undefined
}

/** Why the proxies of a gateway pass no call of a service on; undefined: they do. */
export function refusalOf({ namespace, gateways, hosts }: PassedOn, service: Service, mesh: PassingMesh): string | undefined {
  const byHosts = refusalByHosts(hosts, service, mesh)
  if (byHosts !== undefined) return `${byHosts} (Gateway ${gateways.join(', ')})`
  const seen = choose(mesh.services.get(service.hostname), namespace, mesh.mesh)
  if (!seen) return `their namespace ${namespace} does not see it (exportTo)`
  if (seen.service.namespace === service.namespace) return undefined
  return `their namespace ${namespace} sees the service of the namespace ${seen.service.namespace} instead`
}

/** Why a gateway passes no call of a service and subset (empty: of the whole service) on; undefined: it does, or what it passes on is not known here. */
function refusal({ passedOn }: NetworkGateway, service: Service, subset: string, snapshot: MeshSnapshot): string | undefined {
  if (!passedOn) return undefined
  const ofWhole = refusalOf(passedOn, service, snapshot)
  if (ofWhole !== undefined) return ofWhole
  const { namespace } = passedOn
  if (subset === '' || visibleRule(snapshot, service, namespace)?.subsets.some(({ name }) => name === subset)) return undefined
  return `their namespace ${namespace} sees no DestinationRule with the subset ${subset}`
}

/**
 * Returns, of the gateways of all networks, those that pass calls of a service and subset (empty: of the whole service) on. A network and
 * cluster for which none does has an empty list: gateways stand for its endpoints, and do not lead to them.
 */
export function gatewaysTo(service: Service, subset: string, snapshot: MeshSnapshot): NetworkGateways {
  const { networkGateways } = snapshot
  const passes = (gateway: NetworkGateway) => refusal(gateway, service, subset, snapshot) === undefined
  if ([...networkGateways.values()].every((ofNetwork) => [...ofNetwork.values()].every((gateways) => gateways.every(passes)))) return networkGateways
  return new Map(
    Array.from(networkGateways, ([network, ofNetwork]) => [
      network,
      new Map(Array.from(ofNetwork, ([cluster, gateways]) => [cluster, gateways.filter(passes)] as const)),
    ]),
  )
}

/** Why none of some gateways passes calls of a service and subset (empty: of the whole service) on; undefined: one of them does. */
export function refusalByAll(gateways: readonly NetworkGateway[], service: Service, subset: string, snapshot: MeshSnapshot): string | undefined {
  const reasons = gateways.map((gateway) => refusal(gateway, service, subset, snapshot))
  return reasons.includes(undefined) ? undefined : [...new Set(reasons)].sort().join('; ')
}
