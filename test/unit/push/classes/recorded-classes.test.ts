/** Everything that the class of a proxy is read from is recorded, so that a change finds the proxies whose class may be another one. */
import { expect } from 'chai'
import fc from 'fast-check'
import type { ConfigObject } from '../../../../protocols/data.ts'
import { configKey } from '../../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../../src/config/parse.ts'
import { readNode } from '../../../../src/model/proxy.ts'
import { classOf, sameClass } from '../../../../src/push/classes/proxy-class.ts'
import type { SelectedWorkload } from '../../../../src/push/classes/selecting-objects.ts'
import { Dependencies } from '../../../../src/push/dependencies/dependencies.ts'
import { SnapshotReader } from '../../../../src/push/dependencies/snapshot-reader.ts'
import { Planner } from '../../../../src/push/planner.ts'
import type { MeshSnapshot } from '../../../../src/snapshot/snapshot.ts'
import { cpuMs } from '../../../harness/own-time.ts'
import { runs } from '../../../harness/seed.ts'
import { names, testSettings } from '../../../harness/settings.ts'

type Labels = Readonly<Record<string, string>>

/** Returns the object of a document whose spec is given as JSON. */
function object(kind: string, namespace: string, name: string, spec: unknown): ConfigObject {
  const group = /Authentication|Policy/.test(kind) ? 'security' : 'networking'
  const text = JSON.stringify({ apiVersion: `${group}.mesh.io/v1`, kind, metadata: { name, namespace }, spec })
  const { objects, faults } = parseConfigFile('f.yaml', text, names)
  if (!objects[0]) throw new Error(JSON.stringify(faults))
  return objects[0]
}
const root = 'mesh-system'
const node = (type: string, namespace: string, last: number, labels?: Labels, metadata: Record<string, unknown> = {}) =>
  readNode(
    {
      id: `${type}~10.1.0.${last}~p${last}.${namespace}~${namespace}.svc.cluster.local`,
      metadata: { ...metadata, ...(labels ? { LABELS: labels } : {}) },
      locality: undefined,
    },
    names,
    false,
  )
const deny = (labels: Labels | undefined, path = '/x') => ({
  ...(labels ? { selector: { matchLabels: labels } } : {}),
  action: 'DENY',
  rules: [{ to: [{ operation: { paths: [path] } }] }],
})
const servers = (number: number) => [{ port: { number, name: 'http', protocol: 'HTTP' }, hosts: ['*'] }]
const patches = (metadata = {}) => [
  { applyTo: 'CLUSTER', match: { proxy: { metadata } }, patch: { operation: 'MERGE', value: { connect_timeout: '1s' } } },
]

