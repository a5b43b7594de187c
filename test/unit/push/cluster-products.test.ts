/**
 * The features of the registry of a cluster in products: Services of all forms with slices of both families, Pods and WorkloadEntries that Services and
 * ServiceEntries select, visibility, discovered namespaces, cluster-local hosts, preferences of localities and gateways at nodes. After any history of
 * additions, changes, removals, missed events and lists, proxies have what those of a control plane have that reads the final state at once, in another
 * order, and the endpoints are those that the rules name (docs/resources.md, O3 to O12, E9).
 */
import { expect } from 'chai'
import fc from 'fast-check'
import { configKey, keyAt } from '../../../src/config/kinds.ts'
import { readMeshConfig } from '../../../src/config/mesh-texts.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { portOf, servesPort } from '../../../src/model/workload.ts'
import { ClusterRegistry } from '../../../src/orchestrator/cluster-registry.ts'
import { type ClusterObject, cut, type FollowedKind } from '../../../src/orchestrator/objects.ts'
import { Planner } from '../../../src/push/planner.ts'
import { resourcesOf } from '../../harness/held.ts'
import { runs } from '../../harness/seed.ts'
import { names, testSettings } from '../../harness/settings.ts'

type Document = Record<string, unknown>
const namespaces = ['shop', 'bank'] as const
type NamespaceName = (typeof namespaces)[number]

const ofNamespace = fc.constantFrom<NamespaceName>('shop', 'shop', 'bank')
const app = fc.constantFrom('x', 'x', 'y')
const few = <T>(...values: T[]) => fc.constantFrom(...values)

type EndpointState = 'ready' | 'unready' | 'terminating' | 'ended' | 'unset'
interface SlicePart {
  readonly namespace: NamespaceName
  readonly service: string
  readonly is6: boolean
  readonly port: number
  readonly hasPort: boolean
  /** Names of pods, and parts of the addresses of endpoints that are none. */
  readonly of: readonly { readonly at: string; readonly state: EndpointState }[]
}

/** What the objects of each kind are made of. */
const parts = {
  Namespace: fc.record({ mesh: few('0', '1', '1'), prefers: few(undefined, 'PreferSameNode'), network: few(undefined, 'n1') }),
  Node: fc.record({ zone: few('z1', 'z2'), outside: few(undefined, '192.0.2.1', '192.0.2.2'), edge: few('yes', 'no') }),
  Pod: fc.record({
    namespace: ofNamespace,
    app,
    node: few('n1', 'n2'),
    port: few(undefined, 8080, 8081),
    has6: fc.boolean(),
    phase: few('Running', 'Running', 'Succeeded'),
    isReady: fc.boolean(),
    tls: few(undefined, 'mesh'),
  }),
  Service: fc.record({
    namespace: ofNamespace,
    form: few('usual', 'usual', 'headless', 'external', 'nodes', 'balanced'),
    isDual: fc.boolean(),
    app: few(undefined, 'x', 'x', 'y'),
    targetPort: few<number | string>(8080, 9090, 'web', 'none'),
    exportTo: few(undefined, undefined, '.', '*', 'bank'),
    prefers: few(undefined, 'PreferClose', 'PreferSameZone', 'PreferSameNode'),
    publishesUnready: fc.boolean(),
    gateway: few(undefined, undefined, 'n1', 'n2'),
  }),
  EndpointSlice: fc.record<SlicePart>({
    namespace: ofNamespace,
    service: few('s1', 's2', 's3'),
    is6: fc.boolean(),
    port: few(8080, 8082),
    hasPort: few(true, true, false),
    of: fc.uniqueArray(
      fc.record({
        at: few<string>('p1', 'p2', 'p3', '1', '2'),
        state: few<EndpointState>('ready', 'ready', 'unready', 'terminating', 'ended', 'unset'),
      }),
      {
        maxLength: 4,
        selector: ({ at }) => at,
      },
    ),
  }),
  WorkloadEntry: fc.record({
    namespace: ofNamespace,
    app,
    last: few(8, 9),
    zone: few(undefined, 'r/z2'),
    ports: few<Record<string, number>>({}, { http: 6060 }, { web: 6061 }),
  }),
  ServiceEntry: fc.record({
    namespace: ofNamespace,
    host: few('one.test', 'two.test'),
    app: few(undefined, 'x', 'y'),
    exportTo: few<string[] | undefined>(undefined, ['.'], ['bank']),
    location: few('MESH_INTERNAL', 'MESH_EXTERNAL'),
    targetPort: few(undefined, 7070),
  }),
  Mesh: fc.record({
    discovers: few('all', 'all', 'labelled', 'shop'),
    local: few<string | undefined>(undefined, '*.shop.svc.cluster.local', 's1.bank.svc.cluster.local'),
  }),
}
type Kind = keyof typeof parts
type Part<Of extends Kind> = (typeof parts)[Of] extends fc.Arbitrary<infer Value> ? Value : never
type Model = { readonly [Of in Kind]: Map<string, Part<Of>> }
const kinds = Object.keys(parts) as Kind[]
const followed: ReadonlySet<Kind> = new Set<Kind>(['Namespace', 'Node', 'Pod', 'Service', 'EndpointSlice'])

