/** EnvoyFilters as users copy them from documentation, at stock proxies of each release: accepted, and effective. */
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import type { Answer } from '../harness/backend.ts'
import { serveMethod } from '../harness/grpc-server.ts'
import { describePlaces, type Place } from '../harness/red-team.ts'
import { until } from '../harness/until.ts'

const example = (name: string): string => readFileSync(new URL(`../../examples/rate-limits/${name}`, import.meta.url), 'utf8')
const extension = 'type.googleapis.com/envoy.extensions'
const manager = 'filter: {name: envoy.filters.network.http_connection_manager'

/** An EnvoyFilter for the inbound side of one place. Each patch has the object it applies to, its listener match if any, and the patch itself. */
function filter({ side, id }: Place, ...patches: [applyTo: string, match: string, patch: string][]): string {
  const context = side === 'sidecar' ? 'SIDECAR_INBOUND' : 'GATEWAY'
  const lines = patches.map(
    ([applyTo, match, patch]) => `  - {applyTo: ${applyTo}, match: {context: ${context}${match === '' ? '' : `, ${match}`}}, patch: ${patch}}`,
  )
  return `apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: copied, namespace: shop}
spec:
  workloadSelector: {labels: {place: ${id}}}
  configPatches:
${lines.join('\n')}
`
}

const http = (operation: string, name: string, type: string, config: string): [string, string, string] => [
  'HTTP_FILTER',
  `listener: {filterChain: {${manager}, subFilter: {name: envoy.filters.http.router}}}}`,
  `{operation: ${operation}, value: {name: ${name}, typed_config: {"@type": ${extension}.filters.http.${type}, ${config}}}}`,
]

describePlaces('EnvoyFilters that users copy', (place) => {
  const put = (text: string) => place.service.write('copied.yaml', text)
  afterEach(() => place.service.remove('copied.yaml'))

  it('with scripts, compression, metadata, external processing and connection manager settings are accepted together', async () => {
    put(
      filter(
        place,
        http(
          'INSERT_BEFORE',
          'envoy.lua',
          'lua.v3.Lua',
          `default_source_code: {inline_string: "function envoy_on_response(handle) handle:headers():add('x-script', 'ran') end"}`,
        ),
        http(
          'INSERT_BEFORE',
          'envoy.filters.http.compressor',
          'compressor.v3.Compressor',
          `compressor_library: {name: gzip, typed_config: {"@type": ${extension}.compression.gzip.compressor.v3.Gzip}}, response_direction_config: {common_config: {min_content_length: 1, content_type: [text/plain, application/json]}}`,
        ),
        http(
          'INSERT_FIRST',
          'envoy.filters.http.header_to_metadata',
          'header_to_metadata.v3.Config',
          'request_rules: [{header: x-tier, on_header_present: {metadata_namespace: envoy.lb, key: tier, type: STRING}}]',
        ),
        http(
          'INSERT_BEFORE',
          'ext-proc',
          'ext_proc.v3.ExternalProcessor',
          'failure_mode_allow: true, message_timeout: 0.1s, grpc_service: {envoy_grpc: {cluster_name: nobody}, timeout: 0.1s}, processing_mode: {request_header_mode: SKIP, response_header_mode: SKIP}',
        ),
        [
          'NETWORK_FILTER',
          `listener: {filterChain: {${manager}}}}`,
          `{operation: MERGE, value: {name: envoy.filters.network.http_connection_manager, typed_config: {"@type": ${extension}.filters.network.http_connection_manager.v3.HttpConnectionManager, server_header_transformation: PASS_THROUGH, use_remote_address: true, xff_num_trusted_hops: 1, max_request_headers_kb: 96, common_http_protocol_options: {idle_timeout: 30s}, access_log: [{name: envoy.access_loggers.stdout, typed_config: {"@type": ${extension}.access_loggers.stream.v3.StdoutAccessLog}}]}}}`,
        ],
        ['CLUSTER', '', '{operation: MERGE, value: {upstream_connection_options: {tcp_keepalive: {keepalive_time: 120, keepalive_interval: 30}}}}'],
        [
          'LISTENER',
          '',
          '{operation: MERGE, value: {per_connection_buffer_limit_bytes: 65536, socket_options: [{level: 1, name: 9, int_value: 1, state: STATE_PREBIND}]}}',
        ],
      ),
    )
    // Other socket options need other sockets: connections that the previous ones had not accepted yet are reset.
    let headers: Answer['headers'] = {}
    await until('the script', async () => {
      headers = (await place.call('/', { headers: { 'accept-encoding': 'gzip' } })).headers
      return headers['x-script'] === 'ran'
    })
    expect(headers.server, 'the server of the workload is passed on').to.not.equal('envoy')
  })

  it('deliver the configuration of a filter over ECDS by name', async () => {
    const type = `${extension}.filters.http.header_mutation.v3.HeaderMutation`
    put(
      filter(
        place,
        [
          'EXTENSION_CONFIG',
          '',
          `{operation: ADD, value: {name: answers, typed_config: {"@type": ${type}, mutations: {response_mutations: [{append: {header: {key: x-by-name, value: "yes"}}}]}}}}`,
        ],
        [
          'HTTP_FILTER',
          `listener: {filterChain: {${manager}, subFilter: {name: envoy.filters.http.router}}}}`,
          `{operation: INSERT_BEFORE, value: {name: answers, config_discovery: {config_source: {ads: {}, initial_fetch_timeout: 0s, resource_api_version: V3}, type_urls: ["${type}"]}}}`,
        ],
      ),
    )
    await until('the filter', async () => (await place.call('/')).headers['x-by-name'] === 'yes')
  })

  if (place.side === 'sidecar')
    it('from the example of local rate limiting answer 429 above the limit', async () => {
      put(example('local.yaml'))
      const statuses: number[] = []
      await until('the limit', async () => {
        const { status, headers } = await place.call('/')
        statuses.push(status)
        return status === 429 && headers['x-limit'] === 'local'
      })
      expect(statuses.filter((status) => status !== 429)).to.include(200)
    })

  if (place.side === 'gateway')
    it('from the example of global rate limiting answer 429 for customers that the rate limit service rejects', async () => {
      const asked: string[] = []
      // A RateLimitResponse with overall_code only: OK or OVER_LIMIT.
      const judge = (call: { request: Buffer }, done: (error: null, value: Buffer) => void) => {
        asked.push(call.request.toString('latin1'))
        done(null, Buffer.from([0x08, call.request.includes('greedy') ? 2 : 1]))
      }
      const { port, stop } = await serveMethod('/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit', false, judge)
      try {
        put(example('global.yaml').replace('ports: {grpc: 8081}', `ports: {grpc: ${port}}`))
        const as = (customer: string) => place.call('/cart', { headers: { 'x-customer': customer } })
        await until('the limit', async () => (await as('greedy')).status === 429)
        expect((await as('modest')).status).to.equal(200)
        expect(asked.at(-1)).to.include('shop').and.include('CUSTOMER').and.include('modest').and.include('/cart')
      } finally {
        stop()
      }
    })
})
