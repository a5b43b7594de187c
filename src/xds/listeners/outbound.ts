/**
 * Outbound listeners of a sidecar: `envoy.config.listener.v3.Listener` for the services that its workload calls (docs/resources.md, L1 to
 * L9, L14).
 */
import { create } from '@bufbuild/protobuf'
import type { Protocol } from '../../../protocols/data.ts'
import { type Listener, ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { isIp } from '../../config/addresses.ts'
import { configKey } from '../../config/kinds.ts'
import { consequences, contain } from '../../model/faults.ts'
import { append } from '../../model/lists.ts'
import { compare } from '../../model/order.ts'
import { isOpaqueTls, isServerFirst } from '../../model/protocol.ts'
import type { ServiceState } from '../../registry/merged-services.ts'
import { serviceKey } from '../../snapshot/objects.ts'
import type { MeshSnapshot } from '../../snapshot/snapshot.ts'
import { byNamespaceThenHost, type EgressListener, type View } from '../../snapshot/view.ts'
import type { Draft, ListenerConflict, Problem } from '../draft.ts'
import { durationOf, endpointAddress, socketAddress } from '../message.ts'
import { blackHole, destinationCluster, outboundCluster, passthrough } from '../names.ts'
import { applies } from '../routes/matches.ts'
import { isBound, isRange, type PortUse, portUses, virtualAddresses } from '../routes/port-uses.ts'
import { hasHttpProxy, httpProxyRoute } from '../routes/sidecar-routes.ts'
import type { Traits } from '../traits.ts'
import { listenerAccessLogs } from './access-log.ts'
import { type DistinctMatch, DistinctMatches } from './distinct-matches.ts'
import { acceptsHttp10, type Filter, httpConnectionManager, httpInspector, originalDst, tcpFilters, tlsInspector } from './filters.ts'
import { besideWildcard, isOwnListener, isWildcard, loopbackOf, otherWildcardOf, wildcardOf } from './own-addresses.ts'
import { tcpSettings, tcpTargets } from './tcp-targets.ts'

interface Chain {
  readonly name?: string
  readonly filterChainMatch?: DistinctMatch
  readonly filters: Filter[]
}

/** The inputs of outbound listeners. */
export interface OutboundInputs {
  readonly view: View
  readonly snapshot: MeshSnapshot
  readonly traits: Traits
  readonly sourceLabels: Readonly<Record<string, string>>
  readonly namespace: string
  /** Addresses of the workload itself: as a pod of a headless service it needs no listener to reach itself. */
  readonly ownAddresses: readonly string[]
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
  /** All services that have a share in one of the listeners, in order of precedence. */
  readonly services: readonly ServiceState[]
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
      const report = (reason: string) => {
        const { hostname } = state.service
        problems.push({ type: 'lds', resource: hostname, objects: [serviceKey(state.service)], reason, consequence: consequences.leftOut })
      }
      contain(() => {
        for (const share of sharesOf(state, egress, inputs)) {
          if (chosen && !chosen.names.has(nameOf(share))) continue
          if (isOwnListener(share.bind, share.port.number, isOpened, inputs.snapshot, inputs.traits))
            report(`the proxy itself listens at ${share.bind}:${share.port.number}`)
          else addShare(plans, share, egress, state, inputs, conflicts)
        }
      }, report)
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
      make: () => listenerOf(name, plan, inputs, addressesBeside(plan, plans, inputs)),
    }),
  )
  return { listeners: chosen ? listeners : [...listeners, ...listenersOfNoService(inputs, () => sidecar)], conflicts, problems }
}

function listenersOfNoService(inputs: OutboundInputs, objects: () => string[]): Draft<Listener>[] {
  const { mesh } = inputs.snapshot
  if (inputs.traits.interception === 'NONE' || mesh.proxyListenPort === 0) return []
  const last: Draft<Listener> = { name: 'virtualOutbound', objects, make: () => virtualOutbound(inputs) }
  if (!hasHttpProxy(inputs.snapshot, inputs.traits)) return [last]
  return [{ name: httpProxyName(inputs), objects, make: () => httpProxyListener(inputs) }, last]
}

/** The contribution of a service port to a listener. */
interface Share extends PortUse {
  readonly bind: string
}

const nameOf = ({ bind, port, route }: Share): string => (route?.isOfAllPorts ? bind : `${bind}_${port.number}`)

/** Returns the contributions of a service to listeners when it is called through an egress listener. */
function sharesOf(state: ServiceState, egress: EgressListener, inputs: OutboundInputs): Share[] {
  const { traits } = inputs
  const wildcard = wildcardOf(traits)
  const isOpened = isBound(egress, traits.interception)
  const unnamed = isOpened ? loopbackOf(traits) : wildcard
  // A proxy without privileges cannot bind ports below 1024.
  const isClosed = ({ port }: PortUse) => isOpened && traits.unprivileged && port.number < 1024
  const binds: Readonly<Record<PortUse['at'], () => readonly string[]>> = {
    shared: () => [wildcard],
    service: () => virtualAddresses(state.service),
    pods: () => podAddresses(state, inputs),
    // At an address of redirected connections, one wildcard address stands for both families.
    egress: () => [egress.bind === '' ? unnamed : !isOpened && isWildcard(egress.bind, traits) ? wildcard : egress.bind],
  }
  return portUses(state.service, egress, inputs.view.egress, inputs.snapshot, traits.interception).flatMap((use) =>
    isClosed(use) ? [] : binds[use.at]().map((bind) => ({ ...use, bind })),
  )
}