describe('the objects that select a workload', () => {
  const planner = new Planner(testSettings())
  const workloads: Record<string, SelectedWorkload> = {
    'sidecar a': { type: 'sidecar', namespace: 'a', labels: { app: 'x', version: '1' } },
    'router a': { type: 'router', namespace: 'a', labels: { app: 'x' } },
    'sidecar b': { type: 'sidecar', namespace: 'b', labels: { app: 'x', version: '2' } },
    'router b': { type: 'router', namespace: 'b', labels: {} },
  }
  const all = Object.keys(workloads).sort()

  /** A record in which each workload was asked about. */
  class Asked {
    readonly record: Dependencies<MeshSnapshot>
    readonly reader: SnapshotReader
    readonly outdated = new Set<string>()

    constructor(snapshot: MeshSnapshot) {
      this.record = new Dependencies(snapshot)
      this.reader = new SnapshotReader(this.record)
      for (const [name, workload] of Object.entries(workloads))
        this.record.produce(this.record.product(name, this.outdated), () => this.reader.selecting(workload))
    }
  }

  /** The workloads whose answer is another one after an object was changed. */
  function concerned(kind: string, namespace: string, now: unknown, before?: unknown): string[] {
    const at = (spec: unknown): MeshSnapshot => {
      planner.state.setConfig(`${kind}/${namespace}/o`, spec === undefined ? undefined : object(kind, namespace, 'o', spec))
      planner.advance()
      return planner.snapshot
    }
    const asked = new Asked(at(before))
    asked.record.advance(at(now))
    at(undefined)
    return [...asked.outdated].sort()
  }

  it("are those of the kinds that select its type, within the object's namespace or the whole mesh", () => {
    const gateway = { servers: servers(80), selector: { app: 'x' } }
    const sidecar = { egress: [{ hosts: ['./*'] }] }
    expect(concerned('AuthorizationPolicy', 'a', deny(undefined))).to.deep.equal(['router a', 'sidecar a'])
    expect(concerned('AuthorizationPolicy', root, deny(undefined))).to.deep.equal(all)
    expect(concerned('PeerAuthentication', root, { mtls: { mode: 'STRICT' } })).to.deep.equal(all)
    expect(concerned('RequestAuthentication', 'b', { jwtRules: [{ issuer: 'i', jwksUri: 'https://i/keys' }] })).to.deep.equal([
      'router b',
      'sidecar b',
    ])
    expect(concerned('Sidecar', 'a', sidecar)).to.deep.equal(['sidecar a'])
    expect(concerned('Sidecar', root, sidecar)).to.deep.equal(['sidecar a', 'sidecar b'])
    expect(concerned('Gateway', 'c', gateway)).to.deep.equal(['router a'])
    expect(concerned('AuthorizationPolicy', 'c', deny(undefined))).to.deep.equal([])
    expect(concerned('DestinationRule', 'a', { host: 'a.com' })).to.deep.equal([])
    expect(concerned('VirtualService', 'a', { hosts: ['a.com'], http: [{ redirect: { uri: '/' } }] })).to.deep.equal([])
  })

  it('are those whose labels the workload has, before or after the change', () => {
    const sidecar = { workloadSelector: { labels: { app: 'x' } }, egress: [{ hosts: ['./*'] }] }
    const filter = (labels: Labels) => ({ workloadSelector: { labels }, configPatches: patches() })
    expect(concerned('AuthorizationPolicy', 'a', deny({ version: '1' }))).to.deep.equal(['sidecar a'])
    expect(concerned('AuthorizationPolicy', 'a', deny({ app: 'y' }))).to.deep.equal([])
    expect(concerned('AuthorizationPolicy', root, deny({ app: 'x' }))).to.deep.equal(['router a', 'sidecar a', 'sidecar b'])
    expect(concerned('AuthorizationPolicy', root, deny({ app: 'x', version: '2' }))).to.deep.equal(['sidecar b'])
    expect(concerned('AuthorizationPolicy', root, deny({ app: 'x', other: '2' }))).to.deep.equal([])
    expect(concerned('AuthorizationPolicy', root, deny({ version: '1' }), deny({ version: '2' }))).to.deep.equal(['sidecar a', 'sidecar b'])
    expect(concerned('EnvoyFilter', 'a', filter({ version: '1' }))).to.deep.equal(['sidecar a'])
    expect(concerned('EnvoyFilter', 'a', filter({ constructor: 'x' }))).to.deep.equal([])
    expect(concerned('Sidecar', 'a', sidecar)).to.deep.equal(['sidecar a'])
  })

  it('are the same whatever a policy says beside its selector', () => {
    expect(concerned('AuthorizationPolicy', root, deny({ app: 'x' }, '/1'), deny({ app: 'x' }, '/2'))).to.deep.equal([])
  })

  it('are forgotten with the last reader', () => {
    const { record, reader, outdated } = new Asked(planner.snapshot)
    const product = record.product('p', outdated)
    const before = record.questions
    record.produce(product, () => reader.selecting({ type: 'sidecar', namespace: 'c', labels: { app: 'z' } }))
    expect(record.questions).to.equal(before + 1)
    record.forget(product)
    expect(record.questions).to.equal(before)
  })
})

const namespace = fc.constantFrom('a', 'b')
const owner = fc.constantFrom('a', 'b', root)
const labels = fc.constantFrom<Labels[]>({}, { app: 'x' }, { app: 'y' }, { app: 'x', version: '1' }, { version: '2' })
const exportTo = fc.constantFrom([], ['.'], ['a'], ['*'])
const name = fc.constantFrom('o', 'p')
const isSome = (of: Labels) => Object.keys(of).length > 0
const policy = fc
  .record({
    owner,
    labels,
    name,
    path: fc.constantFrom('/1', '/2'),
    kind: fc.constantFrom('AuthorizationPolicy', 'RequestAuthentication', 'PeerAuthentication'),
  })
  .map(({ owner: own, labels: of, name: named, path, kind }) => {
    const selector = isSome(of) ? { selector: { matchLabels: of } } : {}
    const content: Record<string, object> = {
      AuthorizationPolicy: deny(undefined, path),
      PeerAuthentication: { mtls: { mode: path === '/1' ? 'STRICT' : 'DISABLE' } },
      RequestAuthentication: { jwtRules: [{ issuer: path, jwksUri: 'https://i/keys' }] },
    }
    return object(kind, own, named, { ...selector, ...content[kind] })
  })
const sidecar = fc.record({ owner, labels, name, host: fc.constantFrom('./*', '*/*') }).map(({ owner: own, labels: of, name: named, host }) => {
  const selector = isSome(of) && own !== root ? { workloadSelector: { labels: of } } : {}
  return object('Sidecar', own, named, { ...selector, egress: [{ hosts: [host] }] })
})
const gateway = fc
  .record({ owner, labels, name, number: fc.constantFrom(80, 81) })
  .map(({ owner: own, labels: of, name: named, number }) =>
    object('Gateway', own, named, { selector: { app: 'x', ...of }, servers: servers(number) }),
  )
