/** Networks (docs/resources.md, S7, S8): finds the network of an endpoint, and the gateways through which other networks reach it. */
import ipaddr from 'ipaddr.js'
import type { Endpoint, RegistryId, Service } from '../../protocols/data.ts'
import { isIp } from '../config/addresses.ts'
import type { MeshNetworks } from '../config/mesh-config.ts'
import { consequences, type ResourceFault } from '../model/faults.ts'
import { sameItems } from '../model/lists.ts'
import { portOf, servesPort, takingTraffic } from '../model/workload.ts'
import type { ServiceState, ServicesByHost } from '../registry/merged-services.ts'
import { type Gateway, serviceKey } from './objects.ts'
import { passedOnBy, passingGateways } from './passed-on.ts'
import type { NetworkGateway, NetworkGateways } from './snapshot.ts'
import type { SystemNetworks } from './system-networks.ts'

/** The default port of a gateway that forwards mutual TLS by SNI. */
export const sniPort = 15_443

/** The largest number of gateways of other clusters whose refusal is told. */
const mostRefused = 20

/** Whose networks are whose: those that clusters have by the label of their system namespace, and the id of the own cluster. */
export interface NetworkOwners {
  readonly system: SystemNetworks
  readonly own: string
}

/** The Gateways of the mesh, and whether they select workloads of their own namespace alone. */
export interface ConfiguredGateways {
  readonly gateways: readonly Gateway[]
  readonly isScoped: boolean
}

/**
 * Returns the gateways of each network: those given by address, the addresses outside of the cluster, or else the endpoints, of those given as
 * a service, and the services that say of themselves that they are gateways, where their cluster may (docs/resources.md, O12). Host names of gateways have to be resolved before. A gateway
 * without a usable address is reported as a fault.
 */
export function networkGateways(
  networks: MeshNetworks,
  services: ServicesByHost,
  labelled: readonly Service[] = [],
  owners: NetworkOwners = { system: new Map(), own: '' },
  configured: ConfiguredGateways = { gateways: [], isScoped: false },
): { gateways: NetworkGateways; faults: ResourceFault[] } {
  const found = new Map<string, Map<string, readonly NetworkGateway[]>>()
  const faults: ResourceFault[] = []
  const passing = passingGateways(configured.gateways)
  const withPassed = (of: readonly NetworkGateway[], service: Service, endpoints: readonly Endpoint[], port: number): readonly NetworkGateway[] => {
    const passedOn = passedOnBy(service, endpoints, port, passing, configured.isScoped)
    return passedOn ? of.map((gateway) => ({ ...gateway, passedOn })) : of
  }
  for (const [network, { gateways = [] }] of Object.entries(networks.networks ?? {})) {
    const usable = gateways.flatMap((gateway): NetworkGateway[] => {
      const report = (reason: string): NetworkGateway[] => {
        faults.push({ type: 'network', resource: network, objects: [], reason, consequence: consequences.leftOut })
        return []
      }
      const { address, registryServiceName: name, port = sniPort } = gateway
      if (address !== undefined) return isIp(address) ? [{ address, port }] : report(`gateway ${address}: not an IP address, and not resolved`)
      if (name === undefined) return report('a gateway has neither address nor registryServiceName')
      const states = services.get(name.toLowerCase())
      if (!states) return report(`gateway ${name}: there is no such service`)
      const entries = states.flatMap((state) => {
        const outside = state.service.outside ? outsideGateways(state.service, port).gateways : []
        return withPassed(outside.length > 0 ? outside : gatewaysOf(state, port), state.service, state.endpoints, port)
      })
      return entries.length > 0 ? entries : report(`gateway ${name}: the service has no IP address`)
    })
    if (usable.length > 0) found.set(network, new Map([['', usable]]))
  }
  let refused = 0
  for (const service of labelled) {
    const { network = '', port = sniPort } = service.outside?.gateway ?? {}
    const allowed = standsFor(service.cluster, network, networks, owners)
    if ('refusal' in allowed) {
      const reason = `gateway ${service.hostname} of the cluster ${service.cluster}: ${allowed.refusal}`
      if (++refused <= mostRefused)
        faults.push({ type: 'network', resource: network, objects: [serviceKey(service)], reason, consequence: consequences.leftOut })
      continue
    }
    const { gateways: outside, faults: own } = outsideGateways(service, port)
    const gateways = withPassed(outside, service, endpointsIn(service, services), port)
    faults.push(
      ...own.map((reason) => ({ type: 'network', resource: network, objects: [serviceKey(service)], reason, consequence: consequences.leftOut })),
    )
    const ofNetwork = found.get(network) ?? new Map<string, readonly NetworkGateway[]>()
    const known = ofNetwork.get(allowed.endpointsOf) ?? []
    const added = gateways.filter(({ address, port: at }) => !known.some((each) => each.address === address && each.port === at))
    if (added.length > 0) found.set(network, ofNetwork.set(allowed.endpointsOf, [...known, ...added]))
  }
  return { gateways: found, faults: [...faults, ...withoutGateways(found, owners)] }
}

/** Whether gateways are the same, with what they pass on. */
export function sameGateways(one: NetworkGateways, other: NetworkGateways): boolean {
  const facts = (gateways: NetworkGateways) =>
    [...gateways].flatMap(([network, ofNetwork]) =>
      [...ofNetwork].flatMap(([cluster, list]) => [
        network,
        cluster,
        list.length,
        ...list.flatMap(({ address, port, passedOn }) => [address, port, passedOn]),
      ]),
    )
  return sameItems(facts(one), facts(other))
}