/** Returns the addresses of the pods for which a caller needs a listener: all except its own. */
function podAddresses({ endpoints }: ServiceState, { ownAddresses }: OutboundInputs): string[] {
  return [...new Set(endpoints.map(({ address }) => address))].filter((address) => isIp(address) && !ownAddresses.includes(address))
}

const bytes = 'bytes'

/** The contribution of a share to the listener of a name: an HTTP protocol, or TCP (`bytes`). */
interface Brought {
  readonly name: string
  readonly what: string
}

const broughtBy = (share: Share): Brought => ({ name: nameOf(share), what: share.kind === 'http' ? share.port.protocol : bytes })

/** Records the contributions of services to the listeners of a view, to determine in which listeners another view differs. */
export class ListenerShares {
  /** Hosts with a share in a listener, in order of precedence. */
  readonly #hosts = new Map<string, string[]>()
  /** The contributions of each host. Equal contributions are one object. */
  readonly #shares = new Map<string, readonly Brought[]>()
  /** For each listener, the contributions to it by kind, with the number of shares that make them. */
  readonly #brought = new Map<string, Map<string, { readonly brought: Brought; count: number }>>()
  readonly #view: View

  constructor(inputs: OutboundInputs) {
    this.#view = inputs.view
    for (const egress of inputs.view.egress)
      for (const state of egress.services) {
        const { hostname } = state.service
        this.#shares.set(
          hostname,
          sharesOf(state, egress, inputs).map((share) => this.#add(hostname, broughtBy(share))),
        )
      }
  }

  /** Counts a contribution of a host. Returns the shared object for it. */
  #add(host: string, brought: Brought): Brought {
    const { name, what } = brought
    append(this.#hosts, name, host)
    let all = this.#brought.get(name)
    if (!all) this.#brought.set(name, (all = new Map()))
    let alike = all.get(what)
    if (!alike) all.set(what, (alike = { brought, count: 0 }))
    alike.count++
    return alike.brought
  }

  /**
   * Returns the listeners in which another view differs that equals this one except for `hosts`, and the listeners of this view that it
   * must hide.
   */
  differing(hosts: readonly string[], inputs: OutboundInputs): { chosen: ListenerChoice; hide: readonly string[] } {
    const [egress] = inputs.view.egress
    const before = new Map<string, string[]>()
    const after = new Map<string, string[]>()
    const note = (shares: readonly Brought[], notes: Map<string, string[]>) => {
      for (const { name, what } of shares) append(notes, name, what)
    }
    for (const host of hosts) {
      note(this.#shares.get(host) ?? [], before)
      const state = inputs.view.service(host)
      if (state && egress) note(sharesOf(state, egress, inputs).map(broughtBy), after)
    }
    const names = new Set([...before.keys(), ...after.keys()].filter((name) => !this.#isSame(name, before.get(name) ?? [], after.get(name) ?? [])))
    const own = new Set(hosts)
    const services = new Map<string, ServiceState>()
    const take = (state: ServiceState | undefined) => state && services.set(state.service.hostname, state)
    for (const name of names) for (const host of this.#hosts.get(name) ?? []) if (!own.has(host)) take(this.#view.service(host))
    for (const host of hosts) take(inputs.view.service(host))
    const sorted = [...services.values()].sort(byNamespaceThenHost)
    return { chosen: { names, services: sorted }, hide: [...names].filter((name) => this.#hosts.has(name)).sort() }
  }

  /**
   * Whether a listener stays the same when some shares are removed and others added. A listener with HTTP shares only depends on the set of
   * their protocols and not on the services.
   */
  #isSame(name: string, without: readonly string[], others: readonly string[]): boolean {
    const brought = this.#brought.get(name)
    if (!brought || brought.has(bytes) || others.includes(bytes)) return false
    const left = new Map(Array.from(brought, ([what, { count }]) => [what, count]))
    for (const what of without) left.set(what, (left.get(what) ?? 0) - 1)
    for (const what of others) left.set(what, (left.get(what) ?? 0) + 1)
    return [...left].every(([what, count]) => count > 0 && brought.has(what))
  }
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
function addressesBeside(plan: Plan, plans: ReadonlyMap<string, Plan>, { traits, view }: OutboundInputs): ReturnType<typeof besideWildcard> {
  const other = otherWildcardOf(traits)
  const { ingress = [] } = view.sidecar?.spec ?? {}
  const isTaken = plans.has(`${other}_${plan.port}`) || ingress.some(({ bind, port }) => bind === other && port.number === plan.port)
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