const filter = fc
  .record({ owner, labels, name, priority: fc.constantFrom(0, 1), metadata: fc.constantFrom({}, { tier: 'gold' }) })
  .map(({ owner: own, labels: of, name: named, priority, metadata }) => {
    const selector = isSome(of) ? { workloadSelector: { labels: of } } : {}
    return object('EnvoyFilter', own, named, { ...selector, priority, configPatches: patches(metadata) })
  })
const service = fc
  .record({ namespace, exportTo, labels, name, last: fc.integer({ min: 1, max: 6 }), target: fc.constantFrom(8080, 9090) })
  .map(({ namespace: own, exportTo: seen, labels: of, name: named, last, target }) =>
    object('ServiceEntry', own, named, {
      hosts: [`${named}.${own}.example`],
      exportTo: seen,
      location: 'MESH_INTERNAL',
      resolution: 'STATIC',
      ports: [{ number: 80, name: 'http' }],
      endpoints: [{ address: `10.1.0.${last}`, ports: { http: target }, labels: of }, { address: '10.9.0.1' }],
    }),
  )
const route = fc.record({ namespace, exportTo, labels }).map(({ namespace: own, exportTo: seen, labels: sourceLabels }) => {
  const http = [{ match: [{ sourceLabels }], route: [{ destination: { host: 'o.a.example' } }] }]
  return object('VirtualService', own, 'r', { hosts: ['o.a.example'], exportTo: seen, http })
})
const step = fc.record({
  object: fc.oneof(policy, sidecar, gateway, filter, service, route),
  removed: fc.integer({ min: 0, max: 2 }).map((roll) => roll === 0),
  /** Whether the first attempt to push the change fails as a whole. */
  fails: fc.integer({ min: 0, max: 9 }).map((roll) => roll === 0),
  rootNamespace: fc.constantFrom(undefined, undefined, undefined, root, 'b'),
})
const nodes = [
  node('sidecar', 'a', 1, { app: 'x' }),
  node('sidecar', 'a', 2, { app: 'x', version: '1' }, { tier: 'gold' }),
  node('sidecar', 'b', 3, { app: 'y' }, { INTERCEPTION_MODE: 'NONE' }),
  // A proxy that sends no labels has those of its endpoint.
  node('sidecar', 'b', 4),
  node('router', 'a', 5, { app: 'x' }),
  node('router', root, 6, { app: 'x', version: '2' }),
]
const numRuns = runs(500)

describe('the class of a proxy', () => {
  it('is found again by record: after any changes all proxies have the classes that they would be given afresh', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 12 }), (steps) => {
        const planner = new Planner(testSettings())
        for (const [index, each] of nodes.entries()) planner.connect(`p${index}`, each)
        for (const { object: changed, removed, fails, rootNamespace } of steps) {
          planner.state.setConfig(configKey(changed), removed ? undefined : changed)
          if (rootNamespace !== undefined) planner.state.setMesh({ ...planner.snapshot.mesh, rootNamespace })
          const fail = () => {
            throw new Error('once')
          }
          if (fails) Object.defineProperty(planner.builder, 'advance', { configurable: true, value: fail })
          planner.advance()
          if (fails) Reflect.deleteProperty(planner.builder, 'advance')
          if (fails) planner.advance()
          planner.takePush()
          const afresh = new SnapshotReader(new Dependencies(planner.snapshot))
          for (const { connection, node: each, proxyClass } of planner.proxies()) {
            const wanted = classOf(each, planner.instancesOf(each), afresh)
            expect(proxyClass?.id, connection).to.equal(wanted.id)
            expect(proxyClass && sameClass(proxyClass, wanted), `${connection} is equal`).to.equal(true)
          }
        }
      }),
      { numRuns },
    )
  })

  it('is not searched for in all proxies: with 4,000 sets of labels, a policy that selects none costs less than 5 ms', () => {
    const planner = new Planner(testSettings())
    for (let index = 0; index < 4000; index++)
      planner.connect(`p${index}`, {
        ...node('sidecar', `ns-${index % 4}`, 1, { app: `a${index}` }),
        addresses: [`10.1.${index >> 8}.${index & 255}`],
      })
    planner.takePush()
    const change = (labels: Labels, path: string) => {
      planner.state.setConfig(`AuthorizationPolicy/${root}/p`, object('AuthorizationPolicy', root, 'p', deny(labels, path)))
      return cpuMs(() => planner.advance())
    }
    const costs = Array.from({ length: 8 }, (_, index) => change({ app: 'nobody' }, `/${index}`))
    expect(Math.min(...costs.slice(1))).to.be.below(5)
    expect(planner.takePush().assignments).to.deep.equal([])
    change({ app: 'a7' }, '/x')
    expect(planner.takePush().assignments.map(({ connection }) => connection)).to.deep.equal(['p7'])
  })
})
