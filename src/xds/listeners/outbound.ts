/**
 * Outbound listeners of a sidecar: `envoy.config.listener.v3.Listener` for the services that its workload calls (docs/resources.md, L1 to
 * L9, L14).
 */
import { create } from '@bufbuild/protobuf'
import type { Protocol } from '../../../protocols/data.ts'
import { type Listener, ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { configKey } from '../../config/kinds.ts'
import { contain } from '../../model/faults.ts'
import { compare } from '../../model/order.ts'
import { isOpaqueTls, isServerFirst } from '../../model/protocol.ts'
import type { ServiceState } from '../../registry/merged-services.ts'
import { serviceKey } from '../../snapshot/objects.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import type { EgressListener, View } from '../../snapshot/view.ts'
import type { Draft, ListenerConflict, Problem } from '../draft.ts'
import { durationOf, endpointAddress, socketAddress } from '../message.ts'
import { blackHole, destinationCluster, outboundCluster, passthrough } from '../names.ts'
import { applies } from '../routes/matches.ts'
import { isBound, isRange, type PortUse } from '../routes/port-uses.ts'
import { hasHttpProxy, httpProxyRoute } from '../routes/sidecar-routes.ts'
import { listenerAccessLogs } from './access-log.ts'
import { type DistinctMatch, DistinctMatches } from './distinct-matches.ts'
import { acceptsHttp10, type Filter, httpConnectionManager, httpInspector, originalDst, tcpFilters, tlsInspector } from './filters.ts'
import { nameOf, ownListenerProblem, problemOf, type Share, type ShareInputs, sharesOf } from './listener-shares.ts'
import { besideWildcard, isOwnListener, otherWildcardOf, wildcardOf } from './own-addresses.ts'
import { tcpSettings, tcpTargets } from './tcp-targets.ts'

interface Chain {
  readonly name?: string
  readonly filterChainMatch?: DistinctMatch
  readonly filters: Filter[]
}

/** The inputs of outbound listeners. */
export interface OutboundInputs extends ShareInputs {
  readonly view: View
  readonly snapshot: MeshSnapshot
  readonly sourceLabels: Readonly<Record<string, string>>
  readonly namespace: string
}

/** A listener before it is made: its address and the filter chains of the services that share it. */
interface Plan {
  readonly bind: string
  readonly port: number
  readonly bindToPort: boolean
  readonly egress: EgressListener
  /** The route configuration of the HTTP chain; undefined if there is no such chain. */
  routes: string | undefined
  readonly httpProtocols: Set<Protocol>
  /** Whether a service on it may use a server-first protocol, which rules out protocol detection. */
  serverFirst: boolean
  readonly tcp: Chain[]
  readonly matches: DistinctMatches
  /** Ids of the objects whose services are on it. */
  readonly objects: Set<string>
  /** The hosts of the services with filter chains in it. */
  readonly hosts: Set<string>
  /** The fault of a service on it. */
  partialFault: Draft<Listener>['partialFault']
}

/** A selection of listeners by name, with the services that are needed to make them. */
export interface ListenerChoice {
  readonly names: ReadonlySet<string>
  /** All services that have a share in one of the listeners, in order of precedence; of a listener for HTTP only, one for each protocol. */
  readonly services: readonly ServiceState[]
  /** Whether the view has a listener of a name, chosen or not. */
  has(name: string): boolean
}

/**
 * Returns all outbound listeners of a view, or the chosen ones: TCP before HTTP, each sorted by name; the catch-all listener for redirected
 * connections is last.
 */
export function outboundListeners(
  inputs: OutboundInputs,
  chosen?: ListenerChoice,
): { listeners: Draft<Listener>[]; conflicts: ListenerConflict[]; problems: Problem[] } {
  const conflicts: ListenerConflict[] = []
  const problems: Problem[] = []
  const plans = new Map<string, Plan>()
  for (const egress of inputs.view.egress) {
    const isOpened = isBound(egress, inputs.traits.interception)
    for (const state of chosen ? chosen.services : egress.services) {
      const report = (problem: Problem) => {
        // Those of chosen listeners are reported with what their services contribute.
        if (!chosen) problems.push(problem)
      }
      contain(
        () => {
          for (const share of sharesOf(state, egress, inputs)) {
            if (chosen && !chosen.names.has(nameOf(share))) continue
            if (isOwnListener(share.bind, share.port.number, isOpened, inputs.snapshot, inputs.traits)) report(ownListenerProblem(state, share))
            else addShare(plans, share, egress, state, inputs, conflicts)
          }
        },
        (reason) => report(problemOf(state, reason)),
      )
    }
  }
  const sorted = [...plans.entries()].sort(
    ([one, a], [other, b]) => Number(a.routes !== undefined) - Number(b.routes !== undefined) || compare(one, other),
  )
  const sidecar = inputs.view.sidecar ? [configKey(inputs.view.sidecar)] : []
  const listeners = sorted.map(
    ([name, plan]): Draft<Listener> => ({
      name,
      objects: () => [...sidecar, ...plan.objects],
      partialFault: plan.partialFault,
      make: () =>
        listenerOf(
          name,
          plan,
          inputs,
          addressesBeside(plan, (other) => plans.has(other) || (chosen?.has(other) ?? false), inputs),
        ),
    }),
  )
  return { listeners: chosen ? listeners : [...listeners, ...listenersOfNoService(inputs, () => sidecar)], conflicts, problems }
}

/** Returns the listeners that belong to no service: the catch-all one and that of the HTTP proxy. `objects` are those of the view. */
export function listenersOfNoService(inputs: OutboundInputs, objects: () => string[]): Draft<Listener>[] {
  const { mesh } = inputs.snapshot
  if (inputs.traits.interception === 'NONE' || mesh.proxyListenPort === 0) return []
  const last: Draft<Listener> = { name: 'virtualOutbound', objects, make: () => virtualOutbound(inputs) }
  if (!hasHttpProxy(inputs.snapshot, inputs.traits)) return [last]
  return [{ name: httpProxyName(inputs), objects, make: () => httpProxyListener(inputs) }, last]
}

function planAt(plans: Map<string, Plan>, egress: EgressListener, name: string, { bind, port }: Share, inputs: OutboundInputs): Plan {
  const known = plans.get(name)
  if (known) return known
  const bindToPort = isBound(egress, inputs.traits.interception)
  const plan: Plan = {
    bind,
    port: port.number,
    bindToPort,
    egress,
    routes: undefined,
    httpProtocols: new Set(),
    serverFirst: false,
    tcp: [],
    matches: new DistinctMatches(),
    objects: new Set(),
    hosts: new Set(),
    partialFault: undefined,
  }
  plans.set(name, plan)
  return plan
}

/** Adds the contribution of a service port to its listener. */
function addShare(
  plans: Map<string, Plan>,
  share: Share,
  egress: EgressListener,
  state: ServiceState,
  inputs: OutboundInputs,
  conflicts: ListenerConflict[],
): void {
  const sniffing = inputs.snapshot.settings.features.PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_OUTBOUND
  const { port, kind, at, route } = share
  const key = nameOf(share)
  const claim = { view: inputs.view.id, key, listener: key, host: state.service.hostname, object: serviceKey(state.service) }
  const plan = planAt(plans, egress, key, share, inputs)
  if (kind === 'http') {
    if (!egress.port && plan.tcp.length > 0 && (!sniffing || plan.serverFirst)) {
      conflicts.push({ kind: 'http_over_current_tcp', ...claim })
      return
    }
    plan.routes ??= route?.name
    plan.httpProtocols.add(port.protocol)
    return
  }
  if (!egress.port && plan.routes !== undefined && (!sniffing || isServerFirst(port.protocol))) {
    conflicts.push({ kind: 'tcp_over_current_http', ...claim })
    return
  }
  const isWhole = addTcp(plan, state, { at, port }, inputs)
  const isOwn = ![...plan.hosts].some((host) => host !== claim.host)
  plan.hosts.add(claim.host)
  if (!isWhole) conflicts.push({ kind: 'tcp_over_current_tcp', ...claim, key: `${plan.bind}_${plan.port}`, isOwn })
  plan.serverFirst ||= isServerFirst(port.protocol)
  if (kind !== 'sniffed' || plan.serverFirst) return
  plan.routes ??= route?.name
}

/** The use of a service port for TCP, and the kind of address. */
type TcpUse = Pick<PortUse, 'at' | 'port'>

/**
 * Adds the filter chains of a service port: those of its VirtualServices, else one to the service itself. Returns whether they match all
 * that they claim: what another service claimed before is left out.
 */
function addTcp(plan: Plan, state: ServiceState, use: TcpUse, inputs: OutboundInputs): boolean {
  let isWhole = true
  const { service } = state
  const key = serviceKey(service)
  plan.objects.add(key)
  const chains = contain(
    () => tcpChains(plan.egress, state, use, inputs),
    (reason) => {
      const virtualServices = plan.egress.virtualServices.covering(service.hostname)
      plan.partialFault = { objects: [key, ...virtualServices.map(({ source }) => configKey(source))], reason }
      return []
    },
  )
  // The original destination is known for redirected connections only.
  const isShared = !plan.bindToPort && (use.at === 'shared' || (use.at === 'egress' && plan.egress.bind === ''))
  const cidrs = isShared ? service.addresses.filter((address) => (use.at === 'shared' ? isRange(address) : address !== '0.0.0.0')) : []
  for (const chain of chains) {
    const wanted: DistinctMatch = {
      ...chain.match,
      ...(cidrs.length > 0 && !chain.match.prefixRanges?.length ? { prefixRanges: cidrs.map(cidrOf) } : {}),
    }
    const match = chain.isFallback && !plan.matches.isFree(wanted) ? undefined : plan.matches.take(wanted)
    if (match !== wanted && !chain.isFallback) isWhole = false
    if (!match) continue
    plan.tcp.push({ filterChainMatch: match, filters: chain.filters })
  }
  return isWhole
}

interface TcpChain {
  readonly match: DistinctMatch
  readonly filters: Filter[]
  /** Whether the chain is added only if no other chain has its match. */
  readonly isFallback?: boolean
}

/** The `gateways` value of callers that are not gateways. */
const callersInMesh: ReadonlySet<string> = new Set(['mesh'])

function tcpChains(egress: EgressListener, state: ServiceState, { at, port }: TcpUse, inputs: OutboundInputs): TcpChain[] {
  const { service } = state
  const { snapshot, traits } = inputs
  const statPrefix = outboundCluster(port.number, '', service.hostname)
  const chains: TcpChain[] = []
  const place = { gateways: callersInMesh, port: port.number, sourceLabels: inputs.sourceLabels, sourceNamespace: inputs.namespace }
  let caught = false
  for (const virtualService of egress.virtualServices.covering(service.hostname)) {
    if (isOpaqueTls(port.protocol)) {
      for (const route of virtualService.tls) {
        for (const match of route.match) {
          if (!applies(match, place)) continue
          chains.push({
            match: {
              ...(match.sniHosts.includes('*') ? {} : { serverNames: match.sniHosts, transportProtocol: 'tls' }),
              prefixRanges: (match.destinationSubnets ?? []).map(cidrOf),
            },
            filters: tcpFilters(statPrefix, tcpTargets(route.route, port.number, inputs.view), undefined, snapshot, traits),
          })
          caught = true
        }
      }
    }
    for (const route of virtualService.tcp) {
      const matches = route.match?.length ? route.match.filter((match) => applies(match, place)) : [{ destinationSubnets: [] as string[] }]
      for (const match of matches) {
        chains.push({
          match: { prefixRanges: (match.destinationSubnets ?? []).map(cidrOf) },
          filters: tcpFilters(statPrefix, tcpTargets(route.route, port.number, inputs.view), port.protocol, snapshot, traits),
        })
        if (!match.destinationSubnets?.length) caught = true
      }
    }
  }
  if (caught) return chains
  const target = { cluster: statPrefix, weight: 1, settings: tcpSettings(inputs.view, service, port.number) }
  const filters = tcpFilters(statPrefix, [target], port.protocol, snapshot, traits)
  const hasOwnPlace = at === 'egress' && (egress.bind !== '' || isBound(egress, traits.interception))
  const isMatchedByAddress = at === 'service' || at === 'pods' || (at === 'egress' && !hasOwnPlace && service.addresses.length > 0)
  const isNamed = isOpaqueTls(port.protocol) && !isMatchedByAddress
  if (isNamed) chains.push({ match: { serverNames: [service.hostname], transportProtocol: 'tls' }, filters })
  // On an egress listener with its own address or port, the first service also gets connections whose SNI matches no service.
  if (!isNamed || hasOwnPlace) chains.push({ match: {}, filters, isFallback: isNamed })
  return chains
}

function cidrOf(text: string) {
  const [addressPrefix = '', length] = text.split('/')
  return { addressPrefix, prefixLen: length === undefined ? (addressPrefix.includes(':') ? 128 : 32) : Number(length) }
}

/**
 * Returns the addresses that a listener has beside its own: at the wildcard address, that of the other family, unless a Sidecar binds
 * another listener there, since Envoy rejects a second listener at an address.
 */
function addressesBeside(plan: Plan, has: (name: string) => boolean, { traits, view }: OutboundInputs): ReturnType<typeof besideWildcard> {
  const other = otherWildcardOf(traits)
  if (other === undefined) return []
  const { ingress = [] } = view.sidecar?.spec ?? {}
  const isTaken = has(`${other}_${plan.port}`) || ingress.some(({ bind, port }) => bind === other && port.number === plan.port)
  return plan.bindToPort || isTaken || plan.bind !== wildcardOf(traits) ? [] : besideWildcard(traits, plan.port)
}

function listenerOf(name: string, plan: Plan, inputs: OutboundInputs, beside: ReturnType<typeof besideWildcard>): Listener | undefined {
  const { snapshot, traits } = inputs
  const chains: Chain[] = []
  // On the wildcard address, connections that are not HTTP may go to any destination.
  const isShared = plan.bind === wildcardOf(traits) && snapshot.settings.features.PILOT_ENABLE_PROTOCOL_SNIFFING_FOR_OUTBOUND
  const inspects = plan.routes !== undefined && (isShared || plan.tcp.length > 0)
  if (plan.routes !== undefined) {
    const options = { side: 'outbound' as const, statPrefix: `outbound_${name}`, routes: plan.routes, protocols: plan.httpProtocols }
    const filters = [httpConnectionManager(options, snapshot, traits)]
    chains.push(inspects ? { filterChainMatch: plainHttp(inputs), filters } : { filters })
  }
  let fallback: Chain | undefined
  for (const chain of plan.tcp) {
    if (isOpen(chain) && !fallback) fallback = { filters: chain.filters, name: 'default' }
    else chains.push(chain)
  }
  // Connections that match no chain go where the catch-all listener would send them.
  if (!fallback && chains.length > 0 && !chains.some(isOpen)) {
    const cluster = catchAllCluster(inputs)
    fallback = { name: 'PassthroughFilterChain', filters: tcpFilters(cluster, [{ cluster, weight: 1 }], undefined, snapshot, traits) }
  }
  if (chains.length === 0 && fallback) {
    chains.push({ filters: fallback.filters })
    fallback = undefined
  }
  if (chains.length === 0) return undefined
  const needsTls =
    (inspects && plan.tcp.length > 0) ||
    chains.some(({ filterChainMatch }) => filterChainMatch?.serverNames?.length || filterChainMatch?.transportProtocol === 'tls')
  return create(ListenerSchema, {
    name,
    address: endpointAddress(plan.bind, plan.port),
    additionalAddresses: beside,
    filterChains: chains,
    defaultFilterChain: fallback,
    listenerFilters: [...(needsTls ? [tlsInspector()] : []), ...(inspects ? [httpInspector()] : [])],
    ...(needsTls || inspects
      ? { listenerFiltersTimeout: durationOf(snapshot.mesh.protocolDetectionTimeout), continueOnListenerFiltersTimeout: true }
      : {}),
    trafficDirection: 2,
    bindToPort: plan.bindToPort,
    accessLog: listenerAccessLogs(snapshot.mesh),
  })
}

/** Returns a match for HTTP without TLS. HTTP/1.0 is treated as TCP unless it is accepted, since the proxy would answer it with 426. */
function plainHttp({ snapshot, traits }: OutboundInputs): DistinctMatch {
  const old = acceptsHttp10(snapshot, traits) ? ['http/1.0'] : []
  return { applicationProtocols: [...old, 'http/1.1', 'h2c'], transportProtocol: 'raw_buffer' }
}

/** Whether a chain matches every connection. */
const isOpen = ({ filterChainMatch }: Chain): boolean =>
  Object.values(filterChainMatch ?? {}).every((value) => value === undefined || (Array.isArray(value) && value.length === 0))

function catchAllCluster(inputs: OutboundInputs): string {
  const proxy = inputs.view.egressProxy
  if (proxy && inputs.view.allowAny) return destinationCluster(proxy, proxy.port?.number ?? 80, (host) => inputs.view.service(host))
  return inputs.view.allowAny ? passthrough : blackHole
}

const httpProxyName = ({ snapshot }: OutboundInputs): string => `127.0.0.1_${snapshot.mesh.proxyHttpPort}`

function httpProxyListener(inputs: OutboundInputs): Listener {
  const { mesh } = inputs.snapshot
  const name = httpProxyName(inputs)
  const manager = httpConnectionManager(
    { side: 'outbound', statPrefix: `outbound_${name}`, routes: httpProxyRoute.name, protocols: new Set() },
    inputs.snapshot,
    inputs.traits,
  )
  return create(ListenerSchema, {
    name,
    address: socketAddress('127.0.0.1', mesh.proxyHttpPort),
    filterChains: [{ filters: [manager] }],
    trafficDirection: 2,
  })
}

/**
 * Returns the listener that accepts all redirected connections and passes each to the listener of its original destination, or else to its
 * catch-all chain.
 */
function virtualOutbound(inputs: OutboundInputs): Listener {
  const { snapshot, traits } = inputs
  const port = snapshot.mesh.proxyListenPort
  const cluster = catchAllCluster(inputs)
  const blocker: Chain = {
    name: 'virtualOutbound-blackhole',
    filterChainMatch: { destinationPort: port },
    filters: tcpFilters(blackHole, [{ cluster: blackHole, weight: 1 }], undefined, snapshot, traits),
  }
  return create(ListenerSchema, {
    name: 'virtualOutbound',
    address: socketAddress(wildcardOf(traits), port),
    additionalAddresses: besideWildcard(traits, port),
    filterChains: [
      ...(snapshot.settings.features.PILOT_ENABLE_LOOP_BLOCKER ? [blocker] : []),
      { name: 'virtualOutbound-catchall-tcp', filters: tcpFilters(cluster, [{ cluster, weight: 1 }], undefined, snapshot, traits) },
    ],
    listenerFilters: [originalDst()],
    useOriginalDst: true,
    trafficDirection: 2,
    transparent: traits.interception === 'TPROXY' ? true : undefined,
    accessLog: listenerAccessLogs(snapshot.mesh),
  })
}
