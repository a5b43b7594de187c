/** Explanations of resources, held to the planner: what is said of an object is what happens without it. */
import { expect } from 'chai'
import fc from 'fast-check'
import type { ConfigObject } from '../../../../protocols/data.ts'
import { type Explained, noEffect } from '../../../../protocols/messages/explain.ts'
import { configKey } from '../../../../src/config/kinds.ts'
import { readMeshNetworks } from '../../../../src/config/mesh-texts.ts'
import { parseConfigFile } from '../../../../src/config/parse.ts'
import { readNode } from '../../../../src/model/proxy.ts'
import { digestOf, explainInput } from '../../../../src/push/explain/candidates.ts'
import { explain } from '../../../../src/push/explain/trial.ts'
import { Planner } from '../../../../src/push/planner.ts'
import { clusterType, endpointType, listenerType, routeType, virtualHostType } from '../../../../src/xds/type-urls.ts'
import { runs } from '../../../harness/seed.ts'
import { names, testSettings } from '../../../harness/settings.ts'

const groups: Readonly<Record<string, string>> = { AuthorizationPolicy: 'security', PeerAuthentication: 'security' }

function object(kind: string, path: string, spec: string, createdAt = '2020-01-01T00:00:00Z'): ConfigObject {
  const [namespace, name] = path.split('/')
  const group = groups[kind] ?? 'networking'
  const text = `apiVersion: ${group}.mesh.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${namespace}, creationTimestamp: "${createdAt}"}\nspec: ${spec}\n`
  const { objects, faults } = parseConfigFile('f.yaml', text, names)
  if (!objects[0]) throw new Error(JSON.stringify(faults))
  return objects[0]
}

const node = readNode(
  { id: 'sidecar~10.1.0.1~p.ns~ns.svc.cluster.local', metadata: { NAMESPACE: 'ns', LABELS: { app: 'p' } }, locality: undefined },
  names,
  false,
)

function planned(objects: readonly ConfigObject[]): Planner {
  const planner = new Planner(testSettings())
  for (const each of objects) planner.state.setConfig(configKey(each), each)
  planner.advance()
  planner.connect('p', node)
  return planner
}

const digest = (planner: Planner, typeUrl: string, name: string) => digestOf(planner, planner.proxies()[0]?.proxyClass?.id ?? '', typeUrl, name)

function explained(objects: readonly ConfigObject[], typeUrl: string, name: string): Explained {
  const input = explainInput(planned(objects), 'p', typeUrl, name)
  if (!input) throw new Error('no such proxy')
  return explain(structuredClone(input), () => false)
}

/** What is said of each object, by key. */
const said = ({ objects }: Explained) => Object.fromEntries(objects.map(({ key, without, reason }) => [key, without === 'same' ? reason : without]))

const service = (path: string, host: string, more = '', createdAt?: string) =>
  object('ServiceEntry', path, `{hosts: [${host}], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}]${more}}`, createdAt)
const endpoints = ', endpoints: [{address: 10.0.0.1, labels: {v: "1"}}]'
const cluster = 'outbound|80||a.example'

