/** Groups that belong to one class: the inbound resources of its workload, and the listeners and routes of the Gateways that select it. */

import { fromBinary } from '@bufbuild/protobuf'
import { type Cluster, ClusterSchema } from '../../../protocols/gen/envoy/config/cluster/v3/cluster_pb.js'
import { ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { type RouteConfiguration, RouteConfigurationSchema } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import { configKey, keyAt } from '../../config/kinds.ts'
import { consequences, contain } from '../../model/faults.ts'
import { allPolicies, policiesFor, type WorkloadPolicies } from '../../snapshot/policies.ts'
import { type Draft, makeAll, type Outcome } from '../../xds/draft.ts'
import { addedClusters, clusterPatcher } from '../../xds/envoy-filter/clusters.ts'
import { addedListeners } from '../../xds/envoy-filter/listeners.ts'
import { routePatcher } from '../../xds/envoy-filter/routes.ts'
import { denyingListener } from '../../xds/listeners/denying.ts'
import { gatewayListeners, gatewayRoutes, type HostProblem } from '../../xds/listeners/gateway.ts'
import { inboundClusters, inboundListeners, inboundPorts, passthroughClusters } from '../../xds/listeners/inbound.ts'
import { type GuardedWorkload, guardOf } from '../../xds/listeners/inbound-chains.ts'
import type { RouteContext } from '../../xds/routes/http-routes.ts'
import { filtersOf, type PolicyFilters } from '../../xds/security/policy-filters.ts'
import { trustsForwarded } from '../../xds/security/trusted-proxies.ts'
import { encodeResource, isUsable, type Resource } from '../../xds/slab/resource.ts'
import type { ProxyClass } from '../../xds/traits.ts'
import { clusterType, listenerType, routeType } from '../../xds/type-urls.ts'
import { makeListeners } from './listener-groups.ts'
import { addedOutbound, type Built, GroupMaker, type Making, objectsOf, patched, withAdded } from './making.ts'

/** A group that belongs to one class. */
abstract class OfClass extends GroupMaker {
  protected readonly groups: WorkloadGroups
  protected readonly proxy: ProxyClass

  constructor(groups: WorkloadGroups, proxy: ProxyClass, name: string, typeUrl: string) {
    super({ id: `${name}|${proxy.id}`, typeUrl, given: [proxy] })
    this.groups = groups
    this.proxy = proxy
  }
}

class InboundClusters extends OfClass {
  constructor(groups: WorkloadGroups, proxy: ProxyClass) {
    super(groups, proxy, 'clusters-in', clusterType)
  }

  make(): Built {
    return { outcomes: this.groups.inboundClusters(this.proxy) }
  }
}

class InboundListeners extends OfClass {
  constructor(groups: WorkloadGroups, proxy: ProxyClass) {
    super(groups, proxy, 'listeners-in', listenerType)
  }

  make(): Built {
    return { outcomes: this.groups.inboundListeners(this.proxy) }
  }
}

class GatewayListeners extends OfClass {
  constructor(groups: WorkloadGroups, proxy: ProxyClass) {
    super(groups, proxy, 'listeners-gw', listenerType)
  }

  make(): Built {
    return { outcomes: this.groups.gatewayListeners(this.proxy) }
  }
}

class GatewayRoutes extends OfClass {
  constructor(groups: WorkloadGroups, proxy: ProxyClass) {
    super(groups, proxy, 'routes-gw', routeType)
  }

  make(): Built {
    return { outcomes: this.groups.gatewayRoutes(this.proxy) }
  }
}

/** Makes the groups that belong to one class each. */
export class WorkloadGroups {
  readonly #making: Making

  constructor(making: Making) {
    this.#making = making
  }

  /** The makers for a sidecar. */
  ofSidecar(proxy: ProxyClass): GroupMaker[] {
    return [new InboundClusters(this, proxy), new InboundListeners(this, proxy)]
  }

  /** The makers for a router. */
  ofGateway(proxy: ProxyClass): GroupMaker[] {
    return [new GatewayListeners(this, proxy), new GatewayRoutes(this, proxy)]
  }

  /** The inbound clusters of a sidecar. */
  inboundClusters(proxy: ProxyClass): Outcome[] {
    const view = this.#making.view(proxy.viewKey)
    return patched(proxy.traits, 'SIDECAR_INBOUND', (context) => {
      const { ports } = inboundPorts(view, proxy.instances, proxy.traits, proxy.address, this.#making.snapshot)
      const drafts = [...inboundClusters(ports, view, this.#making.snapshot), ...this.#passthroughClusters(proxy)]
      const made = makeAll(ClusterSchema, 'cds', drafts, clusterPatcher(context))
      return withAdded(made, ClusterSchema, 'cds', addedClusters(context), addedOutbound(context, addedClusters))
    })
  }

  #passthroughClusters({ traits }: ProxyClass): readonly Draft<Cluster>[] {
    if (traits.interception === 'NONE') return []
    const { snapshot, memo } = this.#making
    const make = () =>
      passthroughClusters(snapshot).map((cluster) => {
        const resource = encodeResource(ClusterSchema, cluster, cluster.name)
        return { name: cluster.name, objects: () => [], make: () => cluster, encoded: () => resource }
      })
    return memo.get('passthrough', [snapshot.settings], '', [], make, (made) => made.every(({ encoded }) => isUsable(encoded())))
  }

  #policies(proxy: ProxyClass): WorkloadPolicies {
    const { policies, mesh } = this.#making.snapshot
    return policiesFor(policies, mesh.rootNamespace, proxy)
  }

  /**
   * The filters that enforce policies, made once for all workloads that the same policies select. A rule that cannot be expressed is
   * reported as a problem of the policies it came from.
   */
  #policyFilters(policies: WorkloadPolicies, { traits }: ProxyClass): { filters: PolicyFilters; problems: Outcome[] } {
    const { snapshot } = this.#making
    const trust = { trustsForwarded: trustsForwarded(traits, snapshot.mesh) }
    return this.#ofPolicies(`policies|${trust.trustsForwarded}`, policies, undefined, () => {
      const objects = [...policies.requests, ...policies.authorization].map(configKey)
      const reasons = new Set<string>()
      const filters = filtersOf(policies, snapshot, trust, (found) => reasons.add(found))
      const problem = (reason: string): Outcome => ({
        problem: { type: 'policy', resource: objects.join(), objects, reason, consequence: 'the workloads that they select let nothing through' },
      })
      return { filters, problems: [...reasons].map(problem) }
    })
  }

  /** The guard of workloads with these policies, made once for all classes with the same traits. */
  #guard(policies: WorkloadPolicies, filters: PolicyFilters, { traits }: ProxyClass): GuardedWorkload {
    return this.#ofPolicies(`guard|${traits.key}`, policies, filters, () => guardOf(policies, filters, this.#making.snapshot, traits))
  }

  #ofPolicies<Made>(space: string, policies: WorkloadPolicies, given: unknown, make: () => Made): Made {
    const { snapshot, memo } = this.#making
    const all = allPolicies(policies)
    return memo.get(space, [all[0] ?? snapshot.settings], all.map(configKey).join(), [given, ...all], make)
  }

  /** The inbound listeners of a sidecar. */
  inboundListeners(proxy: ProxyClass): Outcome[] {
    return this.#closing(proxy, () => this.#openInboundListeners(proxy))
  }

  #openInboundListeners(proxy: ProxyClass): Outcome[] {
    const { snapshot } = this.#making
    const view = this.#making.view(proxy.viewKey)
    const policies = this.#policies(proxy)
    return patched(proxy.traits, 'SIDECAR_INBOUND', (context) => {
      const { ports, conflicts, refused } = inboundPorts(view, proxy.instances, proxy.traits, proxy.address, snapshot)
      const { filters, problems } = this.#policyFilters(policies, proxy)
      const drafts = inboundListeners(ports, policies, () => this.#guard(policies, filters, proxy), view, snapshot, proxy.traits)
      const reported = conflicts.map((conflict): Outcome => ({ conflict: { kind: 'inbound', view: proxy.id, ...conflict } }))
      const closed = refused.map(({ listener, objects, reason }): Outcome => {
        return { problem: { type: 'lds', resource: listener, objects, reason, consequence: consequences.leftOut } }
      })
      const listeners = makeListeners(drafts, context, addedListeners(context), addedOutbound(context, addedListeners))
      return [...this.#denying(listeners, proxy), ...problems, ...reported, ...closed]
    })
  }

  /** The listeners of the Gateways that select a router. */
  gatewayListeners(proxy: ProxyClass): Outcome[] {
    return this.#closing(proxy, () => this.#openGatewayListeners(proxy))
  }

  #openGatewayListeners(proxy: ProxyClass): Outcome[] {
    return patched(proxy.traits, 'GATEWAY', (context) => {
      const { filters, problems } = this.#policyFilters(this.#policies(proxy), proxy)
      const { listeners, rejected, unoffered } = gatewayListeners(proxy, this.#making.view(proxy.viewKey), filters, this.#making.snapshot)
      const refused = rejected.map(({ gateway, reason }): Outcome => {
        return {
          problem: { type: 'gateway', resource: gateway, objects: [keyAt('Gateway', gateway)], reason, consequence: 'the server is left out' },
        }
      })
      return [...this.#denying(makeListeners(listeners, context), proxy), ...problems, ...refused, ...unoffered.map((problem) => ({ problem }))]
    })
  }

  /**
   * Replaces each listener version that proxies of the class refused although its policies changed by a listener that denies everything.
   */
  #denying(outcomes: readonly Outcome[], { denied }: ProxyClass): Outcome[] {
    if (denied.size === 0) return [...outcomes]
    return outcomes.map((made) => {
      if (!('slices' in made) || !denied.get(made.name)?.has(made.version)) return made
      return this.#denyingFor(made)
    })
  }

  #denyingFor(listener: Resource): Resource {
    return encodeResource(ListenerSchema, denyingListener(fromBinary(ListenerSchema, this.#making.valueOf(listener))), listener.name)
  }

  /**
   * Makes the listeners that enforce policies. The last good state of a listener has the policies of its time, so where policies select the
   * workload, a listener that cannot be made is replaced by one that denies everything until it can be made (docs/resources.md, A14). When
   * `make` throws, this applies to every listener of the group.
   */
  #closing(proxy: ProxyClass, make: () => Outcome[]): Outcome[] {
    const lastGood = this.#making.lastGood()
    const outcomes = contain(make, (reason) => {
      if (lastGood.size === 0 || !this.#policyObjects(proxy)) throw new Error(reason)
      return [...lastGood.keys()].map((resource): Outcome => ({ problem: { type: 'lds', resource, objects: objectsOf(proxy), reason } }))
    })
    return outcomes.map((outcome) => {
      if (!('problem' in outcome)) return outcome
      const { problem } = outcome
      const kept = problem.type === 'lds' && problem.consequence === undefined && !problem.instead ? lastGood.get(problem.resource) : undefined
      const policies = kept && this.#policyObjects(proxy)
      if (!kept || !policies) return outcome
      const objects = [...new Set([...problem.objects, ...policies])]
      return { problem: { ...problem, objects, consequence: 'it lets nothing through until it can be made', instead: this.#denyingFor(kept) } }
    })
  }

  /** Keys of the policies that select the workload; empty when they cannot be determined, undefined when there are none. */
  #policyObjects(proxy: ProxyClass): readonly string[] | undefined {
    return contain<readonly string[] | undefined>(
      () => {
        const all = allPolicies(this.#policies(proxy)).map(configKey)
        return all.length > 0 ? all : undefined
      },
      () => [],
    )
  }

  /** The routes of the Gateways that select a router. */
  gatewayRoutes(proxy: ProxyClass): Outcome[] {
    const lastGood = this.#making.lastGood()
    return patched(proxy.traits, 'GATEWAY', (context) => {
      const problems: Outcome[] = []
      const leftOut: RouteContext['leftOut'] = (service, reason) =>
        problems.push({
          problem: {
            type: 'rds',
            resource: service.hosts.join(),
            objects: service.sources.map(configKey),
            reason,
            consequence: consequences.without,
          },
        })
      const failed = ({ route, host, objects, reason }: HostProblem) => {
        const before = lastGood.get(route)
        const kept = before && this.#decodeRoute(before).virtualHosts.find(({ name }) => name === host)
        const consequence = kept ? consequences.kept : consequences.leftOut
        problems.push({ problem: { type: 'rds', resource: `${route}/${host}`, objects, reason, consequence } })
        return kept
      }
      const drafts = gatewayRoutes(proxy, this.#making.view(proxy.viewKey), this.#making.snapshot, failed, leftOut)
      return [...makeAll(RouteConfigurationSchema, 'rds', drafts, routePatcher(context)), ...problems]
    })
  }

  #decodeRoute(resource: Resource): RouteConfiguration {
    return fromBinary(RouteConfigurationSchema, this.#making.valueOf(resource))
  }
}