/** What is told of clusters whose endpoints in a network no gateway stands for, while those of another cluster in it have some of their own. */
function withoutGateways(found: NetworkGateways, { system }: NetworkOwners): ResourceFault[] {
  return [...system].flatMap(([cluster, network]): ResourceFault[] => {
    const ofNetwork = found.get(network)
    if (!ofNetwork || ofNetwork.has(cluster) || ofNetwork.has('')) return []
    const reason = `no gateway stands for the endpoints of the cluster ${cluster === '' ? 'of this process' : cluster}; that of another cluster does where meshNetworks says that its cluster is in the network`
    return [{ type: 'network', resource: network, objects: [], reason, consequence: 'callers of other networks get their addresses' }]
  })
}

/** Returns the gateways that stand for the endpoints of a cluster in a network; undefined: there is none, and they keep their addresses. */
export function gatewaysFor(gateways: NetworkGateways, network: string, cluster: string): readonly NetworkGateway[] | undefined {
  const ofNetwork = gateways.get(network)
  return ofNetwork?.get(cluster) ?? ofNetwork?.get('')
}

/**
 * Whose endpoints in a network a service stands for that says of itself that it is a gateway of the network: those of all clusters (empty), or of
 * its own alone, or why of none. Another cluster than the own one decides by its labels about the traffic of its own endpoints only.
 */
function standsFor(
  cluster: string,
  network: string,
  { networks = {} }: MeshNetworks,
  { system, own }: NetworkOwners,
): { readonly endpointsOf: string } | { readonly refusal: string } {
  if (own === '' || cluster === '' || cluster === own) return { endpointsOf: '' }
  const isOf = (name: string) => networks[name]?.endpoints?.some(({ fromRegistry }) => fromRegistry === cluster) ?? false
  if (networks[network]?.gateways?.length) return { refusal: 'meshNetworks says what the gateways of the network are' }
  if (isOf(network)) return { endpointsOf: '' }
  if (Object.keys(networks).some(isOf)) return { refusal: 'by meshNetworks its cluster is in another network' }
  if (system.get(cluster) === network) return { endpointsOf: cluster }
  return { refusal: 'no label of the system namespace of its cluster says that the cluster is in the network' }
}

/** The addresses at which a service is reached from outside of its cluster, with the port there, and why some cannot be used. */
function outsideGateways({ hostname, outside, ports }: Service, port: number): { gateways: NetworkGateway[]; faults: string[] } {
  if (!outside) return { gateways: [], faults: [] }
  if (!ports.some(({ number }) => number === port)) return { gateways: [], faults: [`gateway ${hostname}: the service has no port ${port}`] }
  const odd = outside.addresses.filter((address) => !isIp(address))
  return {
    gateways: outside.addresses.flatMap((address) => (isIp(address) ? [{ address, port: outside.ports[port] ?? port }] : [])),
    faults: odd.map((address) => `gateway ${hostname}: its address ${address} is a host name, which endpoints cannot have`),
  }
}

/** The endpoints that the definition of a service in one cluster has there. */
function endpointsIn({ hostname, namespace, cluster }: Service, services: ServicesByHost): readonly Endpoint[] {
  const shards = services.get(hostname)?.find(({ service }) => service.namespace === namespace)?.shards ?? []
  return shards.flatMap((shard) => (shard.cluster === cluster ? shard.endpoints : []))
}

/** The addresses of a service that is a gateway, with the target port of its service port. */
function gatewaysOf({ service, endpoints }: ServiceState, number: number): NetworkGateway[] {
  const port = service.ports.find((known) => known.number === number)
  const usable = endpoints.filter((endpoint) => isIp(endpoint.address) && (!port || servesPort(endpoint, port)))
  return takingTraffic(usable).map((endpoint) => ({ address: endpoint.address, port: port ? portOf(endpoint, port) : number }))
}

type Rule = (address: string, registry: RegistryId) => boolean

const rules = new WeakMap<MeshNetworks, readonly (readonly [network: string, rule: Rule])[]>()

/**
 * Returns endpoints of a registry with their networks: the network that the endpoint names, otherwise the first whose CIDR contains the
 * address, otherwise that of the registry.
 */
export function withNetworks(endpoints: readonly Endpoint[], registry: RegistryId, networks: MeshNetworks): readonly Endpoint[] {
  let known = rules.get(networks)
  if (!known) rules.set(networks, (known = rulesOf(networks)))
  if (known.length === 0) return endpoints
  const found = known
  return endpoints.map((endpoint) => {
    if (endpoint.network !== '') return endpoint
    const network = found.find(([, rule]) => rule(endpoint.address, registry))?.[0]
    return network === undefined ? endpoint : { ...endpoint, network }
  })
}

/** The rules that assign networks: CIDRs first, then registries, each in the order of the file. */
function rulesOf(networks: MeshNetworks): (readonly [string, Rule])[] {
  const given = Object.entries(networks.networks ?? {}).flatMap(([network, { endpoints = [] }]) =>
    endpoints.map((endpoint) => ({ network, ...endpoint })),
  )
  const cidrs = given.flatMap(({ network, fromCidr }): [string, Rule][] => {
    if (fromCidr === undefined) return []
    const [block, bits] = ipaddr.parseCIDR(fromCidr)
    return [[network, (address) => isIp(address) && within(ipaddr.parse(address), block, bits)]]
  })
  const registries = given.flatMap(({ network, fromRegistry }): [string, Rule][] =>
    fromRegistry === undefined || fromRegistry === ''
      ? []
      : [[network, (_, { provider, cluster }) => fromRegistry === cluster || fromRegistry === provider]],
  )
  return [...cidrs, ...registries]
}

const within = (address: ipaddr.IPv4 | ipaddr.IPv6, block: ipaddr.IPv4 | ipaddr.IPv6, bits: number): boolean =>
  address.kind() === block.kind() && address.match(block, bits)