const objectNames: { readonly [Of in Kind]: readonly string[] } = {
  ...{ Namespace: namespaces, Node: ['n1', 'n2'], Pod: ['p1', 'p2', 'p3'], Service: ['s1', 's2', 's3'] },
  ...{ EndpointSlice: ['e1', 'e2', 'e3', 'e4'], WorkloadEntry: ['w1', 'w2'], ServiceEntry: ['x1', 'x2'], Mesh: ['mesh'] },
}

const addressOf = (at: string, is6: boolean) => {
  const last = at.startsWith('p') ? at.slice(1) : `10${at}`
  return is6 ? `2001:db8::${last}` : `10.0.0.${last}`
}
const conditions: Readonly<Record<EndpointState, object>> = {
  ready: { ready: true, serving: true, terminating: false },
  unready: { ready: false, serving: false, terminating: false },
  terminating: { ready: false, serving: true, terminating: true },
  ended: { ready: false, serving: false, terminating: true },
  unset: {},
}

/** The namespace of an object, which is part of what it is: one name is in one namespace at a time. */
const namespaceOf = (value: object): string => (value as { namespace?: string }).namespace ?? ''

const documents: { readonly [Of in Kind]: (name: string, value: Part<Of>) => Document } = {
  Namespace: (name, { mesh, prefers, network }) => ({
    metadata: {
      name,
      labels: { mesh, ...(network ? { 'topology.mesh.io/network': network } : {}) },
      annotations: prefers ? { 'networking.mesh.io/traffic-distribution': prefers } : {},
    },
  }),
  Node: (name, { zone, outside, edge }) => ({
    metadata: { name, labels: { 'topology.kubernetes.io/region': 'r', 'topology.kubernetes.io/zone': zone, edge } },
    status: { addresses: outside ? [{ type: 'ExternalIP', address: outside }] : [] },
  }),
  Pod: (name, { namespace, app: label, node, port, has6, phase, isReady, tls }) => ({
    metadata: { name, namespace, labels: { app: label, ...(tls ? { 'security.mesh.io/tlsMode': tls } : {}) } },
    spec: { nodeName: node, serviceAccountName: 'seller', containers: [{ ports: port ? [{ name: 'web', containerPort: port }] : [] }] },
    status: {
      ...{ phase, podIP: addressOf(name, false), conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }] },
      podIPs: [{ ip: addressOf(name, false) }, ...(has6 ? [{ ip: addressOf(name, true) }] : [])],
    },
  }),
  Service: (name, value) => {
    const { namespace, form, isDual, app: selects, targetPort, exportTo, prefers, publishesUnready, gateway } = value
    const own = ['10.9.0.', '2001:db8::9:'].slice(0, isDual ? 2 : 1).map((start) => `${start}${name.slice(1)}`)
    const [clusterIP, clusterIPs] = form === 'headless' ? ['None', ['None']] : form === 'external' ? [undefined, undefined] : [own[0], own]
    return {
      metadata: {
        ...{ name, namespace, labels: gateway ? { 'topology.mesh.io/network': gateway } : {} },
        annotations: {
          ...(exportTo ? { 'networking.mesh.io/exportTo': exportTo } : {}),
          ...(form === 'nodes' ? { 'traffic.mesh.io/nodeSelector': '{"edge":"yes"}' } : {}),
        },
      },
      spec: {
        ...{ type: form === 'external' ? 'ExternalName' : form === 'nodes' ? 'NodePort' : form === 'balanced' ? 'LoadBalancer' : 'ClusterIP' },
        ...(form === 'external' ? { externalName: 'Far.example.com' } : {}),
        ...(selects ? { selector: { app: selects } } : {}),
        ...{ clusterIP, clusterIPs, publishNotReadyAddresses: publishesUnready },
        ...(prefers ? { trafficDistribution: prefers } : {}),
        ports: [
          { name: 'http', port: 80, targetPort, nodePort: form === 'nodes' ? 30080 : undefined },
          { name: 'gate', port: 15443, ...(form === 'nodes' ? { nodePort: 30443 } : {}) },
        ],
      },
      status: form === 'balanced' ? { loadBalancer: { ingress: [{ ip: '192.0.2.77' }] } } : {},
    }
  },
  EndpointSlice: (name, { namespace, service, is6, port, hasPort, of }) => ({
    metadata: { name, namespace, labels: { 'kubernetes.io/service-name': service } },
    addressType: is6 ? 'IPv6' : 'IPv4',
    ports: [...(hasPort ? [{ name: 'http', port }] : []), { name: 'gate', port: 15443 }],
    endpoints: of.map(({ at, state }) => ({
      ...{ addresses: [addressOf(at, is6)], conditions: conditions[state] },
      ...(at.startsWith('p') ? { targetRef: { kind: 'Pod', name: at } } : { nodeName: 'n1' }),
    })),
  }),
  WorkloadEntry: (name, { namespace, app: label, last, zone, ports }) => ({
    ...{ apiVersion: 'networking.mesh.io/v1', kind: 'WorkloadEntry', metadata: { name, namespace } },
    spec: { address: `10.0.0.${last}`, labels: { app: label }, ports, ...(zone ? { locality: zone } : {}) },
  }),
  ServiceEntry: (name, { namespace, host, app: selects, exportTo, location, targetPort }) => ({
    ...{ apiVersion: 'networking.mesh.io/v1', kind: 'ServiceEntry', metadata: { name, namespace } },
    spec: {
      ...{
        hosts: [host],
        location,
        resolution: 'STATIC',
        ports: [{ number: 80, name: 'http', protocol: 'HTTP', ...(targetPort ? { targetPort } : {}) }],
      },
      ...(selects ? { workloadSelector: { labels: { app: selects } } } : { endpoints: [{ address: '198.51.100.7' }] }),
      ...(exportTo ? { exportTo } : {}),
    },
  }),
  Mesh: (_, { discovers, local }) => ({
    ...(discovers === 'all'
      ? {}
      : { discoverySelectors: [{ matchLabels: discovers === 'shop' ? { 'kubernetes.io/metadata.name': 'shop' } : { mesh: '1' } }] }),
    ...(local ? { serviceSettings: [{ settings: { clusterLocal: true }, hosts: [local] }] } : {}),
  }),
}

