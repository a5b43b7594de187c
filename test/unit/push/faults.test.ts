import { fromBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import type { ConfigObject } from '../../../protocols/data.ts'
import { ListenerSchema } from '../../../protocols/gen/envoy/config/listener/v3/listener_pb.js'
import { configKey, kinds } from '../../../src/config/kinds.ts'
import { Faults, type ResourceFault } from '../../../src/model/faults.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { Planner } from '../../../src/push/planner.ts'
import { clusterType, endpointType, listenerType, routeType } from '../../../src/xds/type-urls.ts'
import { resourcesOf } from '../../harness/held.ts'
import { names, testSettings } from '../../harness/settings.ts'

const sidecar = (namespace: string) =>
  readNode({ id: `sidecar~10.1.0.1~p.${namespace}~${namespace}.svc.cluster.local`, metadata: {}, locality: undefined }, names, false)
const router = readNode({ id: 'router~10.1.0.2~g.ns~ns.svc.cluster.local', metadata: { LABELS: { app: 'gw' } }, locality: undefined }, names, false)

/** Returns an object as it would be if its shape accepted every value. */
const unchecked = (kind: string, name: string, spec: unknown, namespace = 'ns'): ConfigObject => ({
  kind,
  group: `${kinds.get(kind)?.group}.mesh.io`,
  version: 'v1',
  namespace,
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
  place: 'f, document 1',
})
const entry = (name: string, more: object = {}, port: object = {}) =>
  unchecked('ServiceEntry', name, {
    hosts: [`${name}.ns.svc.cluster.local`],
    location: 'MESH_INTERNAL',
    resolution: 'STATIC',
    ports: [{ number: 80, name: 'http', ...port }],
    endpoints: [{ address: '10.0.0.1' }],
    ...more,
  })
const route = (name: string, more: object) =>
  unchecked('VirtualService', name, { hosts: [name], http: [{ route: [{ destination: { host: name } }], ...more }] })

class Mesh {
  readonly reported: ResourceFault[] = []
  readonly planner = new Planner(testSettings(), (fault) => this.reported.push(fault))

  set(...objects: ConfigObject[]): this {
    for (const object of objects) this.planner.state.setConfig(configKey(object), object)
    this.planner.advance()
    this.planner.takePush()
    return this
  }

  remove(object: ConfigObject): void {
    this.planner.state.setConfig(configKey(object), undefined)
    this.planner.advance()
    this.planner.takePush()
  }

  /** Returns names and versions of the resources of a type that a connection has. */
  held(connection: string, type: string): Record<string, string> {
    return Object.fromEntries((resourcesOf(this.planner, connection).get(type) ?? []).map(({ name, version }) => [name, version]))
  }

  faults(): string[] {
    return this.planner.faults.all().map(({ type, resource, objects, consequence }) => `${type} ${resource} [${objects.join()}] ${consequence}`)
  }
}

describe('an error while a resource is generated', () => {
  it('affects one virtual host: the last good one is kept, and the others of the route are updated', () => {
    const mesh = new Mesh().set(entry('a'), entry('b'), route('a', { timeout: 1000 }), route('b', { timeout: 1000 }))
    mesh.planner.connect('p', sidecar('other'))
    const before = mesh.held('p', routeType)['80']
    mesh.set(route('a', { timeout: Number.NaN }))
    expect(mesh.held('p', routeType)['80'], 'the last good state stays').to.equal(before)
    expect(mesh.faults()).to.deep.equal(['rds 80/a.ns.svc.cluster.local:80 [ServiceEntry/ns/a,VirtualService/ns/a] the last good state stays'])
    mesh.set(route('b', { timeout: 2000 }))
    const after = mesh.held('p', routeType)['80']
    expect(after, 'another host of the route changes').not.to.equal(before)
    expect(mesh.reported, 'a fault is reported once').to.have.length(1)
    mesh.set(route('a', { timeout: 1000 }))
    expect(mesh.faults(), 'mended').to.deep.equal([])
    expect(mesh.held('p', routeType)['80'], 'what was kept is what it would be').to.equal(after)
  })

  it('is reported when a proxy connects, says if there is no last good state, and is gone with its object', () => {
    const bad = route('a', { timeout: Number.NaN })
    const mesh = new Mesh().set(entry('a'), entry('b'), bad)
    expect(mesh.reported).to.deep.equal([])
    mesh.planner.connect('p', sidecar('other'))
    expect(mesh.reported.map(({ resource, consequence }) => `${resource}: ${consequence}`)).to.deep.equal([
      '80/a.ns.svc.cluster.local:80: it is left out',
    ])
    mesh.remove(bad)
    expect(mesh.faults()).to.deep.equal([])
  })

  it('affects one cluster and its endpoints, not those of other services or ports', () => {
    const rule = (connections: unknown) =>
      unchecked('DestinationRule', 'a', { host: 'a', trafficPolicy: { connectionPool: { tcp: { maxConnections: connections } } } })
    const mesh = new Mesh().set(entry('a'), entry('b', { endpoints: [{ address: '10.0.0.1', weight: Number.NaN }] }), rule(5))
    mesh.planner.connect('p', sidecar('ns'))
    const before = mesh.held('p', clusterType)
    for (const wrong of [-1, 1.5, Number.POSITIVE_INFINITY, 'x', {}]) {
      mesh.set(rule(wrong))
      expect(mesh.held('p', clusterType), String(wrong)).to.deep.equal(before)
      expect(mesh.faults()).to.include('cds outbound|80||a.ns.svc.cluster.local [DestinationRule/ns/a,ServiceEntry/ns/a] the last good state stays')
    }
    expect(Object.keys(mesh.held('p', endpointType))).to.deep.equal(['outbound|80||a.ns.svc.cluster.local'])
    mesh.set(entry('c'))
    expect(mesh.held('p', clusterType)).to.have.property('outbound|80||c.ns.svc.cluster.local')
    mesh.set(rule(6))
    expect(mesh.faults()).to.deep.equal(['eds outbound|80||b.ns.svc.cluster.local [ServiceEntry/ns/b] it is left out'])
    expect(mesh.held('p', clusterType)['outbound|80||a.ns.svc.cluster.local']).not.to.equal(before['outbound|80||a.ns.svc.cluster.local'])
  })

  it('affects one endpoint: a workload with a host name in an EDS cluster is left out', () => {
    const workload = (address: string) => ({ ...unchecked('WorkloadEntry', 'w', { address, labels: { app: 'a' } }), labels: {} })
    const selecting = { ...entry('a', { endpoints: undefined, workloadSelector: { labels: { app: 'a' } } }) }
    const mesh = new Mesh().set(selecting, workload('vm.example.com'), { ...workload('10.0.0.7'), name: 'good' })
    mesh.planner.connect('p', sidecar('ns'))
    expect(mesh.faults()).to.deep.equal(['eds a.ns.svc.cluster.local [WorkloadEntry/ns/w,ServiceEntry/ns/a] it is left out'])
    const before = mesh.held('p', endpointType)['outbound|80||a.ns.svc.cluster.local']
    mesh.set(workload('10.0.0.8'))
    expect(mesh.faults()).to.deep.equal([])
    expect(mesh.held('p', endpointType)['outbound|80||a.ns.svc.cluster.local']).not.to.equal(before)
  })

  it('affects the filter chains of one service on a shared listener', () => {
    const tcp = (name: string, port: number) => entry(name, { addresses: ['10.9.0.0/16'] }, { number: port, name: 'tcp' })
    const bad = unchecked('VirtualService', 'a', {
      hosts: ['a'],
      tcp: [{ match: [{ destinationSubnets: ['10.0.0.0/abc'] }], route: [{ destination: { host: 'a' } }] }],
    })
    const mesh = new Mesh().set(tcp('a', 90), tcp('b', 91), bad)
    mesh.planner.connect('p', sidecar('ns'))
    expect(mesh.held('p', listenerType)).to.include.keys('0.0.0.0_91', 'virtualOutbound')
    expect(mesh.faults()).to.have.length(1)
    expect(mesh.faults()[0]).to.match(/^lds 0\.0\.0\.0_90 \[.*ServiceEntry\/ns\/a.*\] it is left out$/)
    mesh.remove(bad)
    expect(mesh.held('p', listenerType)).to.include.keys('0.0.0.0_90')
    expect(mesh.faults()).to.deep.equal([])
  })

  it('affects one host of a gateway, not the other hosts of its route', () => {
    const gateway = unchecked('Gateway', 'g', {
      selector: { app: 'gw' },
      servers: [{ port: { number: 80, name: 'h', protocol: 'HTTP' }, hosts: ['*'] }],
    })
    const bound = (name: string, more: object) => {
      const object = route(name, more)
      return { ...object, spec: { ...(object.spec as object), hosts: [`${name}.com`], gateways: ['g'] } }
    }
    const mesh = new Mesh().set(entry('a'), entry('b'), gateway, bound('a', { timeout: 1000 }), bound('b', { timeout: 1000 }))
    mesh.planner.connect('g', router)
    const before = mesh.held('g', routeType)['http.80']
    mesh.planner.takePush()
    mesh.set(bound('a', { timeout: Number.NaN }))
    expect(mesh.held('g', routeType)['http.80']).to.equal(before)
    expect(mesh.faults()).to.deep.equal(['rds http.80/a.com:80 [VirtualService/ns/a] the last good state stays'])
    mesh.set(bound('b', { timeout: 2000 }))
    const after = mesh.held('g', routeType)['http.80']
    expect(after).not.to.equal(before)
    mesh.set(bound('a', { timeout: 1000 }))
    expect([mesh.held('g', routeType)['http.80'], mesh.faults()]).to.deep.equal([after, []])
  })

  it('affects one object of an index or one ServiceEntry, even if the object cannot be compared', () => {
    const mesh = new Mesh().set(entry('a'), route('a', { timeout: 1000 }))
    mesh.set(
      unchecked('VirtualService', 'broken', { hosts: [5] }),
      unchecked('DestinationRule', 'broken', {}),
      unchecked('ServiceEntry', 'broken', {}),
      unchecked('WorkloadEntry', 'broken', { address: 1n }),
      unchecked('Sidecar', 'broken', null, 'odd'),
      unchecked('AuthorizationPolicy', 'broken', { rules: [{ from: 7 }] }),
      entry('b'),
    )
    mesh.planner.connect('p', sidecar('other'))
    mesh.planner.connect('q', sidecar('ns'))
    mesh.planner.connect('g', router)
    expect(mesh.held('p', clusterType)).to.include.keys('outbound|80||a.ns.svc.cluster.local', 'outbound|80||b.ns.svc.cluster.local')
    const blamed = mesh.planner.faults.all().flatMap(({ objects }) => objects)
    expect(blamed).to.include.members([
      'VirtualService/ns/broken',
      'DestinationRule/ns/broken',
      'ServiceEntry/ns/broken',
      'WorkloadEntry/ns/broken',
      'AuthorizationPolicy/ns/broken',
    ])
    mesh.set(route('a', { timeout: 3000 }))
    expect(mesh.held('p', routeType)).to.include.keys('80')
  })

  it('affects the class of a proxy with an unreadable Sidecar, which the fault names', () => {
    const mesh = new Mesh().set(entry('a'), unchecked('Sidecar', 's', { egress: [{ hosts: [7] }] }))
    mesh.planner.connect('p', sidecar('ns'))
    mesh.planner.connect('q', sidecar('other'))
    expect(mesh.planner.faults.all().some(({ objects }) => objects.includes('Sidecar/ns/s'))).to.equal(true)
    expect(mesh.held('q', clusterType)).to.include.keys('outbound|80||a.ns.svc.cluster.local')
    mesh.set(unchecked('Sidecar', 's', { egress: [{ hosts: ['*/*'] }] }))
    expect(mesh.faults()).to.deep.equal([])
    expect(mesh.held('p', clusterType)).to.include.keys('outbound|80||a.ns.svc.cluster.local')
  })

  it('in patches and gateways is cleared when the object is corrected or deleted', () => {
    const filter = (value: object) =>
      unchecked('EnvoyFilter', 'f', { configPatches: [{ applyTo: 'CLUSTER', match: { context: 'ANY' }, patch: { operation: 'MERGE', value } }] })
    const mesh = new Mesh().set(entry('a'), filter({ connect_timeout: '5s' }))
    mesh.planner.connect('p', sidecar('ns'))
    mesh.planner.connect('q', sidecar('ns'))
    expect(mesh.faults()).to.deep.equal([])
    const bad = { ...filter({ connect_timeout: 'soon' }), namespace: 'mesh-system' }
    mesh.set(bad)
    expect(mesh.faults()).to.deep.equal(['patch EnvoyFilter/mesh-system/f [EnvoyFilter/mesh-system/f] the patch is left out'])
    expect(mesh.reported).to.have.length(1)
    mesh.remove(bad)
    expect(mesh.faults()).to.deep.equal([])
    const gateway = (name: string, protocol: string) =>
      unchecked('Gateway', name, { selector: { app: 'gw' }, servers: [{ port: { number: 80, name: 'h', protocol }, hosts: ['*'] }] })
    mesh.set(gateway('g', 'HTTP'), gateway('h', 'TCP'))
    mesh.planner.connect('g', router)
    expect(mesh.faults()).to.deep.equal(['gateway ns/h [Gateway/ns/h] the server is left out'])
    mesh.remove(gateway('g', 'HTTP'))
    expect(mesh.faults()).to.deep.equal([])
  })

  it('due to a patch that makes a resource invalid affects the patch only', () => {
    const filter = unchecked('EnvoyFilter', 'f', {
      configPatches: [{ applyTo: 'CLUSTER', patch: { operation: 'MERGE', value: { connect_timeout: '-1s' } } }],
    })
    const mesh = new Mesh().set(entry('a'), filter)
    mesh.planner.connect('p', sidecar('ns'))
    expect(mesh.held('p', clusterType)).to.include.keys('outbound|80||a.ns.svc.cluster.local', 'BlackHoleCluster')
    expect(mesh.faults()).to.deep.equal(['patch EnvoyFilter/ns/f [EnvoyFilter/ns/f] the patch is left out'])
  })

  it('conflicts of listeners are counted once for each view', () => {
    const tcp = (name: string) => entry(name, { addresses: ['10.9.0.1'] }, { number: 90, name: 'tcp' })
    const mesh = new Mesh().set(tcp('a'), tcp('b'), unchecked('Sidecar', 's', { egress: [{ hosts: ['./*'] }] }))
    mesh.planner.connect('p', sidecar('ns'))
    const kinds = () => mesh.planner.builder.conflicts.map(({ kind, view }) => `${kind} ${view}`).sort()
    expect(kinds()).to.deep.equal(['tcp_over_current_tcp sidecar:ns/s@ns'])
    mesh.planner.connect('q', sidecar('other'))
    mesh.planner.connect('r', { ...sidecar('other'), metadata: { IDLE_TIMEOUT: '5s' } })
    expect(kinds()).to.deep.equal(['tcp_over_current_tcp public', 'tcp_over_current_tcp sidecar:ns/s@ns'])
    const losses = () => mesh.planner.faults.all().map(({ resource, objects, reason, isLoss }) => [resource, ...objects, reason, isLoss])
    const reason = 'b.ns.svc.cluster.local claims addresses or server names there that another service has (L4 in docs/resources.md)'
    expect(losses(), 'a loss, once for all').to.deep.equal([['10.9.0.1_90', 'ServiceEntry/ns/b', reason, true]])
    mesh.remove(tcp('b'))
    expect([...kinds(), ...losses()]).to.deep.equal([])
  })

  it('in a class leaves that proxy without an assignment, and other proxies unaffected', () => {
    const mesh = new Mesh().set(entry('a'))
    const strange = {
      ...sidecar('ns'),
      get labels(): never {
        throw new Error('unreadable')
      },
    }
    mesh.planner.connect('good', sidecar('ns'))
    mesh.planner.connect('strange', strange)
    expect(mesh.faults().join()).to.match(/class sidecar~10.1.0.1~p.ns~/)
    const assignments = mesh.planner.assignments()
    expect(assignments.map(({ connection }) => connection)).to.deep.equal(['good'])
    expect(assignments[0]?.classId).not.to.equal('')
  })

  describe('a listener with policies', () => {
    const policy = (name: string, paths: string[]) => ({
      ...unchecked('AuthorizationPolicy', name, { action: 'DENY', rules: [{ to: [{ operation: { paths } }] }] }),
      group: 'security.mesh.io',
    })
    const ingress = (...entries: unknown[]) => unchecked('Sidecar', 's', { egress: [{ hosts: ['*/*'] }], ingress: entries })
    const listed = { port: { number: 9080, name: 'http', protocol: 'HTTP' }, defaultEndpoint: '127.0.0.1:80' }
    const serving = (number: number) => ingress({ ...listed, port: { ...listed.port, number } })
    const chains = (mesh: Mesh, connection: string, name: string) => {
      const resource = resourcesOf(mesh.planner, connection)
        .get(listenerType)
        ?.find((each) => each.name === name)
      return resource && fromBinary(ListenerSchema, mesh.planner.groups.valueOf(resource)).filterChains.map((chain) => chain.name)
    }

    it('denies all traffic while it cannot be generated and a policy selects the workload', () => {
      const mesh = new Mesh().set(serving(8080), policy('d', ['/a']))
      mesh.planner.connect('p', sidecar('ns'))
      const good = mesh.held('p', listenerType)
      mesh.set(serving(1.5), policy('d', ['/b']))
      expect(chains(mesh, 'p', 'virtualInbound')).to.deep.equal(['refused'])
      expect(mesh.faults()).to.include('lds virtualInbound [Sidecar/ns/s,AuthorizationPolicy/ns/d] it lets nothing through until it can be made')
      const denying = mesh.held('p', listenerType)
      expect(denying.virtualOutbound, 'what is outbound judges by no policies').to.equal(good.virtualOutbound)
      mesh.set(policy('d', ['/c']))
      expect(mesh.held('p', listenerType), 'made again of itself').to.deep.equal(denying)
      mesh.set(serving(8080), policy('d', ['/a']))
      expect(mesh.held('p', listenerType)).to.deep.equal(good)
      expect(mesh.faults()).to.deep.equal([])
    })

    it('keeps its last good state if no policy selects the workload', () => {
      const mesh = new Mesh().set(serving(8080))
      mesh.planner.connect('p', sidecar('ns'))
      const good = mesh.held('p', listenerType).virtualInbound
      mesh.set(serving(1.5))
      expect(mesh.held('p', listenerType).virtualInbound).to.equal(good)
      expect(mesh.faults()).to.include('lds virtualInbound [Sidecar/ns/s] the last good state stays')
    })

    it('denies all traffic if the ports of the workload cannot be determined', () => {
      const mesh = new Mesh().set(ingress(listed), policy('d', ['/a']))
      mesh.planner.connect('p', sidecar('ns'))
      mesh.set(ingress(listed, { ...listed, port: null }))
      expect(chains(mesh, 'p', 'virtualInbound')).to.deep.equal(['refused'])
      expect(mesh.faults()).to.include('lds virtualInbound [Sidecar/ns/s,AuthorizationPolicy/ns/d] it lets nothing through until it can be made')
      mesh.set(ingress(listed))
      expect(chains(mesh, 'p', 'virtualInbound')).to.include('0.0.0.0_9080')
    })

    it('denies all traffic at a gateway whose listener cannot be generated', () => {
      const gateway = (name: string, bind: unknown, number = 80) =>
        unchecked('Gateway', name, { selector: { app: 'gw' }, servers: [{ bind, port: { number, name: 'h', protocol: 'HTTP' }, hosts: ['*'] }] })
      const mesh = new Mesh().set(gateway('g', ''), gateway('h', '', 81), policy('d', ['/a']))
      mesh.planner.connect('g', router)
      const good = mesh.held('g', listenerType)
      mesh.set(unchecked('Gateway', 'g', { selector: { app: 'gw' }, servers: [{ port: null }] }), policy('d', ['/b']))
      for (const name of ['0.0.0.0_80', '0.0.0.0_81']) expect(chains(mesh, 'g', name)).to.deep.equal(['refused'])
      expect(mesh.faults()).to.include(
        'lds 0.0.0.0_80 [Gateway/ns/g,Gateway/ns/h,AuthorizationPolicy/ns/d] it lets nothing through until it can be made',
      )
      mesh.set(gateway('g', ''), policy('d', ['/a']))
      expect(mesh.held('g', listenerType)).to.deep.equal(good)
    })
  })
})

describe('faults', () => {
  it('are kept by scope: clearing one scope leaves the same fault of another', () => {
    const reported: string[] = []
    const faults = new Faults(({ resource }) => reported.push(resource))
    const fault = { type: 'cds', resource: 'x', objects: [], reason: 'r', consequence: 'c' }
    faults.replace('one', [fault])
    faults.replace('other', [fault])
    faults.clear('one')
    expect([faults.all(), reported]).to.deep.equal([[fault], ['x']])
    faults.clear('other')
    expect(faults.all()).to.deep.equal([])
    faults.replace('one', [fault])
    expect(reported).to.deep.equal(['x', 'x'])
  })
})
