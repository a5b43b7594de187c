import { readFileSync } from 'node:fs'
import { create, toBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { DiscoveryRequestSchema } from '../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { clusterType, endpointType } from '../../src/xds/type-urls.ts'
import { Service } from '../harness/service.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

/** Metrics of the specification (docs/metrics.md), by type. */
const specified = {
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
    xds_cache_reads
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
    xds_cache_size
    citadel_server_cert_chain_expiry_timestamp
    citadel_server_root_cert_expiry_timestamp
    galley_runtime_state_type_instances_total
    pilot_orch_object_errors`,
  histogram: `
    pilot_proxy_convergence_time
    pilot_proxy_queue_time
    pilot_xds_push_time
    pilot_xds_send_time
    galley_runtime_processor_event_span_duration_milliseconds
    galley_runtime_processor_snapshot_events_total
    galley_runtime_processor_snapshot_lifetime_duration_milliseconds`,
}

/** Parses the tables of docs/metrics.md except that of the agent: name and type of each metric, and whether its part is not built yet. */
function documented(): Map<string, { type: string; missing: boolean }> {
  const found = new Map<string, { type: string; missing: boolean }>()
  let missing = false
  for (const line of readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8').split('\n')) {
    if (line === '## Of the agent') break
    if (line.startsWith('## ')) missing = line.includes('not built yet')
    const row = /^\| `(\w+)` +\| (\w+) /.exec(line)
    if (!row) continue
    expect(found.has(row[1] as string), `${row[1]} is documented twice`).to.equal(false)
    found.set(row[1] as string, { type: row[2] as string, missing })
  }
  return found
}

describe('metrics', () => {
  const service = new Service({ env: { PILOT_XDS_CACHE_STATS: 'true' } })
  const clients: XdsClient[] = []
  const value = async (series: string) => {
    const line = (await service.metrics()).split('\n').find((text) => text.startsWith(`${series} `))
    return line === undefined ? undefined : Number(line.slice(series.length + 1))
  }
  const atLeast = (series: string, least = 1) => until(`${series} to be ${least}`, async () => ((await value(series)) ?? 0) >= least)
  const entry = (name: string, protocol: string, extra = '') =>
    `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: ${name}, namespace: ns}\nspec: {hosts: [${name}.ns], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: p, protocol: ${protocol}, targetPort: 8080}], endpoints: [{address: 10.7.0.1}]${extra}}\n`
  const connect = async (delta: boolean) => {
    const client = await new XdsClient(service.grpcPort, sidecarNode('10.7.0.1', 'pod', 'ns'), delta).connect().ready()
    clients.push(client)
    return client
  }

  before(async () => {
    service.write('a.yaml', entry('a', 'HTTP'))
    const made = new ServingCertificates(service.dir)
    made.authority('serving')
    const files = { tlsCertFile: 'serving.pem', tlsKeyFile: 'serving-key.pem' }
    for (const [flag, name] of Object.entries(files)) service.flags.push(`--${flag}`, made.file(name))
    service.flags.push('--secureGRPCAddr', `127.0.0.1:${await freePort()}`)
    await service.start()
  })
  after(() => service.dispose())
  afterEach(() => {
    for (const client of clients.splice(0)) client.close()
  })

  it('are those of the specification and of docs/metrics.md, with their types', async () => {
    const docs = documented()
    const known = Object.entries(specified).flatMap(([type, names]) =>
      names
        .trim()
        .split(/\s+/)
        .map((name) => [name, type] as const),
    )
    expect(known.filter(([name, type]) => docs.get(name)?.type !== type)).to.deep.equal([])
    const there = [...(await service.metrics()).matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name, type]) => `${name} ${type}`)
    const promised = [...docs].filter(([, { missing }]) => !missing).map(([name, { type }]) => `${name} ${type}`)
    expect(there.sort()).to.deep.equal(promised.sort())
  })

  it('count streams: calls, messages, connections, pushes and NACKs', async () => {
    const method = 'grpc_service="envoy.service.discovery.v3.AggregatedDiscoveryService",grpc_method="DeltaAggregatedResources"'
    const labels = `grpc_type="bidi_stream",${method}`
    expect(await value(`grpc_server_started_total{${labels}}`)).to.equal(0)
    const client = await connect(true)
    expect(await value(`grpc_server_started_total{${labels}}`)).to.equal(1)
    expect(await value(`grpc_server_msg_received_total{${labels}}`)).to.be.greaterThan(3)
    expect(await value(`grpc_server_msg_sent_total{${labels}}`)).to.be.greaterThan(2)
    expect(await value('pilot_xds{version="unknown"}')).to.equal(1)
    expect(await value('pilot_xds_pushes{type="cds"}')).to.be.greaterThan(0)
    await until('the time of each push to be counted', async () => {
      const [timed, pushed] = [await value('pilot_xds_push_time_count{type="cds"}'), await value('pilot_xds_pushes{type="cds"}')]
      return timed === pushed
    })
    client.refuseNext = clusterType
    service.write('b.yaml', entry('b', 'HTTP'))
    await atLeast('pilot_total_xds_rejects{type="cds"}')
    await atLeast('pilot_proxy_convergence_time_count')
    expect(await value('pilot_inbound_updates{type="config"}')).to.equal(2)
    expect(await value('pilot_orch_cfg_events{type="ServiceEntry",event="add"}')).to.equal(2)
    expect(await value('pilot_push_triggers{type="config"}')).to.be.greaterThan(0)
    client.close()
    await atLeast(`grpc_server_handling_seconds_count{${labels}}`)
    expect(
      (await value(`grpc_server_handled_total{${labels},grpc_code="OK"}`)) ??
        (await value(`grpc_server_handled_total{${labels},grpc_code="Canceled"}`)),
    ).to.equal(1)
  })

  it('of NACKs disappear with their proxies, and a proxy that rejects in a loop is logged at a limited rate', async () => {
    const client = await new XdsClient(service.grpcPort, sidecarNode('10.7.0.1', `long-${'x'.repeat(1500)}`, 'ns'), false).connect().ready()
    clients.push(client)
    client.refuseNext = 'not to be had'
    service.write('refused.yaml', entry('refused', 'HTTP'))
    const series = async () => /^pilot_xds_cds_reject\{.*?node="([^"]*)".*\} 1$/m.exec(await service.metrics())?.[1]
    await until('the refusal', async () => (await series()) !== undefined)
    expect((await series())?.length).to.equal(256)
    const before = (await value('pilot_total_xds_rejects{type="eds"}')) ?? 0
    const errorDetail = { code: 13, message: `again and again ${'y'.repeat(3000)}` }
    const refusal = create(DiscoveryRequestSchema, { typeUrl: endpointType, responseNonce: 'x', resourceNames: ['a'], errorDetail })
    for (let index = 0; index < 300; index++) client.sendRaw(toBinary(DiscoveryRequestSchema, refusal))
    await atLeast('pilot_total_xds_rejects{type="eds"}', before + 300)
    expect(await series()).to.be.a('string')
    client.close()
    await until('the series to go', async () => !(await service.metrics()).includes('pilot_xds_cds_reject{'))
    await service.output.says('further such lines are suppressed')
    // Five in ten seconds.
    await service.output.says('again and again', 5, 10)
  })

  it('count configuration problems: listener conflicts, rejected servers, invalid resources', async () => {
    await connect(false)
    service.write('tcp.yaml', entry('tcp', 'TCP'))
    await atLeast('pilot_conflict_inbound_listener')
    service.remove('tcp.yaml')
    await until('the conflict to go', async () => (await value('pilot_conflict_inbound_listener')) === 0)
    const before = (await value('pilot_total_xds_internal_errors')) ?? 0
    service.write(
      'vs.yaml',
      'apiVersion: networking.mesh.io/v1\nkind: VirtualService\nmetadata: {name: v, namespace: ns}\nspec: {hosts: [a.ns], http: [{match: [{uri: {regex: "/[a-z]{90}[A-Z]{90}"}}], route: [{destination: {host: a.ns}}]}]}\n',
    )
    await atLeast('pilot_total_xds_internal_errors', before + 1)
    expect(await value('pilot_xds_push_context_errors')).to.equal(0)
    service.write(
      'tokens.yaml',
      'apiVersion: security.mesh.io/v1\nkind: RequestAuthentication\nmetadata: {name: t, namespace: ns}\nspec: {jwtRules: [{issuer: i, jwksUri: "https://127.0.0.1:1/keys"}]}\n',
    )
    await atLeast('num_outgoing_retries{request_type="jwks"}')
    expect(await value('num_outgoing_requests{request_type="jwks"}')).to.be.greaterThan(1)
    expect(await value('num_failed_outgoing_requests{request_type="jwks"}')).to.be.greaterThan(0)
    expect(await value('outgoing_latency{request_type="jwks"}')).to.be.greaterThan(0)
    const server = (name: string, protocol: string) => `{port: {number: 9000, name: ${name}, protocol: ${protocol}}, hosts: ['*']}`
    service.write(
      'gw.yaml',
      `apiVersion: networking.mesh.io/v1\nkind: Gateway\nmetadata: {name: g, namespace: ns}\nspec: {selector: {app: gw}, servers: [${server('one', 'HTTP')}, ${server('two', 'TCP')}]}\n`,
    )
    const router = { id: 'router~10.7.0.9~gw.ns~ns.svc.cluster.local', metadata: { NAMESPACE: 'ns', LABELS: { app: 'gw' } } }
    clients.push(new XdsClient(service.grpcPort, router, true).connect())
    await until('the refused server to be counted', async () =>
      /^pilot_total_rejected_configs\{type="gateway",name="[^"]+"\} 1$/m.test(await service.metrics()),
    )
    expect(await value('scrapes_total')).to.be.greaterThan(5)
    expect(await value('process_resident_memory_bytes')).to.be.greaterThan(50e6)
  })
})
