/** Makes the dashboard of Grafana (`examples/operating/grafana/dashboard.json`) from a table of its panels. */
import type { Dashboard, Panel, RowPanel } from '@grafana/schema'

/** What a panel shows: its queries with their legends, the unit of the values, and whether it is their present value alone. */
interface Shown {
  readonly title: string
  readonly about: string
  readonly unit?: string
  readonly isStat?: boolean
  readonly queries: Readonly<Record<string, string>>
}

/** The series of the chosen replicas. */
const chosen = '{job="$job",instance=~"$instance"}'

const rate = (metric: string, labels = chosen) => `rate(${metric}${labels}[$__rate_interval])`
const sum = (by: string, of: string) => (by === '' ? `sum(${of})` : `sum by (${by}) (${of})`)
const quantile = (of: number, metric: string, by = '') =>
  `histogram_quantile(${of}, sum by (${by === '' ? '' : `${by}, `}le) (rate(${metric}_bucket${chosen}[$__rate_interval])))`

const rows: Readonly<Record<string, readonly Shown[]>> = {
  'At present': [
    { title: 'Replicas', about: 'Replicas that are scraped.', isStat: true, queries: { '': 'sum(up{job="$job"})' } },
    { title: 'Proxies', about: 'Connected proxies.', isStat: true, queries: { '': sum('', `pilot_xds${chosen}`) } },
    { title: 'Services', about: 'Services known.', isStat: true, queries: { '': `max(pilot_services${chosen})` } },
    {
      title: 'Proxies that refuse',
      about: 'Proxies that refused the last response of a type, and go on with what they had.',
      isStat: true,
      queries: {
        '': `count(count by (node) (${['cds', 'eds', 'lds', 'rds'].map((type) => `pilot_xds_${type}_reject${chosen}`).join(' or ')})) or vector(0)`,
      },
    },
    {
      title: 'Objects that cannot be used',
      about: 'Documents of files and objects of a cluster; their last good state stays.',
      isStat: true,
      queries: { '': `max(pilot_config_documents_invalid${chosen} or pilot_orch_object_errors${chosen})` },
    },
    {
      title: 'Root expires in',
      about: 'The time that the root of the mesh has left.',
      unit: 's',
      isStat: true,
      queries: { '': `min(citadel_server_root_cert_expiry_timestamp${chosen} > 0) - time()` },
    },
  ],
  Convergence: [
    {
      title: 'From a change to a proxy',
      about: 'Seconds between a change and a proxy having all of it.',
      unit: 's',
      queries: {
        'half of the proxies': quantile(0.5, 'pilot_proxy_convergence_time'),
        '99 of 100': quantile(0.99, 'pilot_proxy_convergence_time'),
        'waiting in the queue, 99 of 100': quantile(0.99, 'pilot_proxy_queue_time'),
      },
    },
    {
      title: 'Reasons of pushes',
      about: 'Pushes a second, by what caused them.',
      unit: 'ops',
      queries: { '{{type}}': sum('type', rate('pilot_push_triggers')), 'events that changed nothing': sum('', rate('pilot_pushes_avoided_total')) },
    },
    {
      title: 'Proxies that owe an answer',
      about: 'Proxies that have not answered the last push of changes, and those that read nothing of a response.',
      queries: {
        'owe an answer: {{instance}}': `pilot_push_outstanding_proxies${chosen}`,
        'stand still: {{instance}}': `pilot_xds_standing_still${chosen}`,
      },
    },
  ],
  Pushes: [
    { title: 'Responses', about: 'Responses a second, by type.', unit: 'ops', queries: { '{{type}}': sum('type', rate('pilot_xds_pushes')) } },
    {
      title: 'Bytes',
      about: 'Bytes of resources a second, by type.',
      unit: 'Bps',
      queries: { '{{type}}': sum('type', rate('pilot_xds_sent_bytes_total')) },
    },
    {
      title: 'Time of a response',
      about: 'Seconds until a response is sent, 99 of 100, by type.',
      unit: 's',
      queries: { '{{type}}': quantile(0.99, 'pilot_xds_push_time', 'type') },
    },
  ],
  Rejections: [
    {
      title: 'Responses that proxies refused',
      about: 'A second, by type.',
      unit: 'ops',
      queries: { '{{type}}': sum('type', rate('pilot_total_xds_rejects')) },
    },
    {
      title: 'What cannot be used or made',
      about: 'At present. Their last good state stays.',
      queries: {
        'documents: {{instance}}': `pilot_config_documents_invalid${chosen}`,
        'objects of the cluster: {{instance}}': `pilot_orch_object_errors${chosen}`,
        'files: {{instance}}': `pilot_config_files_unreadable${chosen}`,
        'resources: {{instance}}': `pilot_invalid_resources${chosen}`,
        'findings of analysis: {{instance}}': `pilot_analysis_findings${chosen}`,
      },
    },
    {
      title: 'Errors',
      about: 'A second: resources or the state that could not be made, objects that reviews refused, and pods that got no sidecar.',
      unit: 'ops',
      queries: {
        'state and views': sum('', rate('pilot_xds_push_context_errors')),
        resources: sum('', rate('pilot_total_xds_internal_errors')),
        'objects: {{reason}}': sum('reason', rate('galley_validation_failed')),
        pods: sum('', rate('sidecar_injection_failure_total')),
      },
    },
  ],
  Connections: [
    { title: 'Proxies of a replica', about: 'Connected proxies.', queries: { '{{instance}}': sum('instance', `pilot_xds${chosen}`) } },
    { title: 'Versions of proxies', about: 'Connected proxies by version.', queries: { '{{version}}': sum('version', `pilot_xds${chosen}`) } },
    {
      title: 'Calls that ended',
      about: 'RPCs a second, by status.',
      unit: 'ops',
      queries: { '{{grpc_method}} {{grpc_code}}': sum('grpc_method, grpc_code', rate('grpc_server_handled_total')) },
    },
    {
      title: 'Refused',
      about: 'A second: because of limits, for lack of a credential, and slow or too large handshakes.',
      unit: 'ops',
      queries: {
        'connections (descriptors)': sum('', rate('pilot_xds_refused_connections_total')),
        'proxies (PILOT_XDS_MAX_PROXIES)': sum('', rate('pilot_xds_refused_proxies_total')),
        'streams: {{reason}}': sum('reason', rate('pilot_xds_refused_streams_total')),
        'handshakes: {{reason}}': sum('reason', rate('pilot_xds_refused_handshakes_total')),
        'streams without progress': sum('', rate('pilot_xds_write_timeout')),
        'streams beyond a limit': sum('', rate('pilot_xds_exceeded_budgets_total')),
      },
    },
  ],
  Certificates: [
    {
      title: 'Requests for certificates',
      about: 'A second.',
      unit: 'ops',
      queries: {
        signed: sum('', rate('citadel_server_success_cert_issuance_count')),
        'without a valid credential': sum('', rate('citadel_server_authentication_failure_count')),
        'not signed: {{error}}': sum('error', rate('citadel_server_csr_sign_err_count')),
      },
    },
    {
      title: 'Time that is left',
      about: 'Until the root, and the first certificate of the chain that signs, expire.',
      unit: 's',
      queries: {
        'root: {{instance}}': `(citadel_server_root_cert_expiry_timestamp${chosen} > 0) - time()`,
        'chain: {{instance}}': `(citadel_server_cert_chain_expiry_timestamp${chosen} > 0) - time()`,
      },
    },
    {
      title: 'Exchange of the root',
      about: 'Stage: 0 none, 1 announce, 2 trust both, 3 sign with the new one, 4 retire.',
      queries: {
        'stage: {{instance}}': `citadel_server_rotation_stage${chosen}`,
        'identities that block it: {{instance}}': `citadel_server_rotation_blockers${chosen}`,
      },
    },
  ],
  'Threads and memory': [
    {
      title: 'CPU of each thread',
      about: 'Processors in use.',
      queries: { '{{instance}} {{actor}}': sum('instance, actor', rate('actor_cpu_seconds')) },
    },
    {
      title: 'Busy',
      about: 'The share of time that the event loop of each thread is busy.',
      unit: 'percentunit',
      queries: { '{{instance}} {{actor}}': `actor_event_loop_utilisation${chosen}` },
    },
    {
      title: 'Messages that wait',
      about: 'In the mailbox of each actor.',
      queries: { '{{instance}} {{actor}}': `actor_mailbox_depth${chosen}` },
    },
    {
      title: 'Restarts',
      about: 'Of actors, in an hour.',
      queries: { '{{instance}} {{actor}}': `increase(actor_restarts${chosen}[1h])` },
    },
    {
      title: 'Memory',
      about: 'Resident memory, and encoded resources as a part of it.',
      unit: 'bytes',
      queries: { 'resident: {{instance}}': `process_resident_memory_bytes${chosen}`, 'resources: {{instance}}': `pilot_slab_bytes${chosen}` },
    },
    {
      title: 'Heap of each thread',
      about: 'JavaScript heap in use.',
      unit: 'bytes',
      queries: { '{{instance}} {{actor}}': `actor_heap_bytes${chosen}` },
    },
    {
      title: 'Descriptors',
      about: 'Open files, and how many there may be.',
      queries: { 'open: {{instance}}': `process_open_fds${chosen}`, 'most: {{instance}}': `process_max_fds${chosen}` },
    },
  ],
  'The cluster': [
    {
      title: 'API server last heard of',
      about: 'Seconds, by kind; more than 180 is a kind that is not followed at present.',
      unit: 's',
      queries: { '{{kind}}': `max by (kind) (pilot_orch_watch_age_seconds${chosen})` },
    },
    {
      title: 'Events',
      about: 'Changes of objects a second.',
      unit: 'ops',
      queries: { '{{type}} {{event}}': sum('type, event', rate('pilot_orch_reg_events')) },
    },
    { title: 'Who leads', about: '1 where a replica leads.', queries: { '{{lease}}: {{instance}}': `pilot_leader_election_leading${chosen}` } },
    {
      title: 'Webhooks',
      about: 'Reviews a second.',
      unit: 'ops',
      queries: {
        pods: sum('', rate('sidecar_injection_requests_total')),
        'objects that are valid': sum('', rate('galley_validation_passed')),
        'answered with {{status}}': sum('status', rate('galley_validation_http_error')),
      },
    },
  ],
}

