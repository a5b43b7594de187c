/**
 * The registry of a cluster in combination: Services, slices, pods, nodes and WorkloadEntries that come, change and go in any order. What the
 * control plane holds after any history is held against an oracle that knows the rules only (docs/resources.md, O6 to O12, P6), and against a
 * control plane that reads the final state at once.
 */
import { expect } from 'chai'
import fc from 'fast-check'
import { configKey, keyAt } from '../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { portOf, servesPort } from '../../../src/model/workload.ts'
import { ClusterRegistry, type RegistryChange } from '../../../src/orchestrator/cluster-registry.ts'
import { type ClusterObject, cut, type FollowedKind } from '../../../src/orchestrator/objects.ts'
import { Planner } from '../../../src/push/planner.ts'
import { runs } from '../../harness/seed.ts'
import { names, testSettings } from '../../harness/settings.ts'

type Document = Record<string, unknown>

interface ServiceModel {
  readonly app: string | undefined
  readonly isHeadless: boolean
  readonly targetPort: number | 'web' | 'none'
  readonly prefers: string | undefined
}
interface PodModel {
  readonly app: string
  readonly node: string
  readonly web: number | undefined
}
interface SliceModel {
  readonly service: string
  readonly port: number
  /** Names of pods, and addresses of endpoints that are none. */
  readonly of: readonly string[]
}
interface EntryModel {
  readonly app: string
  readonly last: number
  readonly ports: Readonly<Record<string, number>>
}
interface Model {
  readonly Service: Map<string, ServiceModel>
  readonly Pod: Map<string, PodModel>
  readonly EndpointSlice: Map<string, SliceModel>
  readonly Node: Map<string, string>
  readonly WorkloadEntry: Map<string, EntryModel>
}

const namespace = 'shop'
const services = ['s1', 's2', 's3']
const pods = ['p1', 'p2', 'p3']
const nodes = ['n1', 'n2']
const addressOf = (pod: string) => `10.0.0.${pod.slice(1)}`
const hostOf = (service: string) => `${service}.${namespace}.svc.cluster.local`
const metadata = (name: string, more: Document = {}) => ({ name, namespace, ...more })

/** The documents of the parts of a model. */
const documents: { readonly [Kind in keyof Model]: (name: string, value: never) => Document } = {
  Service: (name, { app, isHeadless, targetPort, prefers }: ServiceModel) => ({
    metadata: metadata(name),
    spec: {
      ...(app === undefined ? {} : { selector: { app } }),
      clusterIP: isHeadless ? 'None' : `10.9.0.${name.slice(1)}`,
      ports: [{ name: 'http', port: 80, targetPort }],
      ...(prefers === undefined ? {} : { trafficDistribution: prefers }),
    },
  }),
  Pod: (name, { app, node, web }: PodModel) => ({
    metadata: metadata(name, { labels: { app } }),
    spec: {
      nodeName: node,
      serviceAccountName: 'seller',
      containers: [{ ports: web === undefined ? [] : [{ name: 'web', containerPort: web }] }],
    },
    status: { podIP: addressOf(name) },
  }),
  EndpointSlice: (name, { service, port, of }: SliceModel) => ({
    metadata: metadata(name, { labels: { 'kubernetes.io/service-name': service } }),
    addressType: 'IPv4',
    ports: [{ name: 'http', port }],
    endpoints: of.map((each) =>
      each.startsWith('p') ? { addresses: [addressOf(each)], targetRef: { kind: 'Pod', name: each } } : { addresses: [each], nodeName: 'n1' },
    ),
  }),
  Node: (name, zone: string) => ({ metadata: { name, labels: { 'topology.kubernetes.io/region': 'r', 'topology.kubernetes.io/zone': zone } } }),
  WorkloadEntry: (name, { app, last, ports }: EntryModel) => ({
    apiVersion: 'networking.mesh.io/v1',
    kind: 'WorkloadEntry',
    metadata: metadata(name),
    spec: { address: `10.0.0.${last}`, labels: { app }, ports },
  }),
}

/** The proxies: of two pods, of a workload that is no pod, and of a pod that is never known. */
const proxies = {
  p1: { address: addressOf('p1'), metadata: { LABELS: { app: 'stale' } } },
  p2: { address: addressOf('p2'), metadata: {} },
  vm: { address: '10.0.0.8', metadata: {} },
  unknown: { address: '10.0.0.7', metadata: { LABELS: { app: 'x' }, POD_PORTS: '[{"name":"web","containerPort":7777,"protocol":"TCP"}]' } },
}
type ProxyName = keyof typeof proxies

/** A control plane that follows the model. */
class World {
  readonly planner = new Planner(testSettings())
  readonly #registry = new ClusterRegistry({ names, domain: 'cluster.local', cluster: 'c1' })