const proxies = {
  p1: { id: `sidecar~${addressOf('p1', false)}~p1.shop~shop.svc.cluster.local`, metadata: { CLUSTER_ID: 'c1' } },
  p2: { id: `sidecar~${addressOf('p2', false)}~p2.bank~bank.svc.cluster.local`, metadata: { CLUSTER_ID: 'c1', MESH_DUAL_STACK: 'true' } },
  vm: { id: 'sidecar~10.0.0.8~vm.shop~shop.svc.cluster.local', metadata: { CLUSTER_ID: 'c2', NETWORK: 'n2', LABELS: { app: 'x' } } },
  gate: { id: 'router~10.0.0.99~gate.bank~bank.svc.cluster.local', metadata: { CLUSTER_ID: 'c1', LABELS: { edge: 'yes' } } },
}

/** A control plane that is told of objects. */
class World {
  readonly planner = new Planner(testSettings())
  readonly registry = new ClusterRegistry({ names, domain: 'cluster.local', cluster: 'c1' })
  /** What was told of an object last, since one may move to another namespace. */
  readonly #told = new Map<string, string>()

  connect(): void {
    for (const [name, { id, metadata }] of Object.entries(proxies))
      this.planner.connect(name, { ...readNode({ id, metadata, locality: undefined }, names, false), takesVirtualHosts: false })
  }

