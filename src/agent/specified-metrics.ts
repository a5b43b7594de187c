/**
 * Metrics of the specification that count nothing in an agent: it has no services, no configuration of others and no orchestrator. They are
 * declared on its pages without series (docs/metrics.md, "Of the agent").
 */
import type { MetricFamily } from '../../protocols/messages/metrics.ts'

/** Names without the prefix, by type. */
const names: Readonly<Record<MetricFamily['type'], string>> = {
  counter: `
    galley_validation_config_delete_error galley_validation_config_load galley_validation_config_load_error
    galley_validation_config_update_error galley_validation_config_updates pilot_inbound_updates
    pilot_jwks_resolver_network_fetch_fail_total pilot_jwks_resolver_network_fetch_success_total pilot_orch_endpoints_with_no_pods
    pilot_orch_reg_events pilot_push_triggers pilot_total_rejected_configs pilot_total_xds_internal_errors
    pilot_xds_delayed_push_timeouts_total pilot_xds_delayed_pushes_total pilot_xds_push_context_errors xds_cache_evictions
    xds_cache_reads`,
  gauge: `
    endpoint_no_pod pilot_conflict_inbound_listener pilot_conflict_outbound_listener_http_over_current_tcp
    pilot_conflict_outbound_listener_tcp_over_current_http pilot_conflict_outbound_listener_tcp_over_current_tcp pilot_destrule_subsets
    pilot_duplicate_proxy_clusters pilot_eds_no_instances pilot_endpoint_not_ready pilot_invalid_out_listeners
    pilot_orch_endpoints_pending_pod pilot_no_ip pilot_services pilot_virt_services pilot_vservice_dup_domain pilot_xds_cds_reject
    pilot_xds_eds_reject pilot_xds_lds_reject pilot_xds_rds_reject xds_cache_size`,
  histogram: 'pilot_proxy_convergence_time pilot_proxy_queue_time',
}

/** The metrics, without series. */
export const withoutSeries: readonly MetricFamily[] = (['counter', 'gauge', 'histogram'] as const).flatMap((type) =>
  names[type]
    .trim()
    .split(/\s+/)
    .map((name) => ({ name, type, help: 'of pilot-discovery; an agent has none', buckets: [], series: [] })),
)
