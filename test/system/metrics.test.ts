import { create, toBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { mediaTypes } from '../../actors/runtime/metrics-format.ts'
import { freePort } from '../../bench/ports.ts'
import { DeltaDiscoveryRequestSchema, DiscoveryRequestSchema } from '../../protocols/gen/envoy/service/discovery/v3/discovery_pb.js'
import { aliasHealthType, clusterType, endpointType, healthType } from '../../src/xds/type-urls.ts'
import { documentedMetrics } from '../harness/documented-metrics.ts'
import { missingParser, parseMetrics } from '../harness/metrics-parser.ts'
import { Service } from '../harness/service.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { specifiedForDiscovery } from '../harness/specified-metrics.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

/** The metrics of docs/metrics.md except those of the agent: name and type of each, and whether its part is not built yet, or not here. */
function documented(): Map<string, { type: string; missing: boolean }> {
  const found = new Map<string, { type: string; missing: boolean }>()
  for (const { name, type, section } of documentedMetrics()) {
    if (section === 'Of the agent') continue
    expect(found.has(name), `${name} is documented twice`).to.equal(false)
    found.set(name, { type, missing: /not built yet|With a followed cluster/.test(section) })
  }
  return found
}

describe('metrics', () => {
  const service = new Service({ env: { PILOT_XDS_CACHE_STATS: 'true', PILOT_ENABLE_ANALYSIS: 'true' } })
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
    service.flags.push('--log_output_level', 'default:info,processing:debug,resource:debug,cache:debug')
    service.flags.push('--secureGRPCAddr', `127.0.0.1:${await freePort()}`)
    await service.start()
  })
  after(() => service.dispose())
  afterEach(() => {
    for (const client of clients.splice(0)) client.close()
  })

  it('are those of the specification and of docs/metrics.md, with their types', async () => {
    const docs = documented()
    expect([...docs].map(([name, { type }]) => `${name} ${type}`)).to.include.members(specifiedForDiscovery)
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

  it('are the same in OpenMetrics, and pages in both formats at a time do not disturb each other', async function () {
    if ((await missingParser()) !== undefined) this.skip()
    await connect(true)
    const page = async (accept: string) => {
      const answer = await fetch(`http://127.0.0.1:${service.monitoringPort}/metrics`, { headers: { accept } })
      return { type: answer.headers.get('content-type'), text: await answer.text() }
    }
    const accepted = { text: '*/*', openmetrics: 'application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5' } as const
    const formats = ['text', 'openmetrics', 'text', 'openmetrics'] as const
    const pages = await Promise.all(formats.map((format) => page(accepted[format])))
    expect(pages.map(({ type }) => type)).to.deep.equal(formats.map((format) => mediaTypes[format]))
    for (const index of [2, 3]) expect(pages[index]?.text.match(/^# TYPE .*$/gm)).to.deep.equal(pages[index - 2]?.text.match(/^# TYPE .*$/gm))
    // The series of the runtime come and go by themselves.
    const series = ({ text }: { readonly text: string }) => text.match(/^(?!#|nodejs_(active|gc)_).+(?= \S+$)/gm)?.sort()
    for (const each of pages) expect(series(each)).to.deep.equal(series(pages[0] as { text: string }))
    const [, open] = pages.map(({ text }, index) => parseMetrics(text, formats[index] ?? 'text'))
    const typeOf = (name: string) => open?.find((metric) => metric.name === name)?.type
    expect(['pilot_xds_pushes', 'scrapes', 'pilot_services', 'pilot_xds_push_time'].map(typeOf)).to.deep.equal([
      'unknown',
      'counter',
      'gauge',
      'histogram',
    ])
  })

  it('count what is checked, what comes, what is in force and what is pushed', async () => {
    const passed = 'galley_validation_passed{group="networking.mesh.io",version="v1",resource="serviceentries"}'
    const failed = 'galley_validation_failed{group="networking.mesh.io",version="",resource="serviceentries",reason="invalid_resource"}'
    const before = { passed: await value(passed), published: (await value('galley_runtime_processor_snapshots_published_total')) ?? 0 }
    service.write('checked.yaml', `${entry('checked', 'HTTP')}---\n${entry('wrong', 'HTTP').replace('STATIC', 'NOWHERE')}---\n{ : [\n`)
    const secret = 'apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: ns}\ntype: kubernetes.io/tls\ndata: {tls.crt: bm8=, tls.key: bm8=}\n'
    service.write('secret.yaml', secret)
    await atLeast(failed)
    await atLeast('num_file_secret_failures_total')
    await atLeast('galley_validation_failed{group="",version="v1",resource="secrets",reason="invalid_resource"}')
    await atLeast('galley_validation_failed{group="",version="",resource="",reason="yaml_decode_error"}')
    expect(await value(passed)).to.be.above(before.passed ?? 0)
    await atLeast('galley_runtime_processor_snapshots_published_total', before.published + 1)
    for (const name of ['processor_events_processed_total', 'strategy_on_change_total', 'strategy_timer_quiesce_reached_total'])
      expect(await value(`galley_runtime_${name}`), name).to.be.above(0)
    for (const name of ['event_span_duration_milliseconds', 'snapshot_events_total', 'snapshot_lifetime_duration_milliseconds'])
      expect(await value(`galley_runtime_processor_${name}_count`), name).to.be.above(0)
    const instances = (await service.debug<{ kind: string }[]>('configz')).filter(({ kind }) => kind === 'ServiceEntry').length
    expect(await value('galley_runtime_state_type_instances_total{collection="networking.mesh.io/ServiceEntry"}'))
      .to.equal(instances)
      .and.to.be.above(1)
    await service.output.says(/\tprocessing\tpush \d+: \d+ changes? \(config/)
    await service.output.says(/\tresource\tadd ServiceEntry\/ns\/checked of checked\.yaml/)
    service.remove('checked.yaml')
    service.remove('secret.yaml')
    await service.output.says(/\tresource\tdelete ServiceEntry\/ns\/checked of checked\.yaml/)
  })

  it('count proxies that connect as a reason for a push, and sidecars that no endpoint has', async () => {
    expect(await value('pilot_no_ip')).to.equal(0)
    const triggered = async () => (await value('pilot_push_triggers{type="proxy"}')) ?? 0
    const before = await triggered()
    // A push of changes that goes out at the same time takes the proxy with it, and counts under its own reasons.
    await until('a push for a proxy', async () => {
      const client = await new XdsClient(service.grpcPort, sidecarNode('10.9.9.9', 'nowhere', 'ns'), true).connect().ready()
      clients.push(client)
      if ((await triggered()) > before) return true
      client.close()
      return false
    })
    await until('one sidecar without endpoint', async () => (await value('pilot_no_ip')) === 1)
  })

  for (const delta of [false, true])
    it(`do not count a report of an unhealthy workload as rejected configuration, ${delta ? 'delta' : 'state of the world'}`, async () => {
      const client = await connect(delta)
      const rejects = async () => /^pilot_total_xds_rejects\{.*Health.*$/m.exec(await service.metrics())?.[0]
      const errorDetail = { code: 500, message: 'the probe fails' }
      for (const typeUrl of [healthType, aliasHealthType])
        for (const report of [{ typeUrl }, { typeUrl, errorDetail }, { typeUrl }]) {
          const request = delta
            ? toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, report))
            : toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, report))
          client.sendRaw(request)
        }
      // Requests of a stream are read in order.
      const refusal = { typeUrl: endpointType, responseNonce: 'x', errorDetail: { code: 13, message: 'the last one' } }
      client.sendRaw(
        delta
          ? toBinary(DeltaDiscoveryRequestSchema, create(DeltaDiscoveryRequestSchema, refusal))
          : toBinary(DiscoveryRequestSchema, create(DiscoveryRequestSchema, refusal)),
      )
      await service.output.says('the last one', delta ? 2 : 1)
      expect(await rejects()).to.equal(undefined)
      expect(JSON.stringify(await service.debug('adsz')))
        .not.to.contain('HealthInformation')
        .and.not.to.contain('the probe fails')
    })

  it('of NACKs disappear with their proxies, and a proxy that rejects in a loop is logged at a limited rate', async () => {
    const client = await new XdsClient(service.grpcPort, sidecarNode('10.7.0.1', `long-${'x'.repeat(1500)}`, 'ns'), false).connect().ready()
    clients.push(client)
    // Hosts that were removed before go with a push of their own, two seconds later: a proxy that takes it has refused nothing.
    let [pushes, since] = [await value('pilot_xds_pushes{type="cds"}'), performance.now()]
    await until('calm', async () => {
      const now = await value('pilot_xds_pushes{type="cds"}')
      if (now !== pushes) [pushes, since] = [now, performance.now()]
      return performance.now() - since > 3000
    })
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
