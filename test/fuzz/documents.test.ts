import { expect } from 'chai'
import fc from 'fast-check'
import { stringify } from 'yaml'
import { debugAnswers } from '../../actors/discovery/push-queue/push-queue-debug.ts'
import type { ConfigObject } from '../../protocols/data.ts'
import { configKey, kinds } from '../../src/config/kinds.ts'
import { meshForm, networksForm } from '../../src/config/mesh-config.ts'
import { readMeshConfig, readMeshNetworks } from '../../src/config/mesh-texts.ts'
import { parseConfigFile } from '../../src/config/parse.ts'
import { BadNode, readNode } from '../../src/model/proxy.ts'
import { Planner } from '../../src/push/planner.ts'
import { clusterType, listenerType, routeType } from '../../src/xds/type-urls.ts'
import { anyDocuments, documentsOf, type MadeDocument, mended, textOf, valuesOf } from '../harness/documents.ts'
import { resourcesOf } from '../harness/held.ts'
import { everythingOf } from '../harness/received.ts'
import { runs, seed, volume } from '../harness/seed.ts'
import { names, testSettings } from '../harness/settings.ts'

const proxies: Record<string, { id: string; metadata: Record<string, unknown>; delta?: boolean }> = {
  calm: { id: 'sidecar~10.9.0.1~p.calm~calm.svc.cluster.local', metadata: {} },
  fuzz: { id: 'sidecar~10.1.0.1~p.fuzz~fuzz.svc.cluster.local', metadata: { LABELS: { app: 'v1', constructor: 'x' } } },
  own: { id: 'sidecar~10.1.0.1~q.fuzz~fuzz.svc.cluster.local', metadata: { INTERCEPTION_MODE: 'NONE', PROXY_CONFIG: '{}' }, delta: true },
  gateway: { id: 'router~10.1.0.2~g.fuzz~fuzz.svc.cluster.local', metadata: { LABELS: { app: 'v1' }, ROUTER_MODE: 'sni-dnat' } },
}

/** Services of different TCP ports, since one without addresses claims all connections to its port. */
const good = (name: string, namespace: string, tcpPort: number) =>
  `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: {hosts: [${name}.${namespace}.svc.cluster.local], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 8888, name: http}, {number: ${tcpPort}, name: tcp}], endpoints: [{address: 10.9.0.1}]}\n`

/** A mesh with proxies of all kinds and with services that the generated documents do not refer to. */
class Mesh {
  readonly planner = new Planner(testSettings())
  #round = 0

  constructor() {
    this.apply(
      parseConfigFile(
        'good',
        `${good('good', 'calm', 9999)}---\n${good('a', 'fuzz', 9998).replace('name: a,', 'name: base,').replace('10.9.0.1', '10.1.0.1')}`,
        names,
      ).objects,
    )
    for (const [name, { id, metadata, delta }] of Object.entries(proxies))
      this.planner.connect(name, readNode({ id, metadata, locality: undefined, agent: { name: 'envoy', version: [1, 40] } }, names, delta ?? false))
    this.publish()
  }

