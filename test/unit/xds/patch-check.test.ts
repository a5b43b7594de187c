/** Mistakes in the patches of EnvoyFilters, by the check and as the push path decodes the same patches. */
import { globSync, readFileSync } from 'node:fs'
import { expect } from 'chai'
import { decideAdmission } from '../../../src/config/admitted.ts'
import type { EnvoyFilterSpec } from '../../../src/config/kinds/envoy-filter.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { faultsOfPatches } from '../../../src/config/patch-faults.ts'
import { PatternChecks } from '../../../src/config/patterns.ts'
import { patchFaults } from '../../../src/xds/envoy-filter/patch-check.ts'
import { names } from '../../harness/settings.ts'

type Patch = NonNullable<EnvoyFilterSpec['configPatches']>[number]
const patch = (applyTo: Patch['applyTo'], operation: Patch['patch']['operation'], value: object): Patch => ({ applyTo, patch: { operation, value } })
const type = (name: string, fields: object) => ({ '@type': `type.googleapis.com/${name}`, ...fields })
const filter = (config: object, operation: Patch['patch']['operation'] = 'INSERT_FIRST') =>
  patch('HTTP_FILTER', operation, { name: 'f', typed_config: config })
const lua = 'envoy.extensions.filters.http.lua.v3.Lua'
const buffer = 'envoy.extensions.filters.http.buffer.v3.Buffer'
const told = (given: Patch) => patchFaults(given).map(({ level, path, reason }) => `${level} ${path}: ${reason}`)

