/**
 * Which addresses the endpoints of one service port become for a caller: those of its own network themselves, those of other networks the
 * gateways of these (docs/resources.md, E3 to E5).
 */
import type { Endpoint, Readiness, Service, ServicePort } from '../../../protocols/data.ts'
import { append } from '../../model/lists.ts'
import { labelsMatch } from '../../model/match.ts'
import { compare } from '../../model/order.ts'
import { portOf, servesPort } from '../../model/workload.ts'
import { isMutualTlsLabel } from '../../names/mesh-names.ts'
import type { Subset } from '../../snapshot/destination-rules.ts'
import { gatewaysFor } from '../../snapshot/networks.ts'
import { refusalByAll } from '../../snapshot/passed-on.ts'
import { mutualTls, peersFor } from '../../snapshot/policies.ts'
import type { MeshSnapshot, NetworkGateway, NetworkGateways } from '../../snapshot/snapshot.ts'
import type { PolicyInForce } from '../clusters/traffic-policy.ts'
import type { Block } from '../slab/resource.ts'
import type { Traits } from '../traits.ts'
import { type PlacedLocality, placeLocalities } from './locality.ts'

/** The largest weight, and the largest sum of weights, that Envoy accepts. */
export const largestWeight = 4_294_967_295

/** An address to send traffic to. */
export interface Target {
  readonly address: string
  readonly port: number
  readonly weight: number
  /** Whether it accepts mutual TLS. */
  readonly isMutualTls: boolean
  /** Whether the address is that of a gateway, which stands for endpoints of its network. */
  readonly isGateway: boolean
  /** The endpoint; for a gateway one of those that it stands for, which are of one network and locality and differ in all else. */
  readonly endpoint: Endpoint
}

/** Whether a workload accepts mutual TLS on a port: it has a proxy of the mesh, and no policy disables mutual TLS on the port. */
export function takesMutualTls(endpoint: Endpoint, port: number, snapshot: MeshSnapshot): boolean {
  if (!hasProxy(endpoint, snapshot)) return false
  const { policies, mesh } = snapshot
  return policies.peers.size === 0 || mutualTls({ peers: peersFor(policies, mesh.rootNamespace, endpoint) }, port) !== 'DISABLE'
}

const hasProxy = (endpoint: Endpoint, { settings }: MeshSnapshot): boolean => {
  const mode = endpoint.labels[`security.${settings.names.domain}/tlsMode`]
  return mode === undefined ? endpoint.serviceAccount !== '' : isMutualTlsLabel(mode)
}

/**
 * Returns the product of the numbers of gateways that pass calls on to the same endpoints, at most the largest weight; undefined without gateways. A product above
 * that, which no realistic mesh has, makes weights inexact.
 */
function productOf(gateways: NetworkGateways): number | undefined {
  if (gateways.size === 0) return undefined
  const lists = [...gateways.values()].flatMap((ofNetwork) => [...ofNetwork.values()])
  return lists.reduce((product, { length }) => Math.min(product * Math.max(1, length), largestWeight), 1)
}

/** The service port and subset that targets are for, and how its callers send. */
export interface Use {
  readonly port: ServicePort
  readonly subset: Subset | undefined
  /** Whether the caller sends plain text, whatever the endpoints accept. */
  readonly isPlain: boolean
  /**
   * Whether the cluster has an SNI name. Traffic to it is mutual TLS of callers, whatever the rule says, and must not reach an endpoint that
   * would accept it as plain text (docs/resources.md, G6).
   */
  readonly forwards: boolean
  /** The cluster of endpoints that do not name theirs. */
  readonly registry: string
  /** The gateways of networks that pass its calls on. */
  readonly gateways: NetworkGateways
  /** Whether endpoints on the caller's node come first. */
  readonly nodeFirst: boolean
}

/** Endpoints of one network, cluster and locality that are reached through the same gateways: their number, and one of them. */
interface Remote {
  readonly count: number
  readonly endpoint: Endpoint
  readonly gateways: readonly NetworkGateway[]
  /** The weight of an endpoint that is addressed itself. */
  readonly product: number
}

/** What some endpoints contribute to a load assignment. */
interface Targets {
  /** By place the targets that are addressed themselves: by locality, and apart those on the caller's node where these come first. */
  readonly direct: ReadonlyMap<string, Run>
  /** By network, cluster and locality those behind gateways. */
  readonly remote: ReadonlyMap<string, Remote>
}

/** What the endpoints of one slice contribute to a load assignment: the ready ones, and those that terminate (docs/resources.md, E9). */
export interface SliceTargets {
  readonly ready: Targets | undefined
  readonly terminating: Targets | undefined
}