  /** Tells what a model has of an object. */
  tell<Of extends Kind>(kind: Of, name: string, value: Part<Of> | undefined): void {
    if (kind === 'Mesh') {
      const read = readMeshConfig(JSON.stringify(value ? documents.Mesh(name, value as unknown as Part<'Mesh'>) : {}))
      if ('error' in read) throw new Error(read.error)
      this.planner.state.setMesh(read.value)
      return
    }
    const at = `${kind} ${name}`
    const [before, namespace] = [this.#told.get(at), value && namespaceOf(value)]
    if (before !== undefined && before !== namespace) this.#set(kind, before, name, undefined)
    if (namespace === undefined) return void this.#told.delete(at)
    this.#told.set(at, namespace)
    this.#set(kind, namespace, name, documents[kind](name, value as never))
  }

  #set(kind: Kind, namespace: string, name: string, document: Document | undefined): void {
    const { state } = this.planner
    if (!followed.has(kind)) {
      const [object] = document ? parseConfigFile('f', JSON.stringify(document), names).objects : []
      if (document) expect(object, JSON.stringify(document)).not.to.equal(undefined)
      state.setConfig(keyAt(kind as 'WorkloadEntry', `${namespace}/${name}`), object)
      return
    }
    const read = document && cut(kind as FollowedKind, document, { names, source: 'c', cluster: 'c1' })
    expect(read?.faults ?? []).to.deep.equal([])
    this.registry.set(kind as FollowedKind, `${namespace}/${name}`, read?.object)
    if (kind === 'Service' || kind === 'EndpointSlice') return
    const of = { kind: kind as 'Pod', namespace, name, cluster: 'c1' }
    state.setConfig(configKey(of), (read?.object as ClusterObject | undefined)?.object)
  }

  /** Passes on what has changed, and takes it into a push. */
  advance(): void {
    const { services } = this.planner.state
    for (const change of this.registry.take())
      if (change.type === 'slice') services.setSlice('Orchestrator/c1', change.key, change.part, change.slice)
      else services.set('Orchestrator/c1', change.key, change.service && { service: change.service, slices: change.slices })
    this.planner.advance()
    this.planner.takePush()
  }

  /** The versions of what each proxy is sent, by type and name. */
  held(): object {
    return Object.fromEntries(
      Object.keys(proxies).map((proxy) => [
        proxy,
        Object.fromEntries(
          [...resourcesOf(this.planner, proxy)].map(([type, of]) => [type, of.map((each) => `${each.name}@${each.version}`).sort()]),
        ),
      ]),
    )
  }