  constructor() {
    for (const [name, { address, metadata: given }] of Object.entries(proxies))
      this.planner.connect(name, {
        ...readNode(
          {
            id: `sidecar~${address}~${name}.${namespace}~${namespace}.svc.cluster.local`,
            metadata: { NAMESPACE: namespace, ...given },
            locality: undefined,
          },
          names,
          false,
        ),
        takesVirtualHosts: false,
      })
  }

  set<Kind extends keyof Model>(kind: Kind, name: string, model: Model): void {
    const value = model[kind].get(name)
    const document = value === undefined ? undefined : documents[kind](name, value as never)
    const { state } = this.planner
    if (kind === 'WorkloadEntry') {
      const object = document && parseConfigFile('f', JSON.stringify(document), names).objects[0]
      state.setConfig(object ? configKey(object) : keyAt('WorkloadEntry', `${namespace}/${name}`), object)
      return
    }
    const followed = kind as FollowedKind
    const key = kind === 'Node' ? `/${name}` : `${namespace}/${name}`
    const { object, faults } = document ? cut(followed, document, { names, source: 'c', cluster: 'c1' }) : { object: undefined, faults: [] }
    expect(faults).to.deep.equal([])
    this.#registry.set(followed, key, object)
    if (kind !== 'Pod' && kind !== 'Node') return
    const of = kind === 'Node' ? { kind, namespace: '', name, cluster: 'c1' } : { kind, namespace, name, cluster: 'c1' }
    state.setConfig(configKey(of), (object as ClusterObject | undefined)?.object)
  }

  /** Passes on what has changed, and takes it into a push. */
  advance(): this {
    for (const change of this.#registry.take()) this.#pass(change)
    this.planner.advance()
    this.planner.takePush()
    return this
  }

  #pass(change: RegistryChange): void {
    const { state } = this.planner
    if (change.type === 'slice') state.services.setSlice('Orchestrator/c1', change.key, change.part, change.slice)
    else state.services.set('Orchestrator/c1', change.key, change.service && { service: change.service, slices: change.slices })
  }

  /** By host its endpoints: address, port, locality and service account. */
  endpoints(): Record<string, string[]> {
    return Object.fromEntries(
      [...this.planner.snapshot.services].map(([host, states]) => [
        host,
        states
          .flatMap(({ service, endpoints }) =>
            endpoints.flatMap((endpoint) =>
              service.ports.flatMap((port) =>
                servesPort(endpoint, port) ? `${endpoint.address}:${portOf(endpoint, port)} ${endpoint.locality} ${endpoint.serviceAccount}` : [],
              ),
            ),
          )
          .sort(),
      ]),
    )
  }

  /** By proxy the services of its workload, with the ports that it listens on. */
  instances(): Record<string, string[]> {
    return Object.fromEntries(
      this.planner
        .proxies()
        .map(({ connection, proxyClass }) => [
          connection,
          [...new Set((proxyClass?.instances ?? []).map(({ service, targetPort }) => `${service.hostname}:${targetPort}`))].sort(),
        ]),
    )
  }
}

const localityOf = ({ Node }: Model, node: string) => (Node.has(node) ? `r/${Node.get(node)}` : '')
/** S4, O10. */
const entryPort = ({ ports }: EntryModel, { targetPort }: ServiceModel): number =>
  ports.http ?? (typeof targetPort === 'number' ? targetPort : (ports[targetPort] ?? 80))
const selectedEntries = ({ WorkloadEntry }: Model, { app }: ServiceModel) => [...WorkloadEntry.values()].filter((entry) => entry.app === app)

/** O7, O8, O10. */
function wantedEndpoints(model: Model): Record<string, string[]> {
  return Object.fromEntries(
    [...model.Service].map(([name, service]) => {
      const listed = [...model.EndpointSlice.values()].flatMap(({ service: of, port, of: endpoints }) =>
        (of === name ? endpoints : []).flatMap((each) => {
          const pod = model.Pod.get(each)
          if (each.startsWith('p')) return pod ? [`${addressOf(each)}:${port} ${localityOf(model, pod.node)} seller`] : []
          return [`${each}:${port} ${localityOf(model, 'n1')} `]
        }),
      )
      const selected = selectedEntries(model, service).map((entry) => `10.0.0.${entry.last}:${entryPort(entry, service)}  `)
      return [hostOf(name), [...new Set(listed), ...selected].sort()]
    }),
  )
}