/** Targets of one slice and locality, with the sums of their weights. */
export class Run {
  readonly targets: readonly Target[]
  /** The sum of the weights, at least 1 each. */
  readonly weight: number
  /** The sum of the weights in whole numbers. */
  readonly wholeWeight: number
  /** The encoded targets; kept by the encoder. */
  encoded: EncodedRun | undefined

  constructor(targets: readonly Target[]) {
    this.targets = targets
    this.weight = targets.reduce((sum, { weight }) => sum + Math.max(1, weight), 0)
    this.wholeWeight = targets.reduce((sum, { weight }) => sum + unscaled.of(weight), 0)
  }
}

/** The bytes of a run with weights of one scale. */
export interface EncodedRun {
  readonly scale: string
  readonly block: Block
  readonly digest: string
}

/** How the weights of targets become those that Envoy gets. Scales with one name give equal weights. */
export interface Scale {
  readonly name: string
  of(weight: number): number
}

const unscaled: Scale = { name: '', of: (weight) => Math.max(1, Math.floor(weight)) }

/** Returns what the endpoints of one slice contribute for a caller. The endpoints have their networks. */
export function sliceTargets(endpoints: readonly Endpoint[], use: Use, snapshot: MeshSnapshot, traits: Traits): SliceTargets {
  const serving = endpoints.filter((endpoint) => servesPort(endpoint, use.port) && labelsMatch(use.subset?.labels, endpoint.labels))
  const of = (readiness: Readiness): Targets | undefined => {
    const those = serving.filter((endpoint) => (endpoint.readiness ?? 'ready') === readiness)
    return those.length > 0 ? targetsOf(those, use, snapshot, traits) : undefined
  }
  return { ready: of('ready'), terminating: of('terminating') }
}

/**
 * Filters, then groups (docs/resources.md, E4). Endpoints behind gateways that do not pass calls on are left out. A gateway forwards by SNI, which requires mutual TLS: endpoints that do not accept it on this
 * port are left out behind gateways, and all of them if the caller sends plain text.
 */
function targetsOf(endpoints: readonly Endpoint[], use: Use, snapshot: MeshSnapshot, traits: Traits): Targets {
  const { port, isPlain, forwards, registry, gateways, nodeFirst } = use
  const { network, networkView: view, clusterNode = '', clusterId } = traits
  // Nodes of other clusters may have the same name.
  const isNear = ({ node, cluster = registry }: Endpoint) =>
    nodeFirst && clusterNode !== '' && node === clusterNode && (clusterId === '' || cluster === clusterId)
  const product = productOf(gateways)
  const direct = new Map<string, Target[]>()
  const remote = new Map<string, Remote>()
  for (const endpoint of endpoints) {
    if (view && !view.has(endpoint.network)) continue
    const { cluster = registry } = endpoint
    const behind = endpoint.network === network ? undefined : gatewaysFor(gateways, endpoint.network, cluster)
    if (!behind) {
      const { address, weight } = endpoint
      if (address === '') continue
      const number = portOf(endpoint, port)
      const isMutualTls = takesMutualTls(endpoint, number, snapshot)
      if (forwards && !isMutualTls) continue
      append(direct, isNear(endpoint) ? nearMark + endpoint.locality : endpoint.locality, {
        address,
        port: number,
        weight: product ?? weight,
        isMutualTls,
        isGateway: false,
        endpoint,
      })
    } else if (!isPlain && takesMutualTls(endpoint, portOf(endpoint, port), snapshot)) {
      const place = JSON.stringify([endpoint.network, cluster, endpoint.locality])
      const known = remote.get(place)
      remote.set(place, known ? { ...known, count: known.count + 1 } : { count: 1, endpoint, gateways: behind, product: product ?? 1 })
    }
  }
  return { direct: new Map([...direct].map(([locality, targets]) => [locality, new Run(targets)])), remote }
}

/** Begins the place of targets on the caller's node. No locality begins with it. */
const nearMark = '\0'

/** The targets of a locality, with its weight and priority. */
export interface PlacedTargets extends PlacedLocality {
  readonly runs: readonly Run[]
  /** The scale of the weights in the runs. */
  readonly scale: Scale
  readonly gateways: readonly (readonly [target: Target, weight: number])[]
}

/**
 * Joins what the slices of a service contribute, and distributes it over localities for a caller, those of the highest priority first.
 * `forwards`: to a cluster with an SNI name. What a gateway passes on stays in its network while there are endpoints in it, since gateways would
 * otherwise send it to each other, and its caller has distributed it over the networks (docs/resources.md, G6).
 */
