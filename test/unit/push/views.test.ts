/**
 * The resources of a namespace, generated as shared groups minus hidden hosts plus an overlay, must equal those generated for it alone,
 * and after any history those of a planner that saw only the final state.
 */
import { fromBinary, toBinary } from '@bufbuild/protobuf'
import { type Any, anyUnpack } from '@bufbuild/protobuf/wkt'
import { expect } from 'chai'
import fc from 'fast-check'
import type { ConfigObject } from '../../../protocols/data.ts'
import { ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { VirtualHostSchema } from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import { RouteConfigurationSchema } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import { HttpConnectionManagerSchema } from '../../../protocols/gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js'
import { NameTableSchema } from '../../../protocols/gen/mesh/networking/nds/v1/nds_pb.js'
import { configKey } from '../../../src/config/kinds.ts'
import { readMeshConfig } from '../../../src/config/mesh-texts.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { Planner } from '../../../src/push/planner.ts'
import type { Resource } from '../../../src/xds/slab/resource.ts'
import { clusterType, endpointType, listenerType, nameTableType, routeType, virtualHostType } from '../../../src/xds/type-urls.ts'
import { resourcesOf } from '../../harness/held.ts'
import { Received } from '../../harness/received.ts'
import { runs } from '../../harness/seed.ts'
import { names, testSettings } from '../../harness/settings.ts'

const namespaces = ['n1', 'n2', 'n3', 'n4']

/** Returns the object of a document whose spec is given as JSON. */
function object(kind: string, namespace: string, name: string, spec: object, labels = {}): ConfigObject {
  const group = kind.endsWith('Authentication') || kind.endsWith('Policy') ? 'security' : 'networking'
  const text = JSON.stringify({ apiVersion: `${group}.mesh.io/v1`, kind, metadata: { name, namespace, labels }, spec })
  const { objects, faults } = parseConfigFile('f.yaml', text, names)
  if (!objects[0]) throw new Error(JSON.stringify(faults))
  return objects[0]
}

const namespace = fc.constantFrom('n1', 'n2', 'n3')
const exportTo = fc.constantFrom([], ['*'], ['.'], ['n1'], ['.', 'n3'], ['n2', 'n3'], ['~'])
const host = fc.constantFrom('a.com', 'b.com', 'c.com', '*.w.com', 'x.w.com', 'own.n1.svc.cluster.local', 'own.n2.svc.cluster.local')
const port = fc.constantFrom(
  { number: 80, name: 'http', protocol: 'HTTP' },
  { number: 80, name: 'grpc', protocol: 'GRPC' },
  { number: 81, name: 'http-more', protocol: 'HTTP2' },
  { number: 90, name: 'tcp', protocol: 'TCP' },
  { number: 90, name: 'tls', protocol: 'TLS' },
  { number: 80, name: 'bytes', protocol: 'TCP' },
  { number: 82, name: 'any', protocol: '' },
)
const service = fc
  .record({
    namespace,
    exportTo,
    host,
    ports: fc.uniqueArray(port, { minLength: 1, maxLength: 2, selector: ({ number }) => number }),
    address: fc.constantFrom([], ['10.9.0.1'], ['10.9.0.2', '10.9.0.1']),
    resolution: fc.constantFrom('STATIC', 'DNS', 'NONE'),
    last: fc.integer({ min: 1, max: 3 }),
  })
  .map(({ namespace: owner, exportTo: seen, host: name, ports, address, resolution, last }) =>
    object('ServiceEntry', owner, name.replace('*', 'any'), {
      hosts: [name],
      exportTo: seen,
      addresses: address,
      location: 'MESH_INTERNAL',
      resolution: name.startsWith('*') && resolution === 'DNS' ? 'STATIC' : resolution,
      ports,
      ...(resolution === 'NONE' ? {} : { endpoints: [{ address: `10.0.0.${last}`, labels: { v: String(last) } }] }),
    }),
  )
const rule = fc
  .record({
    namespace: fc.constantFrom('n1', 'n2', 'mesh-system'),
    exportTo,
    host: fc.oneof(host, fc.constant('*.com')),
    subset: fc.constantFrom('v1', 'v2'),
    name: fc.constantFrom('r', 's'),
  })
  .map(({ namespace: owner, exportTo: seen, host: name, subset, name: own }) =>
    object('DestinationRule', owner, own, {
      host: name,
      exportTo: seen,
      subsets: [{ name: subset, labels: { v: subset.slice(1) } }],
      trafficPolicy: { loadBalancer: { consistentHash: { httpHeaderName: subset } } },
    }),
  )
const match = fc.constantFrom({}, { sourceNamespace: 'n2' }, { sourceLabels: { app: 'x' } }, { port: 81 }, { uri: { prefix: '/p' } })
const virtualService = fc
  .record({
    namespace,
    exportTo,
    hosts: fc.uniqueArray(fc.oneof(host, fc.constantFrom('extra.com', '10.9.0.2', '*.com')), { minLength: 1, maxLength: 2 }),
    to: fc.constantFrom('a.com', 'b.com', 'nowhere.com'),
    match,
    kind: fc.constantFrom('http', 'tcp', 'both'),
    name: fc.constantFrom('v', 'u'),
  })
  .map(({ namespace: owner, exportTo: seen, hosts, to, match: when, kind, name }) => {
    const route = [{ destination: { host: to } }]
    const { uri, ...bytes } = when as { uri?: object }
    const tcp = { tcp: [{ ...(Object.keys(bytes).length > 0 ? { match: [bytes] } : {}), route }] }
    const http = { http: [{ ...(Object.keys(when).length > 0 ? { match: [when] } : {}), route }] }
    return object('VirtualService', owner, name, { hosts, exportTo: seen, ...(kind === 'tcp' ? {} : http), ...(kind === 'http' ? {} : tcp) })
  })
const owner = fc.constantFrom('n1', 'n2', 'mesh-system')
const policy = fc
  .record({
    owner,
    kind: fc.constantFrom('PeerAuthentication', 'AuthorizationPolicy'),
    selects: fc.boolean(),
    mode: fc.constantFrom('STRICT', 'DISABLE'),
  })
  .map(({ owner: own, kind, selects, mode }) =>
    object(kind, own, 'p', {
      ...(selects ? { selector: { matchLabels: { app: 'x' } } } : {}),
      ...(kind === 'PeerAuthentication' ? { mtls: { mode } } : { action: 'DENY', rules: [{ to: [{ operation: { paths: [`/${mode}`] } }] }] }),
    }),
  )
const filter = fc
  .record({
    owner,
    selects: fc.boolean(),
    seconds: fc.integer({ min: 1, max: 2 }),
    to: fc.constantFrom('CLUSTER', 'VIRTUAL_HOST', 'HTTP_FILTER', 'ROUTE_CONFIGURATION', 'LISTENER'),
    context: fc.constantFrom('SIDECAR_OUTBOUND', 'SIDECAR_INBOUND', 'ANY'),
    added: fc.boolean(),
    cluster: fc.constantFrom(undefined, { service: 'a.com' }, { service: '*.w.com' }, { name: 'outbound|80||b.com' }, { portNumber: 80 }),
    operation: fc.constantFrom('MERGE', 'REMOVE'),
  })
  .map(({ owner: own, selects, seconds, to, context: given, added, cluster, operation }) => {
    const adds = to === 'LISTENER' || (to === 'CLUSTER' && added)
    // Added resources may be for any context. Changed ones are outbound.
    const context = adds ? given : 'SIDECAR_OUTBOUND'
    const name = context === 'SIDECAR_INBOUND' ? 'added-in' : 'added'
    const values = {
      CLUSTER: adds
        ? { operation: 'ADD', value: { name, type: 'STATIC', connect_timeout: `${seconds}s` } }
        : { operation: cluster ? operation : 'MERGE', value: { connect_timeout: `${seconds}s` } },
      LISTENER: {
        operation: 'ADD',
        value: {
          name,
          address: { socket_address: { address: '0.0.0.0', port_value: 7000 + seconds } },
          filter_chains: [{ filters: [] }],
        },
      },
      VIRTUAL_HOST: { operation: 'MERGE', value: { request_headers_to_remove: [`x-${seconds}`] } },
      ROUTE_CONFIGURATION: { operation: 'MERGE', value: { response_headers_to_remove: [`y-${seconds}`] } },
      HTTP_FILTER: {
        operation: 'INSERT_FIRST',
        value: { name: `f${seconds}`, typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.grpc_web.v3.GrpcWeb' } },
      },
    }
    return object('EnvoyFilter', own, 'f', {
      ...(selects ? { workloadSelector: { labels: { app: 'x' } } } : {}),
      configPatches: [
        { applyTo: to, match: { context, ...(to === 'CLUSTER' && !adds ? { cluster } : {}) }, patch: values[to as keyof typeof values] },
      ],
    })
  })
const workload = fc.oneof(
  fc
    .record({ own: namespace, last: fc.integer({ min: 1, max: 3 }), app: fc.constantFrom('w', 'v') })
    .map(({ own, last, app }) => object('WorkloadEntry', own, 'w', { address: `10.2.0.${last}`, labels: { app }, serviceAccount: app })),
  namespace.map((own) =>
    object('ServiceEntry', own, 'selecting', {
      hosts: ['selecting.com'],
      location: 'MESH_INTERNAL',
      resolution: 'STATIC',
      ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
      workloadSelector: { labels: { app: 'w' } },
    }),
  ),
)
/** An egress listener for one port, which services may have as HTTP, as TCP or not at all. */
const listener = fc.record({
  port: fc.record({ number: fc.constantFrom(80, 82, 90), protocol: fc.constantFrom('', 'HTTP', 'TCP'), name: fc.constantFrom('', 'http-x') }),
  bind: fc.constantFrom('', '127.0.0.3', '127.0.0.4'),
  captureMode: fc.constantFrom('DEFAULT', 'NONE'),
  hosts: fc.constantFrom(['*/*'], ['./*'], ['n2/*', '*/a.com']),
})
/** A Sidecar of a namespace with its egress hosts and its policy for unknown hosts. */
const sidecar = fc
  .record({
    own: fc.constantFrom('n1', 'n2', 'mesh-system'),
    egress: fc.oneof(
      fc.constantFrom(['*/*'], ['./*'], ['n2/*', '*/a.com'], ['*/*.w.com'], ['~/*']).map((hosts) => [{ hosts }]),
      fc.uniqueArray(listener, { maxLength: 3, selector: ({ bind, port: { number } }) => `${bind} ${number}` }),
    ),
    policy: fc.constantFrom(undefined, { mode: 'REGISTRY_ONLY' }, { mode: 'ALLOW_ANY', egressProxy: { host: 'own' } }),
  })
  .map(({ own, egress, policy: outboundTrafficPolicy }) =>
    object('Sidecar', own, 'default', { egress, ...(outboundTrafficPolicy ? { outboundTrafficPolicy } : {}) }),
  )
const common = fc.oneof(
  { weight: 6, arbitrary: service },
  { weight: 4, arbitrary: rule },
  { weight: 4, arbitrary: virtualService },
  policy,
  filter,
  workload,
)
const stepOf = (objects: fc.Arbitrary<ConfigObject>) =>
  fc.record({
    object: objects,
    removed: fc.integer({ min: 0, max: 3 }).map((roll) => roll === 0),
    pushed: fc.boolean(),
  })

/** Proxies of every namespace, with and without a label that routes match, with and without VHDS, and one whose agent resolves names. */
const callers = namespaces.flatMap((own, index) => {
  const caller = (labels: object, hosts: boolean, dns: object, last: number) => ({
    connection: `${own} ${JSON.stringify({ ...labels, ...dns })} ${hosts}`,
    own,
    labels,
    hosts,
    dns,
    address: `10.1.${index}.${last}`,
  })
  const resolving = caller({}, true, { DNS_CAPTURE: 'true', DNS_AUTO_ALLOCATE: String(index % 2 === 0) }, 2)
  return [...[{}, { app: 'x' }].flatMap((labels, other) => [false, true].map((hosts) => caller(labels, hosts, {}, other))), resolving]
})

function connect(planner: Planner): void {
  for (const { connection, own, labels, hosts, dns, address } of callers) {
    const node = readNode(
      { id: `sidecar~${address}~p.${own}~${own}.svc.cluster.local`, metadata: { LABELS: labels, ...dns }, locality: undefined },
      names,
      false,
    )
    planner.connect(connection, { ...node, takesVirtualHosts: hosts })
  }
}

/** Returns the resources of a connection, with the virtual hosts of a route sorted. */
function held(planner: Planner, connection: string): Record<string, Record<string, string>> {
  const listed = (value: Uint8Array): string => {
    const route = fromBinary(RouteConfigurationSchema, value)
    const domains = route.virtualHosts.flatMap((virtualHost) => virtualHost.domains)
    expect(domains, `${connection} ${route.name}`).to.have.length(new Set(domains).size)
    const hosts = route.virtualHosts.map((virtualHost) => Buffer.from(toBinary(VirtualHostSchema, virtualHost)).toString('base64')).sort()
    return `${route.name} ${route.vhds ? 'by themselves' : ''} ${route.responseHeadersToRemove.join()} ${hosts.join()}`
  }
  return Object.fromEntries(
    [...resourcesOf(planner, connection)].map(([typeUrl, resources]) => {
      if (typeUrl === nameTableType) return [typeUrl, { table: tableOf(planner, resources) }]
      const text = (index: number) => listed(planner.groups.valueOf(resources[index] as (typeof resources)[number]))
      const content = resources.map(({ name, version }, index) => [name, typeUrl === routeType ? text(index) : version])
      if (typeUrl === virtualHostType) expectDomainsOnce(planner, resources, connection)
      if (typeUrl === listenerType) expectRoutes(planner, resources, connection)
      return [typeUrl, Object.fromEntries(content.sort())]
    }),
  )
}

/** Returns the names of a table, sorted: their place in it depends on their number. */
function tableOf(planner: Planner, resources: readonly Resource[]): string {
  expect(resources).to.have.length(1)
  const { table } = fromBinary(NameTableSchema, planner.groups.valueOf(resources[0] as Resource))
  return JSON.stringify(Object.entries(table).sort())
}

/** Asserts that no domain occurs twice in a route whose virtual hosts come from VHDS. */
function expectDomainsOnce(planner: Planner, resources: NonNullable<ReturnType<ReturnType<typeof resourcesOf>['get']>>, connection: string): void {
  const routes = new Map<string, string[]>()
  for (const resource of resources) {
    const route = resource.name.slice(0, resource.name.indexOf('/'))
    const { domains } = fromBinary(VirtualHostSchema, planner.groups.valueOf(resource))
    routes.set(route, [...(routes.get(route) ?? []), ...domains])
  }
  for (const [route, domains] of routes) expect(domains, `${connection} ${route}`).to.have.length(new Set(domains).size)
}

/** Asserts that every route configuration that a listener names is sent. Otherwise a proxy would wait for it forever. */
function expectRoutes(planner: Planner, listeners: readonly Resource[], connection: string): void {
  const routes = new Set(
    resourcesOf(planner, connection)
      .get(routeType)
      ?.map(({ name }) => name),
  )
  for (const resource of listeners) {
    let named = routesNamed.get(resource)
    if (!named) {
      const { filterChains } = fromBinary(ListenerSchema, planner.groups.valueOf(resource))
      const configs = filterChains.flatMap(({ filters }) => filters.flatMap(({ configType }) => configType.value ?? []))
      const specifiers = configs.map((config) => anyUnpack(config as Any, HttpConnectionManagerSchema)?.routeSpecifier)
      routesNamed.set(resource, (named = specifiers.flatMap((specifier) => (specifier?.case === 'rds' ? [specifier.value.routeConfigName] : []))))
    }
    for (const name of named) expect([...routes], `${connection} ${resource.name}`).to.include(name)
  }
}

const routesNamed = new WeakMap<Resource, readonly string[]>()

function plannerWith(objects: Iterable<ConfigObject>, mesh: object): Planner {
  const planner = new Planner(testSettings())
  // Memoisation is off: nothing is shared with another view.
  planner.builder.memo.get = (_space, _subject, _variant, _inputs, make) => make()
  const read = readMeshConfig(JSON.stringify(mesh))
  if ('error' in read) throw new Error(read.error)
  planner.state.setMesh(read.value)
  for (const each of objects) planner.state.setConfig(configKey(each), each)
  planner.advance()
  connect(planner)
  return planner
}

/** Sidecars that name everything visible: all resources of the namespace are then generated for it alone. */
const listing = namespaces.map((own) => object('Sidecar', own, 'all', { egress: [{ hosts: ['*/*.com', '*/*.local', '*/10.9.0.2'] }] }))

/** Takes a push in which no proxy may lose a cluster or its endpoints: routes to them must be removed first. */
function takeAll(received: Received): void {
  const kept = [clusterType, endpointType].flatMap((typeUrl) => callers.map(({ connection }) => ({ connection, typeUrl })))
  const before = kept.map(({ connection, typeUrl }) => received.of(connection, typeUrl))
  received.take()
  for (const [index, { connection, typeUrl }] of kept.entries()) {
    const now = received.of(connection, typeUrl)
    const lost = [...(before[index]?.keys() ?? [])].filter((name) => !now.has(name))
    expect(lost, connection).to.deep.equal([])
  }
}

/** Returns a planner that went through the steps, and the objects at the end. */
function live(
  steps: readonly { object: ConfigObject; removed: boolean; pushed: boolean }[],
  mesh: object,
): {
  living: Planner
  objects: Map<string, ConfigObject>
} {
  const objects = new Map<string, ConfigObject>()
  const living = plannerWith([], mesh)
  const received = new Received(living)
  for (const { object: each, removed, pushed } of steps) {
    const key = configKey(each)
    if (removed) objects.delete(key)
    else objects.set(key, { ...each, createdAt: objects.get(key)?.createdAt ?? objects.size })
    living.state.setConfig(key, objects.get(key))
    if (!pushed) continue
    living.advance()
    takeAll(received)
  }
  living.advance()
  takeAll(received)
  living.sweep()
  received.take()
  for (const { connection } of callers)
    for (const [typeUrl, resources] of resourcesOf(living, connection))
      expect(received.of(connection, typeUrl), `${connection} ${typeUrl}`).to.deep.equal(
        new Map(resources.map(({ name, version }) => [name, version])),
      )
  return { living, objects }
}

const mesh = fc.constantFrom({}, { proxyHttpPort: 15_007 })
const numRuns = runs(200)

describe('views', () => {
  it('contain the same as if everything visible were generated for each of them alone', () => {
    fc.assert(
      fc.property(fc.array(stepOf(common), { maxLength: 12 }), mesh, (steps, given) => {
        const { living, objects } = live(steps, given)
        const listed = plannerWith([...objects.values(), ...listing], given)
        for (const { connection } of callers) expect(held(living, connection), connection).to.deep.equal(held(listed, connection))
      }),
      { numRuns },
    )
  })

  it('contain the same as those of a planner that saw only the final state, after any history', () => {
    fc.assert(
      fc.property(fc.array(stepOf(fc.oneof({ weight: 10, arbitrary: common }, sidecar)), { maxLength: 16 }), mesh, (steps, given) => {
        const { living, objects } = live(steps, given)
        const fresh = plannerWith(objects.values(), given)
        for (const { connection } of callers) expect(held(living, connection), connection).to.deep.equal(held(fresh, connection))
      }),
      { numRuns },
    )
  })

  it('keep a private host whose VirtualService is removed', () => {
    const object = (kind: string, namespace: string, name: string, spec: object) =>
      ({ ...listing[0], kind, namespace, name, spec, createdAt: 0 }) as unknown as ConfigObject
    const routed = object('VirtualService', 'n2', 'u', { hosts: ['a.com'], exportTo: [], http: [{ route: [{ destination: { host: 'a.com' } }] }] })
    const service = object('ServiceEntry', 'n1', 'a.com', {
      ...{ hosts: ['a.com'], exportTo: ['n2', 'n3'], location: 'MESH_INTERNAL', resolution: 'STATIC' },
      ...{ ports: [{ number: 80, name: 'http', protocol: 'HTTP' }], endpoints: [{ address: '10.0.0.1' }] },
    })
    const step = (object: ConfigObject, removed: boolean, pushed: boolean) => ({ object, removed, pushed })
    const { living, objects } = live([step(routed, false, false), step(service, false, true), step(routed, true, false)], {})
    const listed = plannerWith([...objects.values(), ...listing], {})
    for (const { connection } of callers) expect(held(living, connection), connection).to.deep.equal(held(listed, connection))
  })
})