/** P6. */
function wantedInstances(model: Model, name: ProxyName): string[] {
  const { address, metadata: given } = proxies[name] as { address: string; metadata: { LABELS?: { app: string } } }
  const listed = [...model.Service].flatMap(([service, of]) => [
    ...[...model.EndpointSlice.values()].flatMap((slice) => {
      const isHere =
        slice.service === service &&
        slice.of.some((each) => (each.startsWith('p') ? model.Pod.has(each) && addressOf(each) === address : each === address))
      return isHere ? [`${hostOf(service)}:${slice.port}`] : []
    }),
    ...selectedEntries(model, of).flatMap((entry) => (`10.0.0.${entry.last}` === address ? [`${hostOf(service)}:${entryPort(entry, of)}`] : [])),
  ])
  const isEntry = [...model.Service.values()].some((of) => selectedEntries(model, of).some(({ last }) => `10.0.0.${last}` === address))
  const unique = [...new Set(listed)].sort()
  if (isEntry) return unique
  const pod = model.Pod.get(name) ?? [...model.Pod].find(([each]) => addressOf(each) === address)?.[1]
  if (!pod && unique.length > 0) return unique
  const [app, web] = pod ? [pod.app, pod.web] : [given.LABELS?.app, name === 'unknown' ? 7777 : undefined]
  const selected = [...model.Service].flatMap(([service, of]) => {
    if (of.app === undefined || of.app !== app) return []
    if (typeof of.targetPort === 'number') return [`${hostOf(service)}:${of.targetPort}`]
    if (of.targetPort === 'web' && web !== undefined) return [`${hostOf(service)}:${web}`]
    // A port that the pod does not name is where an endpoint at its address says.
    const first = listedFirst(model, service, address)
    return first === undefined ? [] : [`${hostOf(service)}:${first}`]
  })
  return selected.length > 0 ? selected.sort() : unique
}

/** The port of the first endpoint of a Service at an address, in the order of its slices. */
function listedFirst(model: Model, service: string, address: string): number | undefined {
  const slices = [...model.EndpointSlice].filter(([, slice]) => slice.service === service).sort(([one], [other]) => (one < other ? -1 : 1))
  return slices.find(([, { of }]) =>
    of.some((each) => (each.startsWith('p') ? model.Pod.has(each) && addressOf(each) === address : each === address)),
  )?.[1].port
}

const mostly = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined, freq: 4 })
const app = fc.constantFrom('x', 'x', 'y')
const change = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('Service' as const),
      name: fc.constantFrom(...services),
      value: mostly(
        fc.record<ServiceModel>({
          app: fc.option(app, { nil: undefined, freq: 4 }),
          isHeadless: fc.boolean(),
          targetPort: fc.constantFrom<ServiceModel['targetPort']>(8080, 9090, 'web', 'none'),
          prefers: fc.constantFrom(undefined, 'PreferClose'),
        }),
      ),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('Pod' as const),
      name: fc.constantFrom(...pods),
      value: mostly(fc.record<PodModel>({ app, node: fc.constantFrom(...nodes), web: fc.constantFrom(undefined, 8080, 8081) })),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('EndpointSlice' as const),
      name: fc.constantFrom('e1', 'e2', 'e3'),
      value: mostly(
        fc.record<SliceModel>({
          service: fc.constantFrom(...services),
          port: fc.constantFrom(8080, 8082),
          of: fc.uniqueArray(fc.constantFrom(...pods, '10.0.0.7', '10.0.0.8', '10.0.0.9'), { maxLength: 3 }),
        }),
      ),
    }),
  },
  fc.record({ kind: fc.constant('Node' as const), name: fc.constantFrom(...nodes), value: mostly(fc.constantFrom('z1', 'z2')) }),
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('WorkloadEntry' as const),
      name: fc.constantFrom('w1', 'w2'),
      value: mostly(
        fc.record<EntryModel>({
          app,
          last: fc.constantFrom(1, 8, 9),
          ports: fc.constantFrom<Record<string, number>>({}, { http: 6060 }, { web: 6061 }),
        }),
      ),
    }),
  },
)

describe('the registry of a cluster', () => {
  it('holds what the rules say after any history, and what a fresh start holds', () => {
    fc.assert(
      fc.property(fc.array(fc.record({ change, isPushed: fc.boolean() }), { minLength: 1, maxLength: 40 }), (steps) => {
        const model: Model = { Service: new Map(), Pod: new Map(), EndpointSlice: new Map(), Node: new Map(), WorkloadEntry: new Map() }
        const world = new World()
        for (const [at, { change: each, isPushed }] of steps.entries()) {
          const { kind, name, value } = each
          const of = model[kind] as Map<string, unknown>
          if (value === undefined) of.delete(name)
          else of.set(name, value)
          world.set(kind, name, model)
          if (!isPushed && at < steps.length - 1) continue
          world.advance()
          expect(world.endpoints()).to.deep.equal(wantedEndpoints(model))
          const wanted = Object.fromEntries((Object.keys(proxies) as ProxyName[]).map((proxy) => [proxy, wantedInstances(model, proxy)]))
          expect(world.instances()).to.deep.equal(wanted)
        }
        const fresh = new World()
        for (const kind of Object.keys(model) as (keyof Model)[]) for (const name of model[kind].keys()) fresh.set(kind, name, model)
        fresh.advance()
        expect([fresh.endpoints(), fresh.instances()]).to.deep.equal([world.endpoints(), world.instances()])
      }),
      { numRuns: runs(300) },
    )
  })
})
