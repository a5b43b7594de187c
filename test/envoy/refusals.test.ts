import { expect } from 'chai'
import fc from 'fast-check'
import { stringify } from 'yaml'
import { requestAuthentication } from '../../src/config/kinds/request-authentication.ts'
import { configKey, kinds } from '../../src/config/kinds.ts'
import { parseConfigFile } from '../../src/config/parse.ts'
import { readNode } from '../../src/model/proxy.ts'
import { Planner } from '../../src/push/planner.ts'
import { AcceptanceBatch } from '../harness/acceptance.ts'
import { documentsOf, mended, textOf } from '../harness/documents.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { madeOf, resourcesByProxy } from '../harness/made.ts'
import { unusableKeys, usableKeys } from '../harness/odd-keys.ts'
import { seed } from '../harness/seed.ts'
import { names, testSettings } from '../harness/settings.ts'
import { oddSpecs } from '../harness/whole-documents.ts'

/** The objects that the documents refer to. */
const there = `apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: base, namespace: fuzz}
spec: {hosts: [a.fuzz.svc.cluster.local, b.fuzz.svc.cluster.local, x.example.com], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}, {number: 443, name: tls, protocol: TLS}, {number: 8080, name: tcp}, {number: 9090, name: grpc}], endpoints: [{address: 10.1.0.1, labels: {app: v1}, locality: region/zone}, {address: 10.1.0.9}]}
---
apiVersion: networking.mesh.io/v1
kind: Gateway
metadata: {name: g, namespace: fuzz}
spec: {selector: {app: v1}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ['*']}, {port: {number: 443, name: tls, protocol: TLS}, tls: {mode: PASSTHROUGH}, hosts: ['*']}]}
---
apiVersion: networking.mesh.io/v1
kind: VirtualService
metadata: {name: base, namespace: fuzz}
spec: {hosts: [b.fuzz.svc.cluster.local], gateways: [mesh, g], http: [{route: [{destination: {host: a.fuzz.svc.cluster.local}}]}]}
`
const proxies = {
  redirected: { id: 'sidecar~10.1.0.1~p.fuzz~fuzz.svc.cluster.local', metadata: { LABELS: { app: 'v1' }, PROXY_CONFIG: '{}' } },
  transparent: { id: 'sidecar~10.1.0.1~t.fuzz~fuzz.svc.cluster.local', metadata: { INTERCEPTION_MODE: 'TPROXY', LABELS: { app: 'v1' } } },
  bound: { id: 'sidecar~10.1.0.1~q.fuzz~fuzz.svc.cluster.local', metadata: { INTERCEPTION_MODE: 'NONE', LABELS: { app: 'v1' } } },
  ipv6: { id: 'sidecar~fd00::1~r.fuzz~fuzz.svc.cluster.local', metadata: { DNS_CAPTURE: 'true', DNS_AUTO_ALLOCATE: 'true' } },
  gateway: { id: 'router~10.1.0.2~g.fuzz~fuzz.svc.cluster.local', metadata: { LABELS: { app: 'v1' }, ROUTER_MODE: 'sni-dnat' } },
}
const settings = { ...testSettings(), lockedKeys: '{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}' }
const given = parseConfigFile('there', there, names).objects

/** Adds the resources of all proxies with the document applied. Returns false if the document has no valid object. */
function add(batch: AcceptanceBatch, what: string, text: string): boolean {
  const { objects, standIns } = parseConfigFile('fuzz.yaml', text, names)
  const planner = new Planner(settings)
  for (const object of [...given, ...objects, ...standIns.values()]) planner.state.setConfig(configKey(object), object)
  planner.advance()
  for (const [name, { id, metadata }] of Object.entries(proxies))
    planner.connect(name, readNode({ id, metadata, locality: undefined, agent: { name: 'envoy', version: [1, 36] } }, names, true))
  for (const [proxy, resources] of resourcesByProxy(planner)) batch.add(`${what}, ${proxy}`, resources)
  return objects.length > 0
}

/** Whether Envoy rejected a missing certificate file. Such files belong to the proxy: discovery cannot check them. */
const isOfFiles = ({ reason }: { reason: string }) => /Failed to load .* from path|[Ii]nvalid path/.test(reason)

/** A policy with one inline key set. */
const withKeys = (keys: unknown[]) =>
  textOf({ kind: requestAuthentication, name: 'x', spec: { jwtRules: [{ issuer: 'i', jwks: JSON.stringify({ keys }) }] } }, 'ns')