  /** By host of a Service its endpoints: readiness, address, port and locality. */
  endpoints(): Record<string, string[]> {
    return Object.fromEntries(
      [...this.planner.snapshot.services].flatMap(([host, states]) =>
        host.endsWith('.cluster.local')
          ? [
              [
                host,
                states
                  .flatMap(({ service, endpoints }) =>
                    endpoints.flatMap((endpoint) =>
                      service.ports.flatMap((port) =>
                        servesPort(endpoint, port)
                          ? `${endpoint.readiness ?? 'ready'} ${endpoint.address} ${port.name} ${portOf(endpoint, port)} ${endpoint.locality}`
                          : [],
                      ),
                    ),
                  )
                  .sort(),
              ],
            ]
          : [],
      ),
    )
  }

  faults(): string[] {
    return this.planner.faults
      .all()
      .filter(({ type }) => type !== 'namespace')
      .map(({ type, resource }) => `${type} ${resource}`)
      .sort()
  }
}

const isDiscovered = (model: Model, namespace: string): boolean => {
  const { discovers = 'all' } = model.Mesh.get('mesh') ?? {}
  if (discovers === 'all') return true
  return discovers === 'shop' ? namespace === 'shop' : model.Namespace.get(namespace as NamespaceName)?.mesh === '1'
}

/** O3, O6, O7, O8, O10. */
function wantedEndpoints(model: Model): Record<string, string[]> {
  const zone = (node: string) => (model.Node.has(node) ? `r/${model.Node.get(node)?.zone}` : '')
  const readiness: Readonly<Record<string, string>> = {
    ready: 'ready',
    unset: 'ready',
    unready: 'unready',
    ended: 'unready',
    terminating: 'terminating',
  }
  const hosts = [...model.Service].filter(([, { namespace }]) => isDiscovered(model, namespace))
  return Object.fromEntries(
    hosts.map(([name, { namespace, form, app: selects, targetPort }]) => {
      const host = `${name}.${namespace}.svc.cluster.local`
      if (form === 'external')
        return [host, ['ready far.example.com gate 15443 ', `ready far.example.com http ${typeof targetPort === 'number' ? targetPort : 80} `]]
      const listed = [...model.EndpointSlice.values()].flatMap((slice) =>
        slice.service !== name || slice.namespace !== namespace
          ? []
          : slice.of.flatMap(({ at, state }) => {
              const pod = model.Pod.get(at)
              if (at.startsWith('p') && pod?.namespace !== namespace) return []
              const start = `${readiness[state]} ${addressOf(at, slice.is6)}`
              const locality = zone(pod ? pod.node : 'n1')
              return [`${start} gate 15443 ${locality}`, ...(slice.hasPort ? [`${start} http ${slice.port} ${locality}`] : [])]
            }),
      )
      const selected = [...model.WorkloadEntry.values()].flatMap((entry) => {
        if (selects === undefined || entry.app !== selects || entry.namespace !== namespace) return []
        const port = entry.ports.http ?? (typeof targetPort === 'number' ? targetPort : (entry.ports[targetPort] ?? 80))
        const [start, locality] = [`ready 10.0.0.${entry.last}`, entry.zone ?? '']
        return [`${start} gate 15443 ${locality}`, `${start} http ${port} ${locality}`]
      })
      return [host, [...new Set(listed), ...selected].sort()]
    }),
  )
}

/** A change of an object, of which the events may be missed until its kind is listed again; or such a list, in some order. */
type Step =
  | {
      readonly type: 'change'
      readonly kind: Kind
      readonly at: number
      readonly value: object | undefined
      readonly isMissed: boolean
      readonly isPushed: boolean
    }
  | { readonly type: 'list'; readonly kind: Kind; readonly order: number }

const change = (kind: Kind) =>
  fc.record({
    ...{ type: fc.constant('change' as const), kind: fc.constant(kind), at: fc.nat({ max: 11 }) },
    value: fc.option(parts[kind] as fc.Arbitrary<object>, { nil: undefined, freq: 4 }),
    isMissed: few(false, false, false, false, true),
    isPushed: fc.boolean(),
  })
