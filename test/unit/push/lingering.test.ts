/** Clusters that routes may still name are kept for two seconds, whatever removed them from a proxy. */
import { expect } from 'chai'
import { configKey } from '../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { Planner } from '../../../src/push/planner.ts'
import { clusterType, endpointType, listenerType, routeType } from '../../../src/xds/type-urls.ts'
import { Received } from '../../harness/received.ts'
import { names, testSettings } from '../../harness/settings.ts'

const meta = (kind: string, namespace: string, name: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${namespace}}\n`
const service = (exportTo: string, labels = '{}') =>
  `${meta('ServiceEntry', 'shop', 'a')}spec: {hosts: [a.example], exportTo: ${exportTo}, location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.1, labels: ${labels}}]}`
const other = `${meta('ServiceEntry', 'shop', 'b')}spec: {hosts: [b.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.0.0.2}]}`
const sidecar = (name: string, hosts: string, label = '') =>
  `${meta('Sidecar', 'bank', name)}spec: {${label ? `workloadSelector: {labels: {app: ${label}}}, ` : ''}egress: [{hosts: [${hosts}]}]}`
const rule = (namespace: string, subset: string) => `${meta('DestinationRule', namespace, 'a')}spec: {host: a.example, subsets: [{name: ${subset}}]}`
const workload = (port: number) =>
  `${meta('ServiceEntry', 'bank', 'own')}spec: {hosts: [own.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 10.1.0.1, ports: {http: ${port}}, labels: {app: l${port}}}]}`

/** Changes: state before, state after, deleted objects, and the cluster that the change removes. */
const changes: readonly { what: string; before: string[]; after: string[]; gone?: string[]; cluster: string }[] = [
  {
    what: 'a service that is exported to others now',
    before: [service('[bank, shop]')],
    after: [service('[shop]')],
    cluster: 'outbound|80||a.example',
  },
  { what: 'a service that was exported to all', before: [service("['*']")], after: [service('[shop]')], cluster: 'outbound|80||a.example' },
  { what: 'a first Sidecar', before: [service("['*']")], after: [sidecar('s', "'*/b.example'")], cluster: 'outbound|80||a.example' },
  {
    what: 'a Sidecar that names less',
    before: [service("['*']"), sidecar('s', "'*/*.example'")],
    after: [sidecar('s', "'*/b.example'")],
    cluster: 'outbound|80||a.example',
  },
  {
    what: 'a Sidecar that comes before another',
    before: [service("['*']"), workload(80), sidecar('z', "'*/*'"), sidecar('l', "'*/b.example'", 'l81')],
    after: [workload(81)],
    cluster: 'outbound|80||a.example',
  },
  { what: 'a rule of its own', before: [service("['*']"), rule('shop', 'v1')], after: [rule('bank', 'v2')], cluster: 'outbound|80|v1|a.example' },
  {
    what: 'a rule of its own that goes',
    before: [service("['*']"), rule('shop', 'v1'), rule('bank', 'v2')],
    after: [],
    gone: ['DestinationRule/bank/a'],
    cluster: 'outbound|80|v2|a.example',
  },
  { what: 'another port of the workload', before: [workload(80)], after: [workload(81)], cluster: 'inbound|80||' },
]

describe('a removed cluster that routes may still name', () => {
  for (const { what, before, after, gone = [], cluster } of changes)
    it(`is kept for two seconds after ${what}`, () => {
      const planner = new Planner(testSettings())
      const set = (texts: readonly string[]) => {
        for (const text of texts) {
          const { objects, faults } = parseConfigFile('f.yaml', text, names)
          expect(faults).to.deep.equal([])
          for (const object of objects) planner.state.setConfig(configKey(object), object)
        }
      }
      const connect = (connection: string) =>
        planner.connect(
          connection,
          readNode({ id: 'sidecar~10.1.0.1~p.bank~bank.svc.cluster.local', metadata: {}, locality: undefined }, names, false),
        )
      set([other, ...before])
      planner.advance(500)
      connect('p')
      const received = new Received(planner)
      const type = cluster.startsWith('inbound') ? [clusterType] : [clusterType, endpointType]
      const has = (connection = 'p') => type.map((typeUrl) => received.of(connection, typeUrl).has(cluster))
      expect(has(), 'before').to.deep.equal(type.map(() => true))
      set(after)
      for (const key of gone) planner.state.setConfig(key, undefined)
      planner.advance(1000)
      planner.sweep(1000)
      received.take()
      expect(has(), 'just after').to.deep.equal(type.map(() => true))
      expect(planner.builder.nextLeaving()).to.equal(3000)
      // Another object changes meanwhile.
      set([other.replace('10.0.0.2', '10.0.0.3')])
      planner.advance(2000)
      planner.sweep(2999)
      received.take()
      expect(has(), 'a moment before').to.deep.equal(type.map(() => true))
      planner.sweep(3000)
      received.take()
      expect(has(), 'two seconds later').to.deep.equal(type.map(() => false))
      expect(planner.builder.nextLeaving()).to.equal(undefined)
      connect('fresh')
      received.take()
      for (const typeUrl of [clusterType, endpointType, listenerType, routeType])
        expect([...received.of('p', typeUrl)].sort()).to.deep.equal([...received.of('fresh', typeUrl)].sort())
      for (const now of [4000, 9000]) planner.collect(now)
      expect(planner.classCount).to.equal(1)
      expect([...planner.groups.ids()].filter((id) => id.startsWith('lingering'))).to.deep.equal([])
    })

  for (const [from, to] of [
    ['STATIC', 'DNS'],
    ['DNS', 'STATIC'],
    ['NONE', 'DNS'],
    ['DNS', 'NONE'],
  ] as const)
    it(`is replaced at once by a cluster of the same name in another group: from ${from} to ${to}`, () => {
      const planner = new Planner(testSettings())
      const resolved = (resolution: string) =>
        `${meta('ServiceEntry', 'shop', 'a')}spec: {hosts: [a.example], location: MESH_INTERNAL, resolution: ${resolution}, ports: [{number: 80, name: http}]${resolution === 'NONE' ? '' : ', endpoints: [{address: 10.0.0.1}]'}}`
      const set = (text: string) => {
        for (const object of parseConfigFile('f.yaml', text, names).objects) planner.state.setConfig(configKey(object), object)
      }
      // Namespace `bank` has an overlay beside the shared groups, namespace `mint` has none.
      set(`${meta('ServiceEntry', 'bank', 'own')}spec: {hosts: [own.example], exportTo: [.], resolution: STATIC, ports: [{number: 80, name: http}]}`)
      set(resolved(from))
      planner.advance(0)
      const connect = (connection: string, namespace: string) =>
        planner.connect(
          connection,
          readNode({ id: `sidecar~10.1.0.1~p.${namespace}~${namespace}.svc.cluster.local`, metadata: {}, locality: undefined }, names, false),
        )
      for (const namespace of ['bank', 'mint']) connect(namespace, namespace)
      const received = new Received(planner)
      const versions = (connections: readonly string[]) => connections.map((name) => received.of(name, clusterType).get('outbound|80||a.example'))
      const before = versions(['bank', 'mint'])
      set(resolved(to))
      planner.advance(1000)
      received.take()
      for (const namespace of ['bank', 'mint']) connect(`new ${namespace}`, namespace)
      received.take()
      // A writer without state gets the same.
      const everything = new Received(planner, true)
      const all = ['bank', 'mint', 'new bank', 'new mint']
      const now = versions(all)
      expect(planner.builder.nextLeaving()).to.equal(3000)
      expect(all.map((name) => everything.of(name, clusterType).get('outbound|80||a.example'))).to.deep.equal(now)
      planner.sweep(3000)
      received.take()
      const after = versions(all)
      expect(new Set(after).size).to.equal(1)
      expect(now).to.deep.equal(after)
      expect(before).not.to.include(after[0])
    })
})