describe('inline JWT key sets', () => {
  const batch = new AcceptanceBatch()
  before(() => {
    const [good] = Object.values(usableKeys)
    for (const [name, key] of Object.entries(usableKeys)) batch.add(name, madeOf(withKeys([key])).resources)
    for (const [name, key] of Object.entries(unusableKeys)) batch.add(`beside ${name}`, madeOf(withKeys([good, key])).resources)
  })
  for (const { version, path } of envoyBinaries())
    it(`are accepted by Envoy ${version} with each usable key, and with unusable keys beside a valid one`, async () => {
      expect(batch.size).to.be.above(Object.keys(usableKeys).length)
      expect(await batch.refusals(path)).to.deep.equal([])
    })
})

describe('EnvoyFilters that would set a socket option of a listener without a socket', () => {
  const batch = new AcceptanceBatch()
  const listenerPatch = (name: string, value: string) =>
    `  - {applyTo: LISTENER, match: {listener: {name: ${name}}}, patch: {operation: MERGE, value: ${value}}}`
  const option = '{level: 1, name: 9, int_value: 1, state: STATE_BOUND}'
  const patches = {
    'virtualOutbound that is not bound': listenerPatch('virtualOutbound', '{bind_to_port: false}'),
    'virtualInbound that is not bound': listenerPatch('virtualInbound', '{deprecated_v1: {bind_to_port: false}}'),
    'a transparent listener of a service': listenerPatch('0.0.0.0_80', '{transparent: true}'),
    'a socket option of a listener of a service': listenerPatch('0.0.0.0_80', `{socket_options: [${option}]}`),
    'a socket option of an additional address': listenerPatch(
      '0.0.0.0_80',
      `{socket_options: [{level: 1, name: 9, int_value: 1}], additional_addresses: [{address: {socket_address: {address: 127.0.0.1, port_value: 1}}, socket_options: {socket_options: [${option}]}}]}`,
    ),
  }
  const added = (value: string) =>
    `  - {applyTo: LISTENER, match: {context: SIDECAR_OUTBOUND}, patch: {operation: ADD, value: {name: added, bind_to_port: false, ${value}}}}`
  const echo =
    'filter_chains: [{filters: [{name: echo, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.echo.v3.Echo}}]}]'
  const address = 'address: {socket_address: {address: 127.0.0.1, port_value: 7777}}'
  const additions = {
    'an added listener': added(`transparent: true, ${address}, ${echo}`),
    'an added UDP listener': added(
      'address: {socket_address: {protocol: UDP, address: 127.0.0.1, port_value: 7777}}, listener_filters: [{name: dns, typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.udp.dns_filter.v3.DnsFilterConfig, stat_prefix: x, server_config: {inline_dns_table: {}}}}]',
    ),
    'an added listener on a unix socket': added(`socket_options: [${option}], address: {pipe: {path: /tmp/x}}, ${echo}`),
  }
  before(() => {
    for (const [what, patch] of Object.entries({ ...patches, ...additions }))
      add(
        batch,
        what,
        `apiVersion: networking.mesh.io/v1alpha3\nkind: EnvoyFilter\nmetadata: {name: f, namespace: fuzz}\nspec:\n  configPatches:\n${patch}\n`,
      )
  })
  for (const { version, path } of envoyBinaries())
    it(`do not crash Envoy ${version}`, async () => {
      expect(batch.size).to.be.above(20)
      expect(await batch.refusals(path)).to.deep.equal([])
    })
})

// FUZZ_TIMES multiplies the number of documents.
const times = Number(process.env.FUZZ_TIMES ?? 1)

describe('resources generated from unusual documents', function () {
  this.timeout(400_000 * times)
  const batch = new AcceptanceBatch()

  before(() => {
    let taken = 0
    // Samples evenly from all documents, with an offset that depends on the seed.
    const all = [...oddSpecs()]
    const step = Math.max(1, Math.floor(all.length / (100 * times)))
    for (let at = seed % step; at < all.length; at += step) {
      const { kind: name, spec, what } = all[at] as (typeof all)[number]
      const kind = kinds.get(name)
      if (kind) taken += Number(add(batch, what, textOf({ kind, name: 'x', spec }, 'fuzz')))
    }
    for (const kind of kinds.values())
      for (const made of fc.sample(fc.array(documentsOf(kind, 0), { minLength: 1, maxLength: 2 }), { seed, numRuns: 6 * times }))
        taken += Number(
          add(
            batch,
            `${kind.name} ${stringify(made.map(({ spec }) => spec)).slice(0, 2000)}`,
            made
              .map(mended)
              .map((one) => textOf(one, 'fuzz'))
              .join('---\n'),
          ),
        )
    expect(taken).to.be.above(80)
  })

  for (const { version, path } of envoyBinaries())
    it(`are not rejected by Envoy ${version}`, async () => {
      expect(batch.size).to.be.above(200)
      expect((await batch.refusals(path)).filter((refusal) => !isOfFiles(refusal))).to.deep.equal([])
    })
})