const often: readonly Kind[] = ['Service', 'Service', 'Service', 'EndpointSlice', 'EndpointSlice', 'EndpointSlice', 'Pod', 'Pod']
const step: fc.Arbitrary<Step> = fc.oneof(...[...often, ...kinds].map((kind) => ({ weight: 2, arbitrary: change(kind) })), {
  weight: 2,
  arbitrary: fc.record({ type: fc.constant('list' as const), kind: few(...kinds), order: fc.nat({ max: 23 }) }),
})

/** What most objects are at first: a change of one is then seen in what depends on it. */
const beginning = fc.tuple(
  ...kinds.flatMap((kind) =>
    objectNames[kind].map((name) =>
      fc.record({
        kind: fc.constant(kind),
        name: fc.constant(name),
        value: fc.option(parts[kind] as fc.Arbitrary<object>, { nil: undefined, freq: 5 }),
      }),
    ),
  ),
)

/** One of the orders of some things. */
function ordered<T>(things: readonly T[], order: number): T[] {
  const left = [...things]
  const out: T[] = []
  for (let rest = order; left.length > 0; rest = Math.floor(rest / 2)) out.push(...left.splice(rest % left.length, 1))
  return out
}

describe('the features of a cluster in products', () => {
  it('leave proxies with what a fresh control plane has, and Services with the endpoints that the rules name, after any history', function () {
    this.timeout(600_000)
    fc.assert(
      fc.property(beginning, fc.array(step, { minLength: 1, maxLength: 25 }), fc.nat({ max: 1000 }), (first, steps, order) => {
        const model = Object.fromEntries(kinds.map((kind) => [kind, new Map()])) as unknown as Model
        const world = new World()
        world.advance()
        world.connect()
        const missed = new Map<Kind, Set<string>>(kinds.map((kind) => [kind, new Set()]))
        const tell = (to: World, kind: Kind, name: string) => to.tell(kind, name, model[kind].get(name) as never)
        // A list tells what is other than was told before.
        const list = (kind: Kind, at: number) => {
          for (const name of ordered([...(missed.get(kind) ?? [])], at)) tell(world, kind, name)
          missed.get(kind)?.clear()
        }
        for (const { kind, name, value } of first) {
          if (value === undefined) continue
          ;(model[kind] as Map<string, object>).set(name, value)
          tell(world, kind, name)
        }
        world.advance()
        for (const each of steps) {
          if (each.type === 'list') {
            list(each.kind, each.order)
            continue
          }
          const { kind, at, value, isMissed, isPushed } = each
          const name = objectNames[kind][at % objectNames[kind].length] as string
          const of = model[kind] as Map<string, object>
          if (value === undefined) of.delete(name)
          else of.set(name, value)
          if (isMissed) missed.get(kind)?.add(name)
          else {
            missed.get(kind)?.delete(name)
            tell(world, kind, name)
          }
          if (isPushed) world.advance()
        }
        for (const kind of ordered(kinds, order)) list(kind, order)
        world.advance()
        world.planner.sweep()

        expect(world.endpoints()).to.deep.equal(wantedEndpoints(model))
        const fresh = new World()
        for (const kind of ordered(kinds, order + 7)) for (const name of ordered([...model[kind].keys()], order)) tell(fresh, kind, name)
        fresh.advance()
        fresh.connect()
        fresh.advance()
        expect(world.endpoints()).to.deep.equal(fresh.endpoints())
        expect(world.held()).to.deep.equal(fresh.held())
        expect(world.faults()).to.deep.equal(fresh.faults())
        expect(world.registry.awaitedPods, 'endpoints whose pods are not known').to.equal(fresh.registry.awaitedPods)
      }),
      { numRuns: runs(300) },
    )
  })
})
