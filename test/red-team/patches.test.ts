/** Patches that Envoy rejects must neither keep policies from proxies nor disable other patches (docs/resources.md, F7). */
import { expect } from 'chai'
import { describeAttacks, type Place } from '../harness/red-team.ts'
import { until } from '../harness/until.ts'

const deny = (path: string) => `apiVersion: security.mesh.io/v1
kind: AuthorizationPolicy
metadata: {name: denied, namespace: shop}
spec: {action: DENY, rules: [{to: [{operation: {paths: [${path}]}}]}]}
`
const header = (name: string) =>
  `{name: ${name}, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation, mutations: {response_mutations: [{append: {header: {key: x-${name}, value: "yes"}}}]}}}`
const lua = (code: string) =>
  `{name: script, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, default_source_code: {inline_string: "${code}"}}}`
const notThere =
  '{name: of-another-build, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.golang.v3alpha.Config, library_id: x}}'

function filter({ side, id }: Place, name: string, ...values: string[]): string {
  const context = side === 'sidecar' ? 'SIDECAR_INBOUND' : 'GATEWAY'
  const patches = values.map((value) => `  - {applyTo: HTTP_FILTER, match: {context: ${context}}, patch: {operation: INSERT_FIRST, value: ${value}}}`)
  return `apiVersion: networking.mesh.io/v1alpha3
kind: EnvoyFilter
metadata: {name: ${name}, namespace: shop}
spec:
  workloadSelector: {labels: {place: ${id}}}
  configPatches:
${patches.join('\n')}
`
}