export function placedTargets(
  slices: readonly SliceTargets[],
  forwards: boolean,
  policy: PolicyInForce,
  snapshot: MeshSnapshot,
  traits: Traits,
): readonly PlacedTargets[] {
  const isAnyReady = slices.some(({ ready }) => ready)
  const used = slices.flatMap(({ ready, terminating }) => (isAnyReady ? ready : terminating) ?? [])
  const groups = new Map<string, { runs: Run[]; gateways: Target[] }>()
  const groupOf = (locality: string) => {
    let group = groups.get(locality)
    if (!group) groups.set(locality, (group = { runs: [], gateways: [] }))
    return group
  }
  for (const { direct } of used) for (const [locality, run] of direct) groupOf(locality).runs.push(run)
  const stays = forwards && (groups.size > 0 || traits.network === '')
  for (const gateway of stays ? [] : gatewayTargets(used)) groupOf(gateway.endpoint.locality).gateways.push(gateway)
  const scale = fitting([...groups.values()])
  const localities = [...groups]
    .sort(([one], [other]) => compare(one, other))
    .map(([place, { runs, gateways }]): PlacedLocality => {
      const weight = runs.reduce((sum, run) => sum + weightOf(run, scale), 0) + gateways.reduce((sum, gateway) => sum + scale.of(gateway.weight), 0)
      const isNear = place.startsWith(nearMark)
      return { locality: isNear ? place.slice(nearMark.length) : place, isNear, weight, priority: 0 }
    })
  const distributed = placeLocalities(localities, traits.locality, policy, snapshot)
  const placed = (stays && distributed.length === 0 ? localities : distributed)
    .sort((one, other) => one.priority - other.priority)
    .map((place): PlacedTargets => {
      const { runs = [], gateways = [] } = groups.get(place.isNear ? nearMark + place.locality : place.locality) ?? {}
      return { ...place, runs, scale, gateways: gateways.map((gateway) => [gateway, scale.of(gateway.weight)]) }
    })
  return withoutRepeatedGateways(placed)
}

/** The gateways that stand for the endpoints behind them, each with its share of their weight. */
function gatewayTargets(used: readonly Targets[]): Target[] {
  const remote = new Map<string, Remote>()
  for (const targets of used)
    for (const [place, more] of targets.remote) {
      const known = remote.get(place)
      remote.set(place, known ? { ...known, count: known.count + more.count } : more)
    }
  return [...remote.values()].flatMap(({ count, endpoint, gateways, product }) =>
    gateways.map(({ address, port }) => ({
      address,
      port,
      weight: (count * product) / gateways.length,
      isMutualTls: true,
      isGateway: true,
      endpoint,
    })),
  )
}

const weightOf = (run: Run, scale: Scale): number =>
  scale === unscaled ? run.wholeWeight : run.targets.reduce((sum, { weight }) => sum + scale.of(weight), 0)

/** The scale for targets. Envoy requires sums of weights to fit into 32 bits: larger sums are scaled down, each weight to at least 1. */
function fitting(groups: readonly { readonly runs: readonly Run[]; readonly gateways: readonly Target[] }[]): Scale {
  const runs = groups.flatMap((group) => group.runs)
  const gateways = groups.flatMap((group) => group.gateways)
  const total = gateways.reduce(
    (sum, { weight }) => sum + Math.max(1, weight),
    runs.reduce((sum, { weight }) => sum + weight, 0),
  )
  if (total <= largestWeight) return unscaled
  const factor = (largestWeight - runs.reduce((sum, { targets }) => sum + targets.length, gateways.length)) / total
  return { name: `${factor}`, of: (weight) => Math.max(1, Math.floor(weight * factor)) }
}

/** An endpoint behind gateways of which none passes calls of its service, or of a subset (empty: of the whole), on, with the reason. */
export interface Unpassed {
  readonly endpoint: Endpoint
  readonly subset: string
  readonly reason: string
}

/** Endpoints that a caller does not reach because of the gateways that stand for them. */
interface UnreachableEndpoints {
  /** By network those that accept mutual TLS on no port. */
  readonly unreachable: ReadonlyMap<string, readonly Endpoint[]>
  readonly unpassed: readonly Unpassed[]
}

