import { expect } from 'chai'
import { RE2JS } from 're2js'
import { statsChoice, statsConfig } from '../../../src/bootstrap/stats.ts'
import { prepareTestProxy } from '../../harness/prepared-proxy.ts'

const { prepared } = prepareTestProxy({})
const { statsTags = [] } = statsConfig(statsChoice(prepared.config, {}, 'mesh.io'), ['10.1.2.3'])

/** Applies a tag's regular expression to a stat name as Envoy does. Returns the remaining name and the value of the tag. */
function extract(tag: string, name: string): [rest: string, value: string] | undefined {
  const regex = statsTags.find(({ tagName }) => tagName === tag)?.regex ?? ''
  const both = [new RegExp(regex), RE2JS.compile(regex)] as const
  const match = both[0].exec(name)
  const matcher = both[1].matcher(name)
  expect(matcher.find(), `${tag} of ${name} in both dialects`).to.equal(match !== null)
  if (!match) return undefined
  expect([matcher.group(1), matcher.group(2)]).to.deep.equal([match[1], match[2]])
  const at = match.index + match[0].indexOf(match[1] as string)
  return [name.slice(0, at) + name.slice(at + (match[1] as string).length), match[2] as string]
}

describe('stat tags', () => {
  const cases: [string, string, [string, string] | undefined][] = [
    ['cluster_name', 'cluster.xds-grpc.upstream_cx_total', ['cluster.upstream_cx_total', 'xds-grpc']],
    [
      'cluster_name',
      'cluster.outbound|80||a.ns.svc.cluster.local.upstream_rq_200',
      ['cluster.upstream_rq_200', 'outbound|80||a.ns.svc.cluster.local'],
    ],
    ['cluster_name', 'cluster.outbound|80|v1|example.com.upstream_rq_200', ['cluster.com.upstream_rq_200', 'outbound|80|v1|example']],
    ['cluster_name', 'cluster_manager.active_clusters', undefined],
    ['tcp_prefix', 'tcp.inbound|80||.downstream_cx_total', ['tcp.downstream_cx_total', 'inbound|80||']],
    ['response_code', 'cluster.a.upstream_rq_503', ['cluster.a.upstream_rq', '503']],
    ['response_code', 'x.reporter=.=source;.;response_code=.=200;.;requests_total', ['x.reporter=.=source;.;requests_total', '200']],
    ['response_code', 'cluster.a.upstream_rq_5xx', undefined],
    ['response_code_class', 'cluster.a.upstream_rq_5xx', ['cluster.a.upstream_rq', '5xx']],
    ['http_conn_manager_listener_prefix', 'listener.0.0.0.0_80.http.inbound_1.downstream_rq_total', undefined],
    [
      'http_conn_manager_listener_prefix',
      'listener.0.0.0.0_80.http.10.1.2.3_80.downstream_rq_total',
      ['listener.0.0.0.0_80.http.downstream_rq_total', '10.1.2.3_80'],
    ],
    ['http_conn_manager_prefix', 'http.[fd00__3]_80.downstream_rq_total', ['http.downstream_rq_total', '[fd00__3]_80']],
    ['http_conn_manager_prefix', 'http.stats.downstream_rq_total', undefined],
    ['listener_address', 'listener.10.1.2.3_80.downstream_cx_total', ['listener.downstream_cx_total', '10.1.2.3_80']],
    ['mongo_prefix', 'mongo.shop.cmd.insert.total', ['mongo.cmd.insert.total', 'shop']],
    ['destination_service', 'x.destination_service=.=a.ns.svc;.;request_protocol=.=http;.;n', ['x.request_protocol=.=http;.;n', 'a.ns.svc']],
    ['component', 'component.proxy.tag.x;.n', ['tag.x;.n', 'proxy']],
    ['tag', 'component.proxy.tag.x;.n', ['component.proxy.n', 'x']],
  ]
  for (const [tag, name, expected] of cases) it(`extract ${tag} from ${name}`, () => expect(extract(tag, name)).to.deep.equal(expected))

  it('are listed once each, in the order of the specification, followed by the configured ones', () => {
    const choice = statsChoice(
      { ...prepared.config, extraStatTags: ['mine', 'reporter', 'cluster_name'] },
      { 'sidecar.mesh.io/extraStatTags': ' mine, other.tag ,' },
      'mesh.io',
    )
    const names = statsConfig(choice, []).statsTags?.map(({ tagName }) => tagName) ?? []
    expect(new Set(names).size).to.equal(names.length)
    expect(names.slice(0, 9)).to.deep.equal([
      'cluster_name',
      'tcp_prefix',
      'response_code',
      'response_code_class',
      'http_conn_manager_listener_prefix',
      'http_conn_manager_prefix',
      'listener_address',
      'mongo_prefix',
      'reporter',
    ])
    expect(names.slice(-6)).to.deep.equal(['mine', 'other.tag', 'cache', 'component', 'tag', 'wasm_filter'])
  })

  it("have an inclusion list with the workload's addresses in the form that stat names have", () => {
    const choice = { extraTags: [], inclusionPrefixes: ['http.[{pod_ip}]', 'server'], inclusionSuffixes: [], inclusionRegexps: ['.*{pod_ip}.*'] }
    const { patterns = [] } = statsConfig(choice, ['fd00::3', '10.1.2.3']).statsMatcher?.inclusionList ?? {}
    expect(patterns.map((pattern) => Object.values(pattern)[0])).to.deep.equal([
      'reporter=',
      'http.[fd00__3]',
      'http.[10.1.2.3]',
      'server',
      'cluster_manager',
      'listener_manager',
      'cluster.xds-grpc',
      'wasm',
      { regex: '.*fd00__3.*' },
      { regex: String.raw`.*10\.1\.2\.3.*` },
      'component',
    ])
  })
})
