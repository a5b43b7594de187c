/** The metrics of the specification, as `name type`. */

type ByType = Readonly<Partial<Record<'counter' | 'gauge' | 'histogram', string>>>

const ofBoth: ByType = {
  counter: `
    galley_validation_config_delete_error
    galley_validation_config_load
    galley_validation_config_load_error
    galley_validation_config_update_error
    galley_validation_config_updates
    num_failed_outgoing_requests
    num_file_secret_failures_total
    num_file_watcher_failures_total
    num_outgoing_requests
    num_outgoing_retries
    outgoing_latency
    pilot_inbound_updates
    pilot_jwks_resolver_network_fetch_fail_total
    pilot_jwks_resolver_network_fetch_success_total
    pilot_orch_endpoints_with_no_pods
    pilot_orch_reg_events
    pilot_push_triggers
    pilot_total_rejected_configs
    pilot_total_xds_internal_errors
    pilot_total_xds_rejects
    pilot_xds_delayed_push_timeouts_total
    pilot_xds_delayed_pushes_total
    pilot_xds_expired_nonce
    pilot_xds_push_context_errors
    pilot_xds_pushes
    pilot_xds_write_timeout
    scrape_failures_total
    scrapes_total
    xds_cache_evictions
    xds_cache_reads`,
  gauge: `
    endpoint_no_pod
    mesh_build
    pilot_conflict_inbound_listener
    pilot_conflict_outbound_listener_http_over_current_tcp
    pilot_conflict_outbound_listener_tcp_over_current_http
    pilot_conflict_outbound_listener_tcp_over_current_tcp
    pilot_destrule_subsets
    pilot_duplicate_proxy_clusters
    pilot_eds_no_instances
    pilot_endpoint_not_ready
    pilot_invalid_out_listeners
    pilot_orch_endpoints_pending_pod
    pilot_no_ip
    pilot_services
    pilot_virt_services
    pilot_vservice_dup_domain
    pilot_xds
    pilot_xds_cds_reject
    pilot_xds_eds_reject
    pilot_xds_lds_reject
    pilot_xds_rds_reject
    startup_duration_seconds
    xds_cache_size`,
  histogram: `
    pilot_proxy_convergence_time
    pilot_proxy_queue_time
    pilot_xds_push_time
    pilot_xds_send_time`,
}

const ofDiscovery: ByType = {
  counter: `
    citadel_server_authentication_failure_count
    citadel_server_csr_count
    citadel_server_csr_parsing_err_count
    citadel_server_csr_sign_err_count
    citadel_server_id_extraction_err_count
    citadel_server_success_cert_issuance_count
    galley_runtime_processor_events_processed_total
    galley_runtime_processor_snapshots_published_total
    galley_runtime_strategy_on_change_total
    galley_runtime_strategy_timer_max_time_reached_total
    galley_runtime_strategy_timer_quiesce_reached_total
    galley_runtime_strategy_timer_resets_total
    galley_source_orch_dynamic_converter_failure_total
    galley_source_orch_dynamic_converter_success_total
    galley_source_orch_event_error_total
    galley_source_orch_event_success_total
    galley_validation_failed
    galley_validation_http_error
    galley_validation_passed
    pilot_orch_cfg_events
    pilot_total_orch_object_errors
    sidecar_injection_failure_total
    sidecar_injection_requests_total
    sidecar_injection_skip_total
    sidecar_injection_success_total`,
  gauge: `
    citadel_server_cert_chain_expiry_timestamp
    citadel_server_root_cert_expiry_timestamp
    galley_runtime_state_type_instances_total
    pilot_orch_object_errors`,
  histogram: `
    galley_runtime_processor_event_span_duration_milliseconds
    galley_runtime_processor_snapshot_events_total
    galley_runtime_processor_snapshot_lifetime_duration_milliseconds`,
}

const ofAgent: ByType = {
  counter: `
    proxy_connection_terminations
    meshd_connection_failures
    meshd_connection_terminations
    total_push_errors
    total_pushes
    total_secret_update_failures
    total_stale_connections`,
  gauge: `
    total_active_connections`,
}

const namesOf = (byType: ByType): string[] =>
  Object.entries(byType).flatMap(([type, names]) =>
    names
      .trim()
      .split(/\s+/)
      .map((name) => `${name} ${type}`),
  )

/** Those of pilot-discovery. */
export const specifiedForDiscovery: readonly string[] = [...namesOf(ofBoth), ...namesOf(ofDiscovery)]

/** Those of pilot-agent. */
export const specifiedForAgent: readonly string[] = [...namesOf(ofBoth), ...namesOf(ofAgent)]
