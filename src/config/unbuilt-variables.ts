/**
 * The environment variables of the specification whose part is not implemented. Their values are checked, and setting one causes a warning
 * at start. A variable moves to `features.ts` when code reads it.
 */
import { longest, type Variable } from './variable.ts'

/** A variable without effect; `why` where it is not that its part is missing. */
export type UnbuiltVariable = Variable & { readonly why?: string }

/** The table of these variables. */
export const unbuiltVariables = {
  ENABLE_LEGACY_FSGROUP_INJECTION: {
    type: 'boolean',
    default: true,
    meaning:
      'when true, the pod fsGroup is set to 1337 on injection; required for orchestrator version 1.18 and older unless JWT_POLICY is first-party-jwt',
  },
  ENABLE_WASM_TELEMETRY: { type: 'boolean', default: false, meaning: 'enables Wasm-based telemetry' },
  EXTERNAL_MESHD: { type: 'boolean', default: false, meaning: 'when true, one discovery instance controls remote clusters including the CA' },
  INJECTION_WEBHOOK_CONFIG_NAME: {
    type: 'string',
    default: 'mesh-sidecar-injector',
    meaning: 'name of the mutating webhook configuration to patch when the installer command-line tool is not used',
  },
  MESH_METRICS_ANNOTATIONS: { type: 'string', default: '', meaning: '' },
  ORCH_INGRESS_NS: { type: 'string', default: '', meaning: '' },
  PILOT_ENABLED_SERVICE_APIS: { type: 'boolean', default: false, meaning: 'enables support for the orchestrator’s service-apis; experimental' },
  PILOT_ENABLE_ANALYSIS: {
    type: 'boolean',
    default: false,
    meaning: 'runs analyzers and writes analysis errors to the Status field of mesh resources',
  },
  PILOT_ENABLE_CRD_VALIDATION: {
    type: 'boolean',
    default: false,
    meaning: 'validates CRDs when retrieved from the orchestrator cache; for deployments without galley',
  },
  PILOT_ENABLE_ORCH_SELECT_WORKLOAD_ENTRIES: {
    type: 'boolean',
    default: true,
    meaning: 'orchestrator services with selectors select workload entries with matching labels',
  },
  PILOT_ENABLE_MYSQL_FILTER: {
    type: 'boolean',
    default: false,
    meaning: 'injects proxy.filters.network.mysql_proxy into the filter chain',
    why: 'releases of Envoy have no filter for MySQL, only contrib builds have',
  },
  PILOT_ENABLE_SERVICEENTRY_SELECT_PODS: { type: 'boolean', default: true, meaning: 'service entries with selectors select pods from the cluster' },
  PILOT_ENABLE_STATUS: { type: 'boolean', default: false, meaning: 'updates the CRD Status field of all mesh resources with reconciliation status' },
  PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION: {
    type: 'boolean',
    default: false,
    meaning: 'auto-registers WorkloadEntries from associated WorkloadGroups when a workload connects over XDS',
  },
  PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS: {
    type: 'boolean',
    default: false,
    meaning: 'automatic health checks of WorkloadEntries based on the associated WorkloadGroup configuration',
  },
  PILOT_STATUS_BURST: { type: 'integer', default: 500, range: [0, 2147483647], meaning: 'burst rate of status updates when status is enabled' },
  PILOT_STATUS_QPS: { type: 'number', default: 100, range: [0, 1000000000], meaning: 'QPS of status updates when status is enabled' },
  PILOT_USE_ENDPOINT_SLICE: {
    type: 'boolean',
    default: false,
    meaning:
      'uses EndpointSlices instead of Endpoints as the source of endpoints; the two are mutually exclusive; requires the orchestrator’s EndpointSlice controller',
  },
  PILOT_WORKLOAD_ENTRY_GRACE_PERIOD: {
    type: 'duration',
    default: '10s',
    range: ['0s', longest],
    meaning: 'time an auto-registered workload may stay disconnected from all discovery instances before its WorkloadEntry is cleaned up',
  },
  POD_NAME: { type: 'string', default: '', meaning: '' },
  TERMINATION_DRAIN_DURATION_SECONDS: {
    type: 'integer',
    default: 5,
    range: [0, 2147483647],
    meaning:
      'seconds allowed for connections to finish on agent shutdown; on SIGTERM or SIGINT the agent drains the active proxy (no new connections, existing ones complete), sleeps for this duration, then kills remaining proxy processes',
  },
  INJECT_ENABLED: { type: 'boolean', default: true, meaning: 'enables the mutating webhook handler' },
  ORCH_SIGNER: { type: 'string', default: '', meaning: 'orchestrator CA signer type; valid from orchestrator version 1.18' },
  USE_REMOTE_CERTS: {
    type: 'boolean',
    default: false,
    meaning: 'tries to load CA certificates from a remote cluster; used for an external discovery component',
  },
  VALIDATION_ENABLED: { type: 'boolean', default: true, meaning: 'enables the configuration validation handler' },
  VALIDATION_WEBHOOK_CONFIG_NAME: {
    type: 'string',
    default: 'meshd-${namespace}',
    meaning: 'name of the validating webhook configuration to patch; empty skips patching with cluster-admin rights',
  },
} as const satisfies Record<string, UnbuiltVariable>