describeAttacks(
  'EnvoyFilter patches that Envoy rejects',
  (place) => {
    const answers = (path: string) => async () => (await place.call(path)).status
    const becomes = (path: string, status: number) => until(`${path} to be answered ${status}`, async () => (await answers(path)()) === status)
    afterEach(() => place.service.write('mesh-config', ''))
    const put = (...documents: string[]) => place.service.write('policies.yaml', documents.join('---\n'))

    for (const [what, value] of Object.entries({ 'a filter type that Envoy lacks': notThere, 'an invalid Lua script': lua('function (') }))
      it(`with ${what} disable neither a simultaneous DENY policy nor other patches`, async () => {
        put()
        await becomes('/secret', 200)
        put(deny('/secret'), filter(place, 'bad', value), filter(place, 'good', header('good')))
        await becomes('/secret', 403)
        expect(await answers('/')()).to.equal(200)
        const { headers } = await place.call('/')
        expect(headers['x-good']).to.equal('yes')
      })

    it('with an invalid extension configuration disable neither a simultaneous DENY policy nor other patches', async () => {
      put()
      await becomes('/secret', 200)
      const lists = 'listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager}}}'
      const named =
        '{operation: INSERT_FIRST, value: {name: script, config_discovery: {config_source: {ads: {}}, type_urls: [type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua]}}}'
      const patches = `  - {applyTo: EXTENSION_CONFIG, patch: {operation: ADD, value: ${lua('function (')}}}\n  - {applyTo: HTTP_FILTER, match: {${lists}}, patch: ${named}}`
      put(deny('/secret'), `${filter(place, 'bad', header('good'))}${patches}\n`)
      await becomes('/secret', 403)
      await until('the other patch', async () => (await place.call('/')).headers['x-good'] === 'yes')
    })

    it('with values known to be invalid disable neither a simultaneous DENY policy nor other patches', async () => {
      put()
      await becomes('/secret', 200)
      const context = place.side === 'sidecar' ? 'SIDECAR_INBOUND' : 'GATEWAY'
      const patch = (applyTo: string, operation: string, value: string) =>
        `  - {applyTo: ${applyTo}, match: {context: ${context}}, patch: {operation: ${operation}, value: ${value}}}\n`
      const route = patch('HTTP_ROUTE', 'INSERT_FIRST', '{match: {prefix: /}, route: {cluster: x, hash_policy: [{header: {header_name: ""}}]}}')
      const merged = patch('HTTP_ROUTE', 'MERGE', '{route: {hash_policy: [{header: {header_name: ""}}]}}')
      const chain = patch('FILTER_CHAIN', 'MERGE', '{transport_socket: {name: ""}}')
      for (const bad of [route, merged, chain]) {
        put(deny('/secret'), filter(place, 'bad', header('good')) + bad)
        await becomes('/secret', 403)
        const { status, headers } = await place.call('/')
        expect([status, headers['x-good']]).to.deep.equal([200, 'yes'])
        put()
        await becomes('/secret', 200)
      }
    })

    if (place.side === 'gateway')
      it('of a virtual host disable no other patch of routes', async () => {
        const host = (value: string) => `  - {applyTo: VIRTUAL_HOST, match: {context: GATEWAY}, patch: {operation: MERGE, value: ${value}}}\n`
        const unknown = '{typed_per_filter_config: {nobody: {"@type": type.googleapis.com/envoy.extensions.of.nobody.v3.Config}}}'
        const good = '{response_headers_to_add: [{header: {key: x-routed, value: "yes"}}]}'
        put(`${filter(place, 'bad', header('good'))}${host(unknown)}${host(good)}`)
        await until('the other patch', async () => (await place.call('/')).headers['x-routed'] === 'yes')
      })

    it('are reported with their object, and applied again when the object is corrected', async () => {
      put(filter(place, 'bad', notThere))
      const line =
        /refused Listener \S+ by [^:]+: Didn't find a registered implementation for [^\n]+; patches \(HTTP_FILTER INSERT_FIRST\) are withdrawn from proxies that refuse them.*EnvoyFilter\/shop\/bad/
      await place.service.output.says(line)
      put(filter(place, 'bad', header('mended')))
      await until('the mended patch', async () => (await place.call('/')).headers['x-mended'] === 'yes')
    })

    it('take no other patch of their kind down, and come back when they are mended', async () => {
      const adds = (name: string) => lua(`function envoy_on_response(handle) handle:headers():add('x-${name}', 'yes') end`)
      const has = (name: string) => async () => (await place.call('/')).headers[`x-${name}`] === 'yes'
      const good = filter(place, 'good-one', adds('good'))
      put(good)
      await until('the good patch', has('good'))
      const said = place.service.output.fromNow()
      put(good, filter(place, 'bad-one', lua('function (')))
      await said.says(/patches \(HTTP_FILTER INSERT_FIRST\) are withdrawn from proxies that refuse them[^\n]*EnvoyFilter\/shop\/bad-one/)
      await until('the good patch beside the bad one', has('good'))
      type Row = Record<string, string>
      const acked = async (name: string) => {
        const rows = await place.service.debug<Row[]>(`config_distribution?resource=EnvoyFilter/shop/${name}`)
        return rows.find(({ proxy }) => proxy?.startsWith(place.id))?.listener_acked
      }
      await until('the refused object to be acknowledged by nobody', async () => (await acked('bad-one')) === '')
      await until('the good object to be acknowledged', async () => Number(await acked('good-one')) > 0)
      const without = async () => (await place.service.debug<Row[]>('noeffectz')).map(({ name }) => name)
      await until('the page to name what is refused', async () => (await without()).join() === 'bad-one')
      put(good, filter(place, 'bad-one', adds('mended')))
      await until('the mended patch', has('mended'))
      await until('the good patch beside it', has('good'))
      put(good)
      await until('one patch', async () => !(await has('mended')()))
      expect(await has('good')()).to.equal(true)
    })

    it('that add a cluster are withdrawn and reported with the object and the reason', async () => {
      const name = `added-at-${place.id}`
      const endpoint = '{address: {socket_address: {address: no.such, port_value: 7}}}'
      const value = `{name: ${name}, type: STATIC, load_assignment: {cluster_name: ${name}, endpoints: [{lb_endpoints: [{endpoint: ${endpoint}}]}]}}`
      const said = place.service.output.fromNow()
      put(`${filter(place, 'bad', header('good'))}  - {applyTo: CLUSTER, patch: {operation: ADD, value: ${value}}}\n`)
      await said.says(
        new RegExp(
          `refused Cluster ${name} by [^:]+: malformed IP address: no.such[^\\n]*; patches \\(CLUSTER ADD\\) are withdrawn[^\\n]*EnvoyFilter/shop/bad`,
        ),
      )
      await until('the other patch', async () => (await place.call('/')).headers['x-good'] === 'yes')
      const { faults } = await place.service.debug<{ faults: { resource: string; objects: string[] }[] }>('push_status')
      expect(faults.filter(({ resource }) => resource === `Cluster ${name}`).map(({ objects }) => objects)).to.deep.equal([['EnvoyFilter/shop/bad']])
    })

    it('are kept if the listener is rejected without them too: with a new policy, all requests are denied until it is accepted', async () => {
      put(filter(place, 'good', header('good')))
      await until('the patch', async () => (await place.call('/')).headers['x-good'] === 'yes')
      await becomes('/secret', 200)
      const said = place.service.output.fromNow()
      place.service.write('mesh-config', 'accessLogFile: /no/such/directory/log')
      await said.says(/the proxy keeps the previous resource/)
      put(filter(place, 'good', header('good')), deny('/secret'))
      await becomes('/secret', 403)
      await becomes('/', 403)
      await said.says(/the policies changed with it, so it is replaced by a listener that denies all traffic.*AuthorizationPolicy\/shop\/denied/)
      place.service.write('mesh-config', '')
      await becomes('/', 200)
      expect(await answers('/secret')()).to.equal(403)
      expect((await place.call('/')).headers['x-good']).to.equal('yes')
    })
  },
  { refuses: true },
)