/** Returns the endpoints of a service with some subsets that a caller does not reach because of the gateways that stand for them (docs/resources.md, E4). */
export function unreachableEndpoints(
  endpoints: readonly Endpoint[],
  service: Service,
  subsets: readonly Subset[],
  registry: string,
  snapshot: MeshSnapshot,
  { network, networkView: view }: Traits,
): UnreachableEndpoints {
  const unreachable = new Map<string, Endpoint[]>()
  const unpassed: Unpassed[] = []
  if (snapshot.networkGateways.size === 0) return { unreachable, unpassed }
  const whole = { name: '', labels: {} }
  const reasons = new Map<readonly NetworkGateway[], (readonly [typeof whole, string])[]>()
  const reasonsOf = (gateways: readonly NetworkGateway[]) => {
    const refused = (of: readonly (typeof whole)[]) =>
      of.flatMap((subset) => {
        const reason = refusalByAll(gateways, service, subset.name, snapshot)
        return reason === undefined ? [] : [[subset, reason] as const]
      })
    const ofWhole = refused([whole])
    return ofWhole.length > 0 ? ofWhole : refused(subsets)
  }
  for (const endpoint of endpoints) {
    const behind = endpoint.network === network ? undefined : gatewaysFor(snapshot.networkGateways, endpoint.network, endpoint.cluster ?? registry)
    if (!behind || (view && !view.has(endpoint.network))) continue
    if (!service.ports.some((port) => servesPort(endpoint, port) && takesMutualTls(endpoint, portOf(endpoint, port), snapshot))) {
      append(unreachable, endpoint.network, endpoint)
      continue
    }
    let refused = reasons.get(behind)
    if (!refused) reasons.set(behind, (refused = reasonsOf(behind)))
    for (const [{ name, labels }, reason] of refused) if (labelsMatch(labels, endpoint.labels)) unpassed.push({ endpoint, subset: name, reason })
  }
  return { unreachable, unpassed }
}

/**
 * Returns the localities, of the highest priority first, so that no gateway is in two of them, because Envoy keeps the first of equal
 * addresses and drops the others with their weights: each gateway is in the first one that has it, with the share of the traffic that it
 * has in all localities of this priority. Localities that have no target left are removed, and priorities have no gaps.
 */
function withoutRepeatedGateways(placed: readonly PlacedTargets[]): readonly PlacedTargets[] {
  if (!placed.some(({ gateways }) => gateways.length > 0)) return placed
  const groups = placed.map((group) => {
    const direct = group.runs.reduce((sum, run) => sum + weightOf(run, group.scale), 0)
    const total = group.gateways.reduce((sum, [, weight]) => sum + weight, direct)
    return { ...group, direct, total, kept: [] as [Target, number][] }
  })
  const first = new Map<string, { group: (typeof groups)[number]; entry: [Target, number] }>()
  for (const group of groups)
    for (const [target, weight] of group.gateways) {
      const key = `${target.address} ${target.port}`
      const known = first.get(key)
      const entry: [Target, number] = [target, weight]
      if (!known) {
        group.kept.push(entry)
        first.set(key, { group, entry })
        continue
      }
      const share = (group.weight * weight) / group.total
      group.weight -= share
      group.total -= weight
      if (known.group.priority !== group.priority) continue
      // The weight that is this share of the traffic in the other locality.
      const scaled = (share * known.group.total) / known.group.weight
      known.entry[1] += scaled
      known.group.total += scaled
      known.group.weight += share
    }
  const left = groups.filter(({ runs, kept }) => runs.length + kept.length > 0)
  const priorities = [...new Set(left.map(({ priority }) => priority))]
  const weights = whole(left.map(({ weight }) => weight))
  return left.map(({ locality, isNear, priority, runs, scale, direct, kept }, index): PlacedTargets => {
    const count = runs.reduce((sum, { targets }) => sum + targets.length, 0)
    const factor = factorOf(
      kept.map(([, weight]) => weight),
      { count, total: direct },
    )
    const rounded = (weight: number) => Math.max(1, Math.round(weight * factor))
    return {
      ...{ locality, isNear },
      weight: weights[index] ?? 1,
      priority: priorities.indexOf(priority),
      runs,
      scale: factor === 1 ? scale : { name: `${scale.name} ${factor}`, of: (weight) => rounded(scale.of(weight)) },
      gateways: kept.map(([target, weight]) => [target, rounded(weight)]),
    }
  })
}

/** Returns weights in whole numbers, at least 1, whose ratios differ by at most a thousandth of a weight and whose sum Envoy accepts. */
function whole(weights: readonly number[]): number[] {
  const factor = factorOf(weights, { count: 0, total: 0 })
  return weights.map((weight) => Math.max(1, Math.round(weight * factor)))
}

/** Returns the factor by which weights become such numbers, beside a number of weights that are whole. */
function factorOf(weights: readonly number[], beside: { readonly count: number; readonly total: number }): number {
  const total = weights.reduce((sum, weight) => sum + weight, beside.total)
  const isWhole = weights.every((weight) => Math.abs(weight - Math.round(weight)) < 1e-6)
  return Math.min(isWhole ? 1 : 1000, (largestWeight - weights.length - beside.count) / total)
}
