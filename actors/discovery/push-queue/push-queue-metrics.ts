/** Metrics of the push queue (docs/metrics.md). */
import type { ResourceFault } from '../../../src/model/faults.ts'
import type { Planner } from '../../../src/push/planner.ts'
import type { MeshSnapshot } from '../../../src/snapshot/snapshot.ts'
import { Counter, gaugesOf, type MetricRegistry } from '../../runtime/metrics.ts'

/** Push reasons with a label value of their own in `pilot_push_triggers`; all others are counted as `unknown`. */
const triggerTypes = new Set(['endpoint', 'config', 'service', 'proxy', 'global', 'debug', 'secret', 'networks'])

/** Fault types that count as internal errors of a generator, as opposed to rejected objects. */
const internalTypes = new Set(['cds', 'eds', 'lds', 'rds', 'ecds', 'group', 'view', 'class', 'index', 'push'])

/** Fault types that concern the state as a whole, before any resource is generated from it. */
const stateTypes = new Set(['push', 'index', 'view'])

/** Registers the counters of faults and returns the function that counts one fault. */
export function faultMetrics(registry: MetricRegistry): (fault: ResourceFault) => void {
  const registers = [registry]
  const internal = new Counter({ name: 'pilot_total_xds_internal_errors', help: 'internal XDS errors', registers })
  const state = new Counter({ name: 'pilot_xds_push_context_errors', help: 'errors (timeouts) initiating push context', registers })
  const rejected = new Counter({
    name: 'pilot_total_rejected_configs',
    help: 'configs rejected or ignored',
    labelNames: ['type', 'name'],
    registers,
  })
  return ({ type, resource, isLoss }) => {
    if (isLoss) return
    if (internalTypes.has(type)) internal.inc()
    if (stateTypes.has(type)) state.inc()
    if (type === 'gateway') rejected.inc({ type, name: resource })
  }
}

/** Registers the metrics of the push queue and returns the counters that it increments. */
export function pushQueueMetrics(registry: MetricRegistry, planner: Planner) {
  const registers = [registry]
  const gauge = gaugesOf(registry)
  gauge('pilot_services', 'services known', () => planner.snapshot.services.size)
  gauge('pilot_virt_services', 'virtual services known', () => planner.snapshot.virtualServices.all.length)
  gauge('pilot_destrule_subsets', 'duplicate subsets across destination rules for the same host', () => duplicateSubsets(planner))
  for (const kind of ['http_over_current_tcp', 'tcp_over_current_http', 'tcp_over_current_tcp'] as const) {
    gauge(
      `pilot_conflict_outbound_listener_${kind}`,
      'conflicting outbound listeners',
      () => planner.builder.conflicts.filter((conflict) => conflict.kind === kind).length,
    )
  }
  gauge(
    'pilot_conflict_inbound_listener',
    'conflicting inbound listeners',
    () => planner.builder.conflicts.filter((conflict) => conflict.kind === 'inbound').length,
  )
  const counts = countsOfServices(planner)
  gauge('pilot_eds_no_instances', 'clusters without instances', () => counts().withoutInstances)
  gauge('pilot_duplicate_proxy_clusters', 'duplicate proxy clusters caused by service entries with the same hostname', () => counts().definedTwice)
  gauge('pilot_endpoint_not_ready', 'endpoints that are not ready', () => planner.state.services.unready)
  gauge('pilot_no_ip', 'sidecars that are the workload of no service', () => planner.sidecarsWithoutEndpoint)
  gauge('pilot_vservice_dup_domain', 'virtual services with duplicate domains', () => duplicateHosts(planner))
  gauge('pilot_invalid_out_listeners', 'invalid outbound listeners', () => planner.faults.all().filter((fault) => fault.type === 'lds').length)
  gauge(
    'pilot_invalid_resources',
    'resources that could not be made and stay at their last good state',
    () => planner.faults.all().filter(({ isLoss }) => !isLoss).length,
  )
  gauge('pilot_proxy_classes', 'classes of proxies that share their configuration', () => planner.classCount)
  gauge('pilot_slab_bytes', 'bytes of shared memory that hold encoded resources', () => planner.slabs.usage().bytes)
  const triggers = new Counter({ name: 'pilot_push_triggers', help: 'pushes triggered, by reason', labelNames: ['type'], registers })
  return {
    inbound: new Counter({ name: 'pilot_inbound_updates', help: 'updates received', labelNames: ['type'], registers }),
    /** Counts a push under each of its reasons. */
    triggered(reasons: readonly string[]): void {
      for (const reason of reasons) triggers.inc({ type: triggerTypes.has(reason) ? reason : 'unknown' })
    },
    avoided: new Counter({
      name: 'pilot_pushes_avoided_total',
      help: 'events that caused no push, since they changed the configuration of no proxy',
      registers,
    }),
  }
}

/** Returns a function that counts services, once for each snapshot however often it is called: a scrape lets the push queue do little. */
function countsOfServices(planner: Planner) {
  let counted: MeshSnapshot['services'] | undefined
  let counts = { withoutInstances: 0, definedTwice: 0 }
  return () => {
    const { services } = planner.snapshot
    if (services === counted) return counts
    counted = services
    counts = { withoutInstances: 0, definedTwice: 0 }
    for (const states of services.values()) {
      if (states.length > 1) counts.definedTwice++
      for (const { service, endpoints } of states) if (service.resolution === 'static' && endpoints.length === 0) counts.withoutInstances++
    }
    return counts
  }
}

/** Number of hosts that more than one virtual service claims for the mesh gateway. */
function duplicateHosts(planner: Planner): number {
  const seen = new Set<string>()
  const twice = new Set<string>()
  for (const service of planner.snapshot.virtualServices.all) {
    if (!service.gateways.includes('mesh')) continue
    for (const host of service.hosts) (seen.has(host) ? twice : seen).add(host)
  }
  return twice.size
}

function duplicateSubsets(planner: Planner): number {
  let count = 0
  for (const rules of planner.snapshot.destinationRules.byNamespace.values())
    for (const rule of [...rules.exact.values(), ...rules.wildcards]) count += rule.duplicateSubsets.length
  return count
}