describe('the check of patches', () => {
  const rows: readonly (readonly [what: string, given: Patch, ...faults: string[]])[] = [
    [
      'a misspelt field of a resource',
      patch('CLUSTER', 'MERGE', { conect_timeout: '5s' }),
      'unknown field conect_timeout: envoy.config.cluster.v3.Cluster has no such field, left out; did you mean "connect_timeout"?',
    ],
    [
      'a misspelt field of a packed message',
      filter(type(lua, { inlineCod: 'x' })),
      `unknown field typed_config.inlineCod: ${lua} has no such field, so that proxies refuse it, unless their Envoy knows it; did you mean "inlineCode"?`,
    ],
    [
      'a misspelt type',
      filter(type(`${lua}a`, {})),
      `unknown type typed_config.@type: Envoy has no type ${lua}a, so proxies refuse the patch, unless they are built with it; did you mean "${lua}"?`,
    ],
    [
      'a type of the second version',
      filter(type('envoy.config.filter.http.lua.v2.Lua', {})),
      "error typed_config.@type: envoy.config.filter.http.lua.v2.Lua is a type of the second version of Envoy's API, which no release has any more: use that of v3",
    ],
    ['no type', filter({ inline_code: 'x' }), 'error typed_config.@type: required, but missing'],
    [
      'a value that is not in a list of names',
      patch('CLUSTER', 'MERGE', { dns_lookup_family: 'V4_ONY' }),
      'error dns_lookup_family: string "V4_ONY" is not one of AUTO, V4_ONLY, V6_ONLY, V4_PREFERRED, ALL; did you mean "V4_ONLY"?',
    ],
    [
      'values of wrong types',
      patch('CLUSTER', 'MERGE', {
        name: 1,
        connect_timeout: 'soon',
        max_requests_per_connection: 'abc',
        ignore_health_on_host_removal: 'yes',
        filters: {},
      }),
      'error name: expected text, got number 1',
      'error connect_timeout: expected a duration such as 5s, got string "soon"',
      'error max_requests_per_connection: expected a whole number, got string "abc"',
      'error ignore_health_on_host_removal: expected true or false, got string "yes"',
      'error filters: expected a list, got a mapping',
    ],
    [
      'a place within lists, maps and structs',
      filter({
        '@type': 'type.googleapis.com/xds.type.v3.TypedStruct',
        type_url: `type.googleapis.com/${lua}`,
        value: { source_codes: { a: { inline_string: 1 } } },
      }),
      'error typed_config.value.source_codes[a].inline_string: expected text, got number 1',
    ],
    [
      'fields that exclude each other',
      patch('HTTP_ROUTE', 'MERGE', { route: { cluster: 'a', cluster_header: 'b' } }),
      'error route.cluster_header: excluded by cluster',
    ],
    ['a rule of Envoy', filter(type(buffer, { max_request_bytes: 0 })), 'error : Buffer.max_request_bytes: 0 must be greater than 0'],
    [
      'a filter without configuration',
      patch('HTTP_FILTER', 'ADD', { name: 'f' }),
      'error : filter f has no typed_config: Envoy finds filters by the type of it',
    ],
  ]
  for (const [what, given, ...faults] of rows) it(`tells ${what}`, () => expect(told(given)).to.deep.equal(faults))

  it('is silent about what is right, about parts that are merged, and about types of other builds', () => {
    for (const given of [
      filter(type(lua, { inlineCode: 'x' })),
      patch('HTTP_FILTER', 'MERGE', { name: 'f' }),
      patch('CLUSTER', 'MERGE', { connect_timeout: '5s', lbPolicy: 'RANDOM', circuit_breakers: null }),
      patch('CLUSTER', 'REMOVE', { nothing: 1 }),
      patch('BOOTSTRAP', 'MERGE', { nothing: 1 }),
      filter(type('example.of.another.Build', { a: 1 })),
      filter(type('envoy.extensions.filters.http.golang.v3alpha.Config', { a: 1 })),
      filter(
        type('envoy.extensions.filters.http.wasm.v3.Wasm', {
          config: { configuration: type('google.protobuf.StringValue', { value: '{}' }), vm_config: { runtime: 'envoy.wasm.runtime.v8' } },
        }),
      ),
    ])
      expect(told(given)).to.deep.equal([])
  })

  it('ends with a bounded number of mistakes', () => {
    const many = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`field_${index}`, index]))
    expect(told(patch('CLUSTER', 'MERGE', many))).to.have.lengthOf(20)
  })

  it('tells in the goldens what the push path leaves out, and nothing else', () => {
    for (const file of globSync('test/golden/envoy-filters/*/in.yaml')) {
      const filters = parseConfigFile(file, readFileSync(file, 'utf8'), names).objects.filter(({ kind }) => kind === 'EnvoyFilter')
      const wrong = filters.flatMap(({ spec }) => faultsOfPatches(spec as EnvoyFilterSpec, patchFaults)).filter(({ level }) => level === 'error')
      const [name = ''] = /[^/]+(?=\/in\.yaml)/.exec(file) ?? []
      const expected: Readonly<Record<string, number>> = { types: 6, 'unbound-listeners': 1, 'http-filter-operations': 1 }
      expect(wrong.length, `${file}: ${JSON.stringify(wrong)}`).to.equal(expected[name] ?? 0)
    }
  })

  it('denies in a review what cannot be used, with the field, and warns of what an Envoy may know', () => {
    const reviewed = (given: Patch) => {
      const id = { group: 'networking.mesh.io', version: 'v1alpha3', kind: 'EnvoyFilter' }
      const object = { apiVersion: `${id.group}/v1alpha3`, kind: id.kind, metadata: { name: 'x', namespace: 'ns' }, spec: { configPatches: [given] } }
      const resource = { group: '', version: '', resource: '' }
      const request = { uid: 'u', kind: id, resource, subResource: '', name: 'x', namespace: 'ns', operation: 'CREATE', user: '', isDryRun: false }
      const checks = { names, patterns: new PatternChecks(), optOuts: new Set<never>(), patchFaults }
      return decideAdmission({ ...request, object, oldObject: undefined }, checks).answer
    }
    expect(reviewed(patch('CLUSTER', 'MERGE', { name: 1 }))).to.include({
      allowed: false,
      message: 'configuration is invalid: spec.configPatches[0].patch.value.name: expected text, got number 1',
    })
    const { allowed, warnings = [] } = reviewed(patch('CLUSTER', 'MERGE', { conect_timeout: '5s' }))
    expect([allowed, warnings.length, warnings[0]?.startsWith('spec.configPatches[0].patch.value.conect_timeout: ')]).to.deep.equal([true, 1, true])
  })
})