describe('an explanation', () => {
  it('names what made a cluster, and what was considered: other rules, invisible services, a Sidecar', () => {
    const objects = [
      service('ns/a', 'a.example', endpoints),
      object('DestinationRule', 'ns/own', '{host: a.example, trafficPolicy: {connectionPool: {tcp: {maxConnections: 3}}}}'),
      object('DestinationRule', 'mesh-system/root', '{host: a.example, trafficPolicy: {connectionPool: {tcp: {maxConnections: 4}}}}'),
      service('other/private', 'a.example', `${endpoints}, exportTo: ["."]`),
      object('Sidecar', 'ns/of-q', '{workloadSelector: {labels: {app: q}}, egress: [{hosts: ["./*"]}]}'),
    ]
    const answer = explained(objects, clusterType, cluster)
    expect([answer.exists, answer.isComplete, answer.untried, answer.otherHosts]).to.deep.equal([true, true, 0, 0])
    expect(said(answer)).to.deep.equal({
      'ServiceEntry/ns/a': 'removed',
      'DestinationRule/ns/own': 'changed',
      'DestinationRule/mesh-system/root': 'DestinationRule/ns/own counts for a.example (V3 to V5 in docs/resources.md)',
      'ServiceEntry/other/private': 'exportTo does not make it visible in namespace ns (V1 in docs/resources.md)',
      'Sidecar/ns/of-q': 'its selector does not match the proxy',
    })
    expect(answer.objects[0]).to.include({ namespace: 'ns', source: 'files', place: objects[0]?.place })
  })

  it('tries of Gateways with AUTO_PASSTHROUGH those that select a gateway of a network, and only where endpoints are asked about', () => {
    const passing = (name: string, app: string) =>
      object(
        'Gateway',
        `edge/${name}`,
        `{selector: {app: ${app}}, servers: [{port: {number: 15443, name: tls, protocol: TLS}, hosts: ["*.example"], tls: {mode: AUTO_PASSTHROUGH}}]}`,
      )
    const planner = new Planner(testSettings())
    const networks = readMeshNetworks('networks: {west: {gateways: [{registryServiceName: gateway.example}]}}')
    if ('value' in networks) planner.state.setNetworks(networks.value)
    const asked = service('ns/a', 'a.example', ', endpoints: [{address: 10.0.0.1, network: west, labels: {security.mesh.io/tlsMode: mesh}}]')
    const gateway = object(
      'ServiceEntry',
      'edge/gateway',
      '{hosts: [gateway.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 15443, name: tls, protocol: TLS}], endpoints: [{address: 10.0.9.1, labels: {app: gateway}}]}',
    )
    const others = Array.from({ length: 100 }, (_, index) => passing(`other-${index}`, 'other'))
    for (const each of [asked, gateway, passing('passing', 'gateway'), ...others]) planner.state.setConfig(configKey(each), each)
    planner.advance()
    planner.connect('p', node)
    const tried = (typeUrl: string, name: string) => {
      const input = explainInput(planner, 'p', typeUrl, name)
      return input?.objects.flatMap(({ kind, name: of }) => (kind === 'Gateway' ? of : []))
    }
    expect(tried(endpointType, cluster)).to.deep.equal(['passing'])
    expect(tried(clusterType, cluster)).to.deep.equal(['passing'])
    expect(tried(listenerType, '0.0.0.0_80')).to.deep.equal([])
    const input = explainInput(planner, 'p', endpointType, cluster)
    expect(input && said(explain(structuredClone(input), () => false))).to.deep.equal({
      'ServiceEntry/ns/a': 'removed',
      'ServiceEntry/edge/gateway': 'changed',
      'Gateway/edge/passing': noEffect,
    })
  })

  it('names the Gateways of a VirtualService that have another port than the one that is asked about', () => {
    const gateway = (name: string, port: number) =>
      object('Gateway', `ns/${name}`, `{selector: {app: edge}, servers: [{port: {number: ${port}, name: http, protocol: HTTP}, hosts: ["*"]}]}`)
    const objects = [
      service('ns/a', 'a.example', endpoints),
      gateway('one', 8000),
      gateway('two', 9000),
      object('VirtualService', 'ns/v', '{hosts: [a.example], gateways: [one], http: [{route: [{destination: {host: a.example}}]}]}'),
    ]
    const planner = planned(objects)
    const id = 'router~10.1.0.2~edge.ns~ns.svc.cluster.local'
    planner.connect('edge', readNode({ id, metadata: { NAMESPACE: 'ns', LABELS: { app: 'edge' } }, locality: undefined }, names, false))
    const reason = (typeUrl: string, name: string) => {
      const input = explainInput(planner, 'edge', typeUrl, name)
      return input && said(explain(structuredClone(input), () => false))['VirtualService/ns/v']
    }
    const wanted = 'its gateways are Gateway/ns/one, with port 8000: port 9000 is of another'
    expect(reason(virtualHostType, 'http.9000/a.example:9000')).to.equal(wanted)
    expect(reason(routeType, 'http.9000')).to.equal(wanted)
    expect(reason(routeType, 'http.8000')).to.equal('changed')
  })

  it('names what keeps a resource from a proxy', () => {
    const objects = [service('other/a', 'a.example', endpoints), object('Sidecar', 'ns/all', '{egress: [{hosts: ["./*"]}]}')]
    const answer = explained(objects, clusterType, cluster)
    expect([answer.exists, answer.isComplete]).to.deep.equal([false, true])
    expect(said(answer)).to.deep.equal({ 'Sidecar/ns/all': 'added', 'ServiceEntry/other/a': 'Sidecar/ns/all does not import a.example' })
    const ofPort = object(
      'Sidecar',
      'ns/all',
      '{egress: [{port: {number: 9090, protocol: HTTP, name: http}, hosts: ["*/*"]}, {port: {number: 70, protocol: HTTP, name: http}, hosts: ["ns/*"]}]}',
    )
    expect(said(explained([service('other/a', 'a.example', endpoints), ofPort], clusterType, cluster))['ServiceEntry/other/a'], 'a port').to.equal(
      'the listeners of Sidecar/ns/all whose hosts name a.example are for port 9090, and it has only port 80 (V9 in docs/resources.md)',
    )
  })

  it('says which workloads and rules have a part in endpoints, and which of several routes counts', () => {
    const objects = [
      service('ns/a', 'a.example', ', workloadSelector: {labels: {app: a}}'),
      object('WorkloadEntry', 'ns/one', '{address: 10.0.0.1, labels: {app: a, v: "1"}}'),
      object('WorkloadEntry', 'ns/two', '{address: 10.0.0.2, labels: {app: a, v: "2"}}'),
      object('DestinationRule', 'ns/rule', '{host: a.example, subsets: [{name: s, labels: {v: "2"}}]}'),
      object('VirtualService', 'ns/old', '{hosts: [a.example], http: [{timeout: 1s, route: [{destination: {host: a.example}}]}]}'),
      object(
        'VirtualService',
        'ns/new',
        '{hosts: [a.example], http: [{timeout: 2s, route: [{destination: {host: a.example}}]}]}',
        '2021-01-01T00:00:00Z',
      ),
    ]
    expect(said(explained(objects, endpointType, 'outbound|80|s|a.example'))).to.include({
      'ServiceEntry/ns/a': 'removed',
      'DestinationRule/ns/rule': 'removed',
      'WorkloadEntry/ns/one': 'the resource is the same without it',
      'WorkloadEntry/ns/two': 'changed',
      'VirtualService/ns/old': 'a VirtualService has a part in clusters and endpoints only where a Sidecar imports it',
    })
    expect(said(explained(objects, routeType, '80'))).to.include({
      'VirtualService/ns/old': 'changed',
      'VirtualService/ns/new': 'VirtualService/ns/old counts for a.example: it is older or for a more specific host',
    })
  })

  it('says which policies have a part in the listener of a workload', () => {
    const objects = [
      service('ns/p', 'p.example', ', endpoints: [{address: 10.1.0.1, labels: {app: p}}]'),
      object('AuthorizationPolicy', 'ns/mine', '{selector: {matchLabels: {app: p}}, rules: [{to: [{operation: {paths: [/a]}}]}]}'),
      object('AuthorizationPolicy', 'ns/others', '{selector: {matchLabels: {app: q}}, rules: [{to: [{operation: {paths: [/a]}}]}]}'),
      object('PeerAuthentication', 'ns/strict', '{mtls: {mode: STRICT}}'),
    ]
    expect(said(explained(objects, listenerType, 'virtualInbound'))).to.deep.include({
      'ServiceEntry/ns/p': 'changed',
      'AuthorizationPolicy/ns/mine': 'changed',
      'AuthorizationPolicy/ns/others': 'its selector does not match the proxy',
      'PeerAuthentication/ns/strict': 'changed',
    })
  })

  it('says which pods, nodes and namespaces have a part in endpoints, by their labels', () => {
    const documents = (text: string) => {
      const { objects, faults } = parseConfigFile('cluster.yaml', text, names)
      if (faults.length > 0) throw new Error(JSON.stringify(faults))
      return objects
    }
    const objects = [
      service('ns/a', 'a.example', ', workloadSelector: {labels: {app: a}}'),
      ...documents(
        [
          'metadata: {name: ns, labels: {mesh: "on"}}\nkind: Namespace',
          'metadata: {name: n1, labels: {topology.kubernetes.io/region: here}}\nkind: Node',
          'metadata: {name: one, namespace: ns, labels: {app: a}}\nkind: Pod\nspec: {nodeName: n1}\nstatus: {podIP: 10.0.0.1}',
          'metadata: {name: p, namespace: ns, labels: {app: p}}\nkind: Pod\nstatus: {podIP: 10.1.0.1}',
        ]
          .map((text) => `apiVersion: v1\n${text}\n`)
          .join('---\n'),
      ),
    ]
    const planner = new Planner(testSettings())
    planner.state.setMesh({ ...planner.snapshot.mesh, discoverySelectors: [{ matchLabels: { mesh: 'on' } }] })
    for (const each of objects) planner.state.setConfig(configKey(each), each)
    planner.advance()
    planner.connect('p', node)
    const input = explainInput(planner, 'p', endpointType, cluster)
    if (!input) throw new Error('no such proxy')
    const answer = explain(structuredClone(input), () => false)
    expect([answer.exists, answer.isComplete]).to.deep.equal([true, true])
    expect(said(answer)).to.deep.equal({
      'ServiceEntry/ns/a': 'removed',
      'Namespace//ns': 'removed',
      'Pod/ns/one': 'changed',
      'Node//n1': 'changed',
      'Pod/ns/p': 'the resource is the same without it',
    })
  })

  it('names what discoverySelectors leave out', () => {
    const planner = new Planner(testSettings())
    planner.state.setMesh({ ...planner.snapshot.mesh, discoverySelectors: [{ matchLabels: { mesh: 'on' } }] })
    for (const each of [service('ns/a', 'a.example', endpoints), service('ns/b', 'b.example', endpoints)])
      planner.state.setConfig(configKey(each), each)
    planner.advance()
    planner.connect('p', node)
    const input = explainInput(planner, 'p', clusterType, cluster)
    if (!input) throw new Error('no such proxy')
    const answer = explain(structuredClone(input), () => false)
    expect(answer.exists).to.equal(false)
    expect(said(answer)).to.deep.equal({
      'ServiceEntry/ns/a': 'namespace ns is not discovered: discoverySelectors do not select it (O3 in docs/resources.md)',
    })
  })

  it('names the definition that counts and those of other sources, which are left out', () => {
    const [first, second] = ['b1.yaml', 'b2.yaml'].map((place) => ({ ...service('ns/a', 'a.example', endpoints), place, source: place }))
    const planner = new Planner(testSettings())
    planner.state.setSources(['first', 'second'])
    for (const [source, each] of Object.entries({ first, second })) if (each) planner.state.setConfig(configKey(each), each, source)
    const other = object('VirtualService', 'ns/v', '{hosts: [a.example], http: [{route: [{destination: {host: a.example}}]}]}')
    for (const source of ['first', 'second']) planner.state.setConfig(configKey(other), { ...other, source }, source)
    planner.advance()
    planner.connect('p', node)
    const input = explainInput(planner, 'p', clusterType, cluster)
    if (!input) throw new Error('no such proxy')
    const told = explain(structuredClone(input), () => false).objects.map(({ key, source, without, reason }) => [key, source, without, reason])
    expect(told).to.deep.equal([
      ['ServiceEntry/ns/a', 'b1.yaml', 'removed', ''],
      ['VirtualService/ns/v', 'first', 'same', 'a VirtualService has a part in clusters and endpoints only where a Sidecar imports it'],
      ['ServiceEntry/ns/a', 'b2.yaml', 'same', 'the definition in b1.yaml of b1.yaml comes first (F9 in docs/operation.md)'],
      ['VirtualService/ns/v', 'second', 'same', 'the definition in f.yaml, document 1 of first comes first (F9 in docs/operation.md)'],
    ])
    expect(explain({ ...structuredClone(input), typeUrl: listenerType, name: 'virtualInbound' }, () => false).objects[0]?.reason).to.equal(
      'the resource is the same without it',
    )
  })

  it('tries what there is time for, and says how many objects are left', () => {
    const input = explainInput(planned([service('ns/a', 'a.example', endpoints), service('other/a', 'a.example')]), 'p', clusterType, cluster)
    if (!input) throw new Error('no such proxy')
    let trials = 0
    expect(explain(input, () => trials++ > 0)).to.deep.include({ untried: 1, isComplete: false })
    expect(explainInput(planned([]), 'unknown', clusterType, cluster)).to.equal(undefined)
  })

  const arbitraryObjects = fc.uniqueArray(
    fc.oneof(
      fc
        .record({
          path: fc.constantFrom('ns/a', 'ns/b', 'other/a', 'other/b', 'ns/p'),
          host: fc.constantFrom('a.example', 'b.example'),
          exportTo: fc.constantFrom('', ', exportTo: ["."]', ', exportTo: ["ns"]'),
          address: fc.constantFrom('10.0.0.1', '10.0.0.2', '10.1.0.1'),
          year: fc.constantFrom(2020, 2021, 2022),
        })
        .map(({ path, host, exportTo, address, year }) =>
          service(path, host, `, endpoints: [{address: ${address}, labels: {v: "1"}}]${exportTo}`, `${year}-01-01T00:00:00Z`),
        ),
      fc
        .record({
          path: fc.constantFrom('ns/r', 'ns/s', 'other/r', 'mesh-system/r'),
          host: fc.constantFrom('a.example', '*.example'),
          most: fc.integer({ min: 1, max: 3 }),
          year: fc.constantFrom(2020, 2021),
        })
        .map(({ path, host, most, year }) =>
          object(
            'DestinationRule',
            path,
            `{host: "${host}", trafficPolicy: {connectionPool: {tcp: {maxConnections: ${most}}}}, subsets: [{name: s, labels: {v: "${most}"}}]}`,
            `${year}-01-01T00:00:00Z`,
          ),
        ),
      fc
        .record({
          path: fc.constantFrom('ns/v', 'ns/w', 'other/v'),
          host: fc.constantFrom('a.example', 'b.example'),
          year: fc.constantFrom(2020, 2021),
        })
        .map(({ path, host, year }) =>
          object(
            'VirtualService',
            path,
            `{hosts: [${host}], http: [{timeout: ${year - 2019}s, route: [{destination: {host: b.example}}]}]}`,
            `${year}-01-01T00:00:00Z`,
          ),
        ),
      fc
        .record({
          path: fc.constantFrom('ns/x', 'mesh-system/x'),
          hosts: fc.constantFrom('["./*"]', '["*/a.example"]', '["*/*"]'),
          app: fc.constantFrom('', 'p', 'q'),
        })
        .map(({ path, hosts, app }) =>
          object(
            'Sidecar',
            path,
            `{${app && path.startsWith('ns') ? `workloadSelector: {labels: {app: ${app}}}, ` : ''}egress: [{hosts: ${hosts}}]}`,
          ),
        ),
      fc
        .record({ path: fc.constantFrom('ns/z', 'mesh-system/z'), app: fc.constantFrom('p', 'q'), at: fc.constantFrom('/a', '/b') })
        .map(({ path, app, at }) =>
          object('AuthorizationPolicy', path, `{selector: {matchLabels: {app: ${app}}}, rules: [{to: [{operation: {paths: [${at}]}}]}]}`),
        ),
    ),
    { minLength: 1, maxLength: 9, selector: configKey },
  )
  const asked = fc.constantFrom(
    [clusterType, cluster],
    [clusterType, 'outbound|80|s|a.example'],
    [endpointType, cluster],
    [endpointType, 'outbound|80||b.example'],
    [listenerType, '0.0.0.0_80'],
    [listenerType, 'virtualInbound'],
    [routeType, '80'],
  )

  it('says of every object what happens without it, in random meshes', () => {
    fc.assert(
      fc.property(arbitraryObjects, asked, (objects, [typeUrl = '', name = '']) => {
        const answer = explained(objects, typeUrl, name)
        expect(answer.isComplete, 'the gathered objects make what the proxy has').to.equal(true)
        const before = digest(planned(objects), typeUrl, name)
        expect(answer.exists).to.equal(before !== undefined)
        const told = new Map(answer.objects.map(({ key, without }) => [key, without]))
        for (const each of objects) {
          const after = digest(planned(objects.filter((other) => other !== each)), typeUrl, name)
          const happened = before === after ? 'same' : before === undefined ? 'added' : after === undefined ? 'removed' : 'changed'
          expect(told.get(configKey(each)) ?? 'same', `${typeUrl} ${name} without ${configKey(each)}`).to.equal(happened)
        }
        for (const { without, reason } of answer.objects) expect(reason === '').to.equal(without !== 'same')
      }),
      { numRuns: runs(150) },
    )
  })
})