  apply(objects: readonly ConfigObject[]): void {
    for (const object of objects) this.planner.state.setConfig(configKey(object), object)
    this.planner.advance(++this.#round * 1000)
  }

  remove(objects: readonly ConfigObject[]): void {
    for (const object of objects) this.planner.state.setConfig(configKey(object), undefined)
    this.planner.advance(++this.#round * 1000)
    this.planner.sweep()
  }

  /** Takes a push. It is cloned since messages to writers cross a thread boundary. */
  publish(): void {
    structuredClone(this.planner.takePush())
    structuredClone(everythingOf(this.planner))
  }

  held(connection: string, type: string): Map<string, string> {
    return new Map((resourcesOf(this.planner, connection).get(type) ?? []).map(({ name, version }) => [name, version] as const))
  }

  /** Returns the names and versions of clusters, listeners and routes of all proxies, as text. */
  state(): string {
    const of = (connection: string) => [clusterType, listenerType, routeType].map((type) => [...this.held(connection, type)].sort())
    return JSON.stringify(Object.keys(proxies).map(of))
  }

  /** Asserts that an unrelated proxy keeps its resources and gets those of a new service. */
  expectUnrelated(): void {
    const name = `new-${++this.#round}`
    const { objects } = parseConfigFile('good', good(name, 'calm', 9997), names)
    expect(this.planner.state.keySources()).to.be.instanceOf(Map)
    this.apply(objects)
    const host = `${name}.calm.svc.cluster.local`
    expect([...this.held('calm', clusterType).keys()]).to.include.members([
      `outbound|8888||${host}`,
      'outbound|8888||good.calm.svc.cluster.local',
      'PassthroughCluster',
    ])
    expect([...this.held('calm', listenerType).keys()]).to.include.members(['0.0.0.0_8888', '0.0.0.0_9999', 'virtualOutbound', 'virtualInbound'])
    expect([...this.held('calm', routeType).keys()]).to.include('8888')
    this.remove(objects)
    this.publish()
  }

  /** Asserts that each fault has a reason and objects, and that all debug pages can be made. */
  expectReported(): void {
    for (const fault of this.planner.faults.all()) {
      expect(fault.reason, fault.resource).to.be.a('string').that.is.not.equal('')
      expect(fault.objects, `${fault.type} ${fault.resource}: ${fault.reason}`).not.to.deep.equal([])
    }
    const answers = debugAnswers(this.planner, { pushAgain: () => 0, shares: () => [] }, () => false) as unknown as Record<
      string,
      (argument: unknown) => unknown
    >
    for (const [question, answer] of Object.entries(answers)) {
      if (
        [
          'explain',
          'explainInput',
          'generations',
          'lostEndpoints',
          'more',
          'moreOfDryRun',
          'portProtocols',
          'routeFields',
          'unhealthyEntries',
        ].includes(question)
      )
        continue
      expect(() => JSON.stringify(structuredClone(answer('fuzz'))), question).not.to.throw()
    }
  }
}

/** Returns the objects of a document if they are valid, and asserts that a fault names the object and the field. */
function parsed(document: MadeDocument): readonly ConfigObject[] {
  const { objects, faults } = parseConfigFile('fuzz.yaml', textOf(document, 'fuzz'), names)
  for (const fault of faults) {
    if (fault.reason.startsWith('not YAML') || fault.reason.startsWith('nested deeper')) continue
    expect(fault.key, fault.reason).to.equal(`${document.kind.name}/fuzz/${document.name}`)
    expect(fault.path, fault.reason).to.match(/^spec/)
    expect(fault.reason).not.to.match(/cannot be read/)
  }
  return objects
}

const asIs = ({ kind, name, spec }: MadeDocument): ConfigObject => ({
  kind: kind.name,
  group: `${kind.group}.mesh.io`,
  version: 'v1',
  namespace: 'fuzz',
  name,
  labels: {},
  annotations: {},
  createdAt: 0,
  generation: 1,
  spec,
  source: 'files',
  cluster: '',
  uid: '',
  resourceVersion: '',
  place: 'fuzz, document 1',
})

for (const each of [seed, seed + 1]) {
  describe(`documents generated from the schemas of their kinds, seed ${each}`, function () {
    this.timeout(120_000 * Math.max(1, volume))

    for (const kind of kinds.values())
      it(`${kind.name}: valid documents become resources, and leave no state behind when they are removed`, () => {
        let taken = 0
        const mesh = new Mesh()
        const before = mesh.state()
        fc.assert(
          fc.property(fc.array(documentsOf(kind, 0), { minLength: 1, maxLength: 3 }), (documents) => {
            const objects = documents.map(mended).flatMap(parsed)
            taken += objects.length
            if (objects.length === 0) return
            mesh.apply(objects)
            mesh.publish()
            for (const { type, resource, reason } of mesh.planner.faults.all()) expect(reason, `${type} ${resource}`).not.to.match(internal)
            mesh.expectReported()
            mesh.remove(objects)
            mesh.publish()
            expect(problems(mesh)).to.deep.equal([])
            expect(mesh.state()).to.equal(before)
          }),
          { seed: each, numRuns: runs(60) },
        )
        expect(taken, 'documents that were taken').to.be.at.least(Math.min(10, runs(10)))
      })

    it('invalid documents are reported with their objects and affect no unrelated service', () => {
      fc.assert(
        fc.property(fc.array(anyDocuments(4), { minLength: 1, maxLength: 12 }), (documents) => {
          const mesh = new Mesh()
          const objects = documents.flatMap(parsed)
          for (const object of objects) mesh.apply([object])
          mesh.publish()
          mesh.expectReported()
          mesh.expectUnrelated()
          mesh.remove(objects)
          expect(problems(mesh)).to.deep.equal([])
        }),
        { seed: each, numRuns: runs(80) },
      )
    })

    it('unvalidated objects affect no unrelated service and leave no state behind', () => {
      fc.assert(
        fc.property(fc.array(anyDocuments(12), { minLength: 1, maxLength: 6 }), (documents) => {
          const mesh = new Mesh()
          // Documents for all hosts are related to every service, and are left out.
          const objects = documents.filter(({ spec }) => !JSON.stringify(spec)?.includes('"hosts":["*"')).map(asIs)
          for (const object of objects) mesh.apply([object])
          mesh.publish()
          mesh.expectUnrelated()
          mesh.remove(objects)
          mesh.publish()
          expect(problems(mesh)).to.deep.equal([])
        }),
        { seed: each, numRuns: runs(150) },
      )
    })

    it('mesh configurations and networks cause no internal error', () => {
      const mesh = new Mesh()
      for (const broken of [0, 5])
        fc.assert(
          fc.property(valuesOf(meshForm, broken), valuesOf(networksForm, broken), (given, networks) => {
            const read = readMeshConfig(stringify(given, { aliasDuplicateObjects: false, compat: 'yaml-1.1' }))
            const network = readMeshNetworks(stringify(networks, { aliasDuplicateObjects: false, compat: 'yaml-1.1' }))
            if ('value' in read) mesh.planner.state.setMesh(read.value)
            if ('value' in network) mesh.planner.state.setNetworks(network.value)
            mesh.planner.advance()
            mesh.publish()
            for (const { type, resource, reason } of mesh.planner.faults.all()) expect(reason, `${type} ${resource}`).not.to.match(internal)
          }),
          { seed: each, numRuns: runs(60) },
        )
    })

    it('nodes with any metadata are rejected, or served without a fault', () => {
      const metadata = fc.dictionary(
        fc.constantFrom(
          'LABELS',
          'IDLE_TIMEOUT',
          'PROXY_CONFIG',
          'INSTANCE_IPS',
          'NETWORK',
          'REQUESTED_NETWORK_VIEW',
          'NAMESPACE',
          'CLUSTER_ID',
          'MESH_VERSION',
          'constructor',
          '__proto__',
          'MESH_ID',
          'TLS_SERVER_KEY',
          'TLS_SERVER_CERT_CHAIN',
          'TLS_SERVER_ROOT_CERT',
          'HTTP10',
          'ROUTER_MODE',
        ),
        fc.oneof(
          fc.jsonValue({ maxDepth: 2 }),
          fc.constantFrom(
            `${'9'.repeat(400)}h`,
            '9223372036854775807h',
            '{"tracing":{"sampling":1e400}}',
            '{"gatewayTopology":{"numTrustedProxies":7}}',
            '-1s',
            '\ud800',
          ),
        ),
      )
      fc.assert(
        fc.property(metadata, fc.constantFrom('sidecar', 'router'), (given, type) => {
          const mesh = new Mesh()
          try {
            mesh.planner.connect(
              'odd',
              readNode({ id: `${type}~10.3.0.1~odd.fuzz~fuzz.svc.cluster.local`, metadata: given, locality: undefined }, names, true),
            )
          } catch (error) {
            expect(error).to.be.instanceOf(BadNode)
            return
          }
          expect(problems(mesh)).to.deep.equal([])
          mesh.publish()
        }),
        { seed: each, numRuns: runs(100) },
      )
    })
  })
}

const problems = (mesh: Mesh): string[] => mesh.planner.faults.all().map(({ type, resource, reason }) => `${type} ${resource}: ${reason}`)

/** Errors of the generator itself, as opposed to errors in documents. */
const internal = /TypeError|RangeError|SyntaxError|ReferenceError|cannot encode|FieldError/