const datasource = { type: 'prometheus', uid: '${datasource}' }

/** Returns a panel at a place. */
function panelOf({ title, about, unit = 'short', isStat = false, queries }: Shown, id: number, gridPos: Panel['gridPos']): Panel {
  return {
    id,
    type: isStat ? 'stat' : 'timeseries',
    title,
    description: about,
    datasource,
    gridPos,
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    options: isStat
      ? { reduceOptions: { calcs: ['lastNotNull'] } }
      : { legend: { displayMode: 'list', placement: 'bottom', showLegend: true }, tooltip: { mode: 'multi', sort: 'desc' } },
    targets: Object.entries(queries).map(([legend, expr], index) => ({
      refId: String.fromCharCode('A'.charCodeAt(0) + index),
      datasource,
      expr,
      legendFormat: legend,
      range: !isStat,
      instant: isStat,
    })),
  }
}

/** Panels of a row side by side: stats in one line, others three in a line. */
function panelsOf(): (Panel | RowPanel)[] {
  const made: (Panel | RowPanel)[] = []
  let y = 0
  for (const [title, panels] of Object.entries(rows)) {
    made.push({ id: made.length + 1, type: 'row', title, collapsed: false, gridPos: { x: 0, y: y++, w: 24, h: 1 }, panels: [] })
    const [inLine, h] = panels[0]?.isStat ? [panels.length, 4] : [panels.length % 4 === 0 ? 4 : 3, 8]
    const w = 24 / inLine
    for (const [index, panel] of panels.entries()) {
      const gridPos = { x: (index % inLine) * w, y: y + Math.floor(index / inLine) * h, w, h }
      made.push(panelOf(panel, made.length + 1, gridPos))
    }
    y += Math.ceil(panels.length / inLine) * h
  }
  return made
}

const variable = (name: string, label: string, query: string, isMulti: boolean) => ({
  type: 'query' as const,
  name,
  label,
  datasource,
  query: { query, refId: name },
  multi: isMulti,
  includeAll: isMulti,
  ...(isMulti ? { allValue: '.*' } : {}),
  sort: 1,
  refresh: 2,
})

/** Returns the text of the dashboard. */
export function dashboardFile(): string {
  const dashboard: Dashboard = {
    uid: 'mesh-control-plane',
    title: 'Mesh control plane',
    tags: ['mesh'],
    schemaVersion: 39,
    editable: true,
    refresh: '30s',
    time: { from: 'now-1h', to: 'now' },
    templating: {
      list: [
        { type: 'datasource', name: 'datasource', label: 'Data source', query: 'prometheus' },
        variable('job', 'Job', 'label_values(pilot_info, job)', false),
        variable('instance', 'Replica', 'label_values(pilot_info{job="$job"}, instance)', true),
      ],
    },
    panels: panelsOf(),
  }
  return `${JSON.stringify(dashboard, undefined, 2)}\n`
}
