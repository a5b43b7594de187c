/** Generated parts that proxies share: correctness of sharing, and its cost. */
import { fromBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { VirtualHostSchema } from '../../../protocols/gen/envoy/config/route/v3/route_components_pb.js'
import { RouteConfigurationSchema } from '../../../protocols/gen/envoy/config/route/v3/route_pb.js'
import { configKey } from '../../../src/config/kinds.ts'
import { parseConfigFile } from '../../../src/config/parse.ts'
import { readNode } from '../../../src/model/proxy.ts'
import { ServedClass } from '../../../src/push/classes/served-class.ts'
import { Planner } from '../../../src/push/planner.ts'
import { clusterType, endpointType, listenerType, routeType, virtualHostType } from '../../../src/xds/type-urls.ts'
import { resourcesOf } from '../../harness/held.ts'
import { names, testSettings } from '../../harness/settings.ts'

/** A planner whose objects are set one by one, each in a push of its own. */
class Mesh {
  readonly planner = new Planner(testSettings())

  set(kind: string, namespace: string, name: string, spec: object, apiVersion = 'networking.mesh.io/v1'): this {
    const text = JSON.stringify({ apiVersion, kind, metadata: { name, namespace }, spec })
    for (const object of parseConfigFile('f', text, names).objects) this.planner.state.setConfig(configKey(object), object)
    return this.push()
  }

  service(namespace: string, host: string, port = 80, exportTo: readonly string[] = []): this {
    const ports = [{ number: port, name: 'http', protocol: 'HTTP' }]
    const spec = { hosts: [host], exportTo, location: 'MESH_INTERNAL', resolution: 'STATIC', ports, endpoints: [{ address: '10.0.0.1' }] }
    return this.set('ServiceEntry', namespace, host, spec)
  }

  remove(kind: string, namespace: string, name: string): this {
    this.planner.state.setConfig(`${kind}/${namespace}/${name}`, undefined)
    return this.push()
  }

  push(): this {
    this.planner.advance()
    this.planner.takePush()
    return this
  }

  connect(connection: string, namespace: string, address: string, labels: object = {}, takesVirtualHosts = false): this {
    const id = `sidecar~${address}~p.${namespace}~${namespace}.svc.cluster.local`
    this.planner.connect(connection, { ...readNode({ id, metadata: { LABELS: labels }, locality: undefined }, names, false), takesVirtualHosts })
    this.planner.takePush()
    return this
  }

  route(connection: string, name: string) {
    const resource = resourcesOf(this.planner, connection)
      .get(routeType)
      ?.find((each) => each.name === name)
    return resource && fromBinary(RouteConfigurationSchema, this.planner.groups.valueOf(resource))
  }

  classOf(connection: string) {
    return this.planner.proxies().find((proxy) => proxy.connection === connection)?.proxyClass
  }

  groupsOf(connection: string, type: string): string[] {
    return (this.planner.servedClass(connection)?.manifest?.groups[type] ?? []).map(({ group }) => group)
  }
}

describe('generated parts that proxies share', () => {
  it('are available to the next proxy although they were regenerated with the same bytes and unused for a while', () => {
    const rule = (subset: string) => ({ host: 'pub.com', subsets: [{ name: subset, labels: { v: '1' } }] })
    const mesh = new Mesh().service('n2', 'pub.com').set('DestinationRule', 'n2', 'r', rule('one')).connect('p', 'n1', '10.1.0.1')
    mesh.set('DestinationRule', 'n2', 'r', rule('two'))
    for (let round = 0; round < 3; round++) {
      mesh.service('n1', 'own.com', 80, ['.'])
      expect(
        mesh
          .route('p', '80')
          ?.virtualHosts.map(({ name }) => name)
          .sort(),
      ).to.deep.equal(['allow_any', 'own.com:80', 'pub.com:80'])
      mesh.remove('ServiceEntry', 'n1', 'own.com')
      expect(
        mesh
          .route('p', '80')
          ?.virtualHosts.map(({ name }) => name)
          .sort(),
      ).to.deep.equal(['allow_any', 'pub.com:80'])
    }
    expect(mesh.planner.faults.all()).to.deep.equal([])
  })

  it('do not keep patches away from routes that only one namespace has', () => {
    const mesh = new Mesh().service('n1', 'own.com', 81, ['.']).connect('p', 'n1', '10.1.0.1')
    const patch = { operation: 'MERGE', value: { response_headers_to_remove: ['server'] } }
    mesh.set('EnvoyFilter', 'n1', 'f', { configPatches: [{ applyTo: 'ROUTE_CONFIGURATION', match: { context: 'SIDECAR_OUTBOUND' }, patch }] })
    expect(mesh.route('p', '81')?.responseHeadersToRemove).to.deep.equal(['server'])
  })

  it("route unknown hosts to the egress proxy that the Sidecar's namespace sees", () => {
    const mesh = new Mesh().service('n2', 'pub.com').service('n1', 'egress.n1.svc.cluster.local', 3128, ['.'])
    mesh.set('Sidecar', 'n1', 's', { egress: [{ hosts: ['*/*'] }], outboundTrafficPolicy: { mode: 'ALLOW_ANY', egressProxy: { host: 'egress' } } })
    mesh.connect('p', 'n1', '10.1.0.1')
    const rest = mesh.route('p', '80')?.virtualHosts.find(({ name }) => name === 'allow_any')
    const action = rest?.routes[0]?.action
    expect(action?.case === 'route' && action.value.clusterSpecifier.value).to.equal('outbound|3128||egress.n1.svc.cluster.local')
  })

  it('include one class for proxies that differ only in labels that no policy selects', () => {
    const mesh = new Mesh().service('n1', 'a.com').connect('p', 'n1', '10.1.0.1', { app: 'a', pod: 'a-0' })
    const made = mesh.classOf('p')
    mesh.connect('q', 'n1', '10.1.0.2', { app: 'a', pod: 'a-1' })
    expect(mesh.classOf('p')).to.equal(made)
    expect(mesh.classOf('q')).to.equal(made)
  })

  it('include the virtual host of a VirtualService without caller matches, in every view; own short names are added', () => {
    const mesh = new Mesh().service('n1', 'a.n1.svc.cluster.local').service('n2', 'b.com')
    const route = (match: object) => ({ hosts: ['a.n1.svc.cluster.local'], http: [{ ...match, route: [{ destination: { host: 'b.com' } }] }] })
    for (const namespace of ['n1', 'n2', 'n3']) mesh.set('Sidecar', namespace, 's', { egress: [{ hosts: ['n1/*', 'n2/*'] }] })
    const connections = ['n1', 'n2', 'n3']
    mesh.set('VirtualService', 'n1', 'v', route({ match: [{ uri: { prefix: '/x' } }] }))
    for (const [index, namespace] of connections.entries()) mesh.connect(namespace, namespace, `10.1.0.${index}`, {}, true)
    const host = (connection: string) =>
      resourcesOf(mesh.planner, connection)
        .get(virtualHostType)
        ?.find(({ name }) => name === '80/a.n1.svc.cluster.local:80')
    const domains = (connection: string) => {
      const resource = host(connection)
      return resource && fromBinary(VirtualHostSchema, mesh.planner.groups.valueOf(resource)).domains
    }
    expect(host('n2')).to.equal(host('n3')).and.to.be.an('object')
    expect(domains('n1')).to.deep.equal([...(domains('n2') ?? []), 'a', 'a:80'])
    mesh.set('VirtualService', 'n1', 'v', route({ match: [{ sourceNamespace: 'n2' }] }))
    expect(host('n2')?.version).to.not.equal(host('n3')?.version)
  })

  it("include a service's route by its own rule if no VirtualService route applies, for each view with its visible rule", () => {
    const mesh = new Mesh().service('n1', 'a.com', 80, ['n2', 'n3'])
    const hash = (httpHeaderName: string) => ({ loadBalancer: { consistentHash: { httpHeaderName } } })
    const rule = (header: string) => mesh.set('DestinationRule', 'n2', 'r', { host: 'a.com', exportTo: ['.'], trafficPolicy: hash(header) })
    mesh.set('VirtualService', 'n1', 'v', { hosts: ['a.com'], exportTo: ['n2', 'n3'], tcp: [{ route: [{ destination: { host: 'b.com' } }] }] })
    rule('x-user')
    mesh.connect('p', 'n2', '10.1.0.1').connect('q', 'n3', '10.1.0.2')
    const headers = (connection: string) => {
      const action = mesh.route(connection, '80')?.virtualHosts.find(({ name }) => name === 'a.com:80')?.routes[0]?.action
      const policies = action?.case === 'route' ? action.value.hashPolicy : []
      return policies.map(({ policySpecifier }) => policySpecifier.case === 'header' && policySpecifier.value.headerName)
    }
    expect([headers('p'), headers('q')]).to.deep.equal([['x-user'], []])
    rule('y-user')
    expect([headers('p'), headers('q')]).to.deep.equal([['y-user'], []])
  })

  it('are generated once for each variant: views with different rules for a VirtualService do not evict each other', () => {
    const mesh = new Mesh().service('n1', 'a.com').service('n1', 'b.com')
    const route = (prefix: string) => ({ hosts: ['a.com'], http: [{ match: [{ uri: { prefix } }], route: [{ destination: { host: 'b.com' } }] }] })
    mesh.set('VirtualService', 'n1', 'v', route('/x'))
    const many = Array.from({ length: 40 }, (_, index) => `own-${index}`)
    for (const namespace of many) {
      mesh.set('DestinationRule', namespace, 'r', { host: 'b.com', exportTo: ['.'], trafficPolicy: { loadBalancer: { simple: 'RANDOM' } } })
      mesh.set('DestinationRule', namespace, 's', { host: 'other.com', exportTo: ['.'] }).connect(namespace, namespace, '10.1.0.1')
    }
    const { memo } = mesh.planner.builder
    const before = memo.made
    mesh.set('VirtualService', 'n1', 'v', route('/y'))
    expect(memo.made - before).to.be.at.most(many.length + 2)
  })

  it('include policy filters and passthrough chains, for all workloads with the same policies', () => {
    const mesh = new Mesh().service('n1', 'a.com')
    const rules = [{ to: [{ operation: { paths: ['/x'] } }] }]
    mesh.set('AuthorizationPolicy', 'n1', 'p', { action: 'DENY', rules }, 'security.mesh.io/v1')
    mesh.connect('p', 'n1', '10.1.0.1')
    const { memo } = mesh.planner.builder
    const made = memo.made
    mesh.set('WorkloadEntry', 'n1', 'w', { address: '10.1.0.2', labels: { app: 'w' } }).set('ServiceEntry', 'n1', 'w.com', {
      hosts: ['w.com'],
      location: 'MESH_INTERNAL',
      resolution: 'STATIC',
      ports: [{ number: 80, name: 'http', protocol: 'HTTP' }],
      workloadSelector: { labels: { app: 'w' } },
    })
    const before = memo.made
    mesh.connect('q', 'n1', '10.1.0.2')
    expect(mesh.classOf('q')?.id).to.not.equal(mesh.classOf('p')?.id)
    expect(before).to.be.greaterThan(made)
    expect(memo.made).to.equal(before)
    mesh.set('AuthorizationPolicy', 'n1', 'p', { action: 'DENY', rules: [{}] }, 'security.mesh.io/v1')
    expect(memo.made).to.equal(before + 2)
  })

  it('are not affected by an EnvoyFilter of the namespace for something else', () => {
    const mesh = new Mesh().service('n1', 'a.com')
    const value = { name: 'f', typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.grpc_web.v3.GrpcWeb' } }
    const patch = { operation: 'INSERT_FIRST', value }
    mesh.set('EnvoyFilter', 'n2', 'f', { configPatches: [{ applyTo: 'HTTP_FILTER', match: { context: 'SIDECAR_OUTBOUND' }, patch }] })
    mesh.connect('p', 'n3', '10.1.0.1').connect('q', 'n2', '10.1.0.2')
    for (const type of [clusterType, endpointType]) {
      const shared = (connection: string) => mesh.groupsOf(connection, type).filter((group) => !group.startsWith('clusters-in'))
      expect(shared('q')).to.deep.equal(shared('p'))
    }
    expect(mesh.groupsOf('q', routeType).filter((group) => mesh.groupsOf('p', routeType).includes(group))).to.have.length(1)
  })

  it('include listeners that no EnvoyFilter changes, and the listeners that filters are applied to', () => {
    const ports = [{ number: 5432, name: 'tcp', protocol: 'TCP' }]
    const tcp = { location: 'MESH_INTERNAL', resolution: 'STATIC', ports, endpoints: [{ address: '10.0.0.2' }] }
    const mesh = new Mesh().service('n1', 'a.com').set('ServiceEntry', 'n1', 'db', { hosts: ['db.com'], ...tcp })
    for (const namespace of ['n2', 'n3']) {
      const value = { name: namespace, typed_config: { '@type': 'type.googleapis.com/envoy.extensions.filters.http.grpc_web.v3.GrpcWeb' } }
      const patch = { operation: 'INSERT_FIRST', value }
      mesh.set('EnvoyFilter', namespace, 'f', { configPatches: [{ applyTo: 'HTTP_FILTER', match: { context: 'SIDECAR_OUTBOUND' }, patch }] })
    }
    mesh.connect('p', 'n2', '10.1.0.1').connect('q', 'n3', '10.1.0.2')
    const listener = (connection: string, name: string) =>
      resourcesOf(mesh.planner, connection)
        .get(listenerType)
        ?.find((each) => each.name === name)
    expect(listener('p', '0.0.0.0_5432')).to.equal(listener('q', '0.0.0.0_5432')).and.to.be.an('object')
    expect(listener('p', '0.0.0.0_80')?.version).to.not.equal(listener('q', '0.0.0.0_80')?.version)
    // Another service on an existing port changes no listener. A service on another port adds one to each proxy.
    mesh.service('n1', 'b.com')
    expect(listener('p', '0.0.0.0_5432')).to.equal(listener('q', '0.0.0.0_5432'))
    mesh.service('n1', 'c.com', 81)
    for (const connection of ['p', 'q']) expect(listener(connection, '0.0.0.0_81')).to.be.an('object')
    expect(listener('p', '0.0.0.0_81')?.version).to.not.equal(listener('q', '0.0.0.0_81')?.version)
  })

  it('include clusters that no EnvoyFilter changes: only those of the service that a patch names are of the proxy alone', () => {
    const mesh = new Mesh().service('n1', 'a.com').service('n1', 'b.com').service('n3', 'c.com', 80, ['.'])
    const filter = (connect_timeout: string, service: string) => {
      const patch = { operation: 'MERGE', value: { connect_timeout } }
      const configPatches = [{ applyTo: 'CLUSTER', match: { context: 'SIDECAR_OUTBOUND', cluster: { service } }, patch }]
      return mesh.set('EnvoyFilter', 'n3', 'f', { workloadSelector: { labels: { app: 'x' } }, configPatches })
    }
    const clusters = (connection: string) =>
      new Map(
        resourcesOf(mesh.planner, connection)
          .get(clusterType)
          ?.map((each) => [each.name, each]),
      )
    mesh.connect('p', 'n2', '10.1.0.1').connect('q', 'n3', '10.1.0.2', { app: 'x' })
    filter('7s', 'a.com')
    const [p, q] = [clusters('p'), clusters('q')]
    expect([...q.keys()].sort()).to.deep.equal([...p.keys(), 'outbound|80||c.com'].sort())
    expect(q.get('outbound|80||b.com')).to.equal(p.get('outbound|80||b.com')).and.to.be.an('object')
    expect(q.get('outbound|80||a.com')?.version).to.not.equal(p.get('outbound|80||a.com')?.version)
    const { made } = mesh.planner.builder.memo
    filter('8s', 'b.com')
    const now = clusters('q')
    expect(mesh.planner.builder.memo.made - made, 'the clusters of b.com, and those of c.com in a group of their own').to.be.at.most(4)
    expect(now.get('outbound|80||a.com')).to.equal(p.get('outbound|80||a.com'))
    expect(now.get('outbound|80||b.com')?.version).to.not.equal(p.get('outbound|80||b.com')?.version)
    mesh.remove('EnvoyFilter', 'n3', 'f')
    for (const name of ['a.com', 'b.com']) expect(clusters('q').get(`outbound|80||${name}`)).to.equal(p.get(`outbound|80||${name}`))
  })

  it('include TCP listeners, which depend only on rules with TCP settings', () => {
    const ports = [{ number: 5432, name: 'tcp', protocol: 'TCP' }]
    const tcp = { location: 'MESH_INTERNAL', resolution: 'STATIC', ports, endpoints: [{ address: '10.0.0.2' }] }
    const mesh = new Mesh().set('ServiceEntry', 'n1', 'db', { hosts: ['db.com'], addresses: ['240.0.0.1'], ...tcp })
    const rule = (namespace: string, host: string, tcpPool: object) =>
      mesh.set('DestinationRule', namespace, host, { host, trafficPolicy: { connectionPool: { tcp: tcpPool } } })
    const made: string[] = []
    const { groups } = mesh.planner
    const [replace, update] = [groups.replace.bind(groups), groups.update.bind(groups)]
    groups.replace = (id, ...more) => {
      if (id.startsWith('listeners-out')) made.push(id)
      replace(id, ...more)
    }
    groups.update = (id, ...more) => {
      if (id.startsWith('listeners-out')) made.push(id)
      update(id, ...more)
    }
    const madeBy = (act: () => unknown): number => {
      made.length = 0
      act()
      return made.length
    }
    const version = (connection: string) =>
      resourcesOf(mesh.planner, connection)
        .get(listenerType)
        ?.find(({ name }) => name === '240.0.0.1_5432')?.version
    mesh.connect('p', 'n2', '10.1.0.1').connect('q', 'n3', '10.1.0.2')
    expect(madeBy(() => rule('n1', 'db.com', { maxConnections: 5 }))).to.equal(0)
    const plain = version('p')
    expect(madeBy(() => rule('n1', 'db.com', { idleTimeout: '5s' }))).to.be.above(0)
    expect(version('p')).to.equal(version('q')).and.not.to.equal(plain)
    expect(madeBy(() => rule('n1', 'other.com', { idleTimeout: '5s' }))).to.equal(0)
    expect(madeBy(() => rule('n3', 'db.com', { maxConnections: 5 }))).to.be.above(0)
    expect([version('q') === plain, version('p') === plain], 'n3 has a rule of its own, which says nothing of bytes').to.deep.equal([true, false])
    mesh.remove('DestinationRule', 'n3', 'db.com')
    expect(version('q')).to.equal(version('p'))
    expect(mesh.groupsOf('q', listenerType).filter((group) => !mesh.groupsOf('p', listenerType).includes(group))).to.have.length(1)
  })

  it('are found without a lookup of each host that has a rule, while no rule has TCP settings', () => {
    const mesh = new Mesh().service('n1', 'a.com')
    const rule = (name: string, tcp: object) =>
      mesh.set('DestinationRule', 'n3', name, { host: `*.${name}`, trafficPolicy: { connectionPool: { tcp } } })
    const looks = () => [...mesh.planner.builder.snapshot.services.askers('a.com')].filter((owner) => owner instanceof ServedClass)
    rule('com', { maxConnections: 5 })
    mesh.connect('q', 'n3', '10.1.0.2')
    expect(looks()).to.deep.equal([])
    rule('com', { idleTimeout: '5s' })
    expect(looks()).to.have.length(1)
  })

  it('is made for own hosts without a search of the list of hosts in which the namespace differs for each', () => {
    const mesh = new Mesh()
    for (let index = 0; index < 20; index++) mesh.service('n1', `s${index}.n1.svc.cluster.local`, 80, ['.'])
    const hosts = mesh.planner.snapshot.visibility.differences.get('n1')?.hosts ?? []
    let searched = 0
    const includes = (host: string): boolean => {
      searched++
      return hosts.indexOf(host) >= 0
    }
    Object.defineProperty(hosts, 'includes', { value: includes })
    mesh.connect('p', 'n1', '10.1.0.1')
    expect([hosts.length, searched]).to.deep.equal([20, 0])
  })

  for (const takesVirtualHosts of [false, true])
    it(`are looked up for the changed host, not for each host of its namespace${takesVirtualHosts ? ' (VHDS)' : ''}`, () => {
      const asked = (hosts: number): number[] => {
        const mesh = new Mesh()
        for (let index = 0; index < hosts; index++) mesh.service('n1', `s${index}.n1.svc.cluster.local`)
        // A namespace that gets its first rule looks for the rules of all its hosts.
        mesh.set('DestinationRule', 'n1', 'first', { host: 's1.n1.svc.cluster.local' })
        mesh.connect('p', 'n1', '10.1.0.1', {}, takesVirtualHosts)
        const { memo } = mesh.planner.builder
        const host = 's2.n1.svc.cluster.local'
        const http = [{ timeout: '1s', route: [{ destination: { host } }] }]
        return [
          () => mesh.set('VirtualService', 'n1', 'v', { hosts: [host], http }),
          () => mesh.set('DestinationRule', 'n1', 'd', { host, trafficPolicy: { connectionPool: { tcp: { maxConnections: 7 } } } }),
          () => mesh.remove('VirtualService', 'n1', 'v'),
          () => mesh.service('n1', 'new.n1.svc.cluster.local'),
        ].map((change) => {
          const before = memo.made + memo.found
          change()
          return memo.made + memo.found - before
        })
      }
      expect(asked(60)).to.deep.equal(asked(6))
    })

  it('are regenerated for a Sidecar that names a host only when something about that host changes', () => {
    const mesh = new Mesh()
      .service('n2', 'a.com')
      .service('n2', 'b.com')
      .set('Sidecar', 'n1', 's', { egress: [{ hosts: ['*/a.com'] }] })
    mesh.connect('p', 'n1', '10.1.0.1')
    const before = mesh.planner.builder.memo.made
    mesh.set('VirtualService', 'n2', 'v', { hosts: ['b.com'], http: [{ timeout: '1s', route: [{ destination: { host: 'b.com' } }] }] })
    expect(mesh.planner.builder.memo.made).to.equal(before)
    mesh.set('VirtualService', 'n2', 'w', { hosts: ['a.com'], http: [{ timeout: '1s', route: [{ destination: { host: 'a.com' } }] }] })
    expect(mesh.planner.builder.memo.made).to.be.above(before)
  })

  it('are regenerated for a caller with labels only when a VirtualService changes that matches those labels', () => {
    const route = (host: string, timeout: string, match?: object) => ({
      hosts: [host],
      http: [{ timeout, ...(match ? { match: [match] } : {}), route: [{ destination: { host } }] }],
    })
    const labelled = (timeout: string) => route('a.com', timeout, { sourceLabels: { app: 'a' } })
    const mesh = new Mesh().service('n2', 'a.com').service('n2', 'b.com').set('VirtualService', 'n2', 'v', labelled('1s'))
    mesh.set('VirtualService', 'n2', 'w', route('b.com', '1s')).connect('p', 'n1', '10.1.0.1', { app: 'a' }, true)
    const { groups } = mesh.planner
    const [own] = mesh.groupsOf('p', virtualHostType)
    const host = () =>
      resourcesOf(mesh.planner, 'p')
        .get(virtualHostType)
        ?.find(({ name }) => name === '80/a.com:80')?.version
    const made: string[] = []
    const replace = groups.replace.bind(groups)
    const update = groups.update.bind(groups)
    groups.replace = (id, ...rest) => {
      if (id === own) made.push(id)
      return replace(id, ...rest)
    }
    groups.update = (id, ...rest) => {
      if (id === own) made.push(id)
      return update(id, ...rest)
    }
    const before = host()
    mesh.set('VirtualService', 'n2', 'w', route('b.com', '2s'))
    expect(made).to.deep.equal([])
    expect(host()).to.equal(before)
    mesh.set('VirtualService', 'n2', 'v', labelled('2s'))
    expect(made).to.have.length(1)
    expect(host()).to.be.a('string').and.to.not.equal(before)
  })

  for (const [what, end] of [
    ['goes', (mesh: Mesh) => mesh.remove('Sidecar', 'mesh-system', 'root')],
    ['takes everything', (mesh: Mesh) => mesh.set('Sidecar', 'mesh-system', 'root', { egress: [{ hosts: ['*/*'] }] })],
  ] as const)
    it(`are not regenerated for each namespace when the Sidecar of the root namespace ${what}`, () => {
      const asked = (namespaces: number): number => {
        const mesh = new Mesh().set('Sidecar', 'mesh-system', 'root', { egress: [{ hosts: ['./*'] }] })
        for (let n = 0; n < namespaces; n++) mesh.service(`n${n}`, `a.n${n}.com`).connect(`p${n}`, `n${n}`, `10.1.0.${n}`, {}, n % 2 === 0)
        const { memo } = mesh.planner.builder
        const before = memo.made + memo.found
        end(mesh)
        for (const connection of ['p0', 'p1'])
          expect(
            resourcesOf(mesh.planner, connection)
              .get(clusterType)
              ?.filter(({ name }) => name.endsWith('.com')),
          ).to.have.length(namespaces)
        expect(mesh.route('p1', '80')?.virtualHosts).to.have.length(namespaces + 1)
        return memo.made + memo.found - before
      }
      expect(asked(40)).to.be.below(2.5 * asked(20))
    })

  it('follow changes of mesh settings after changes of single virtual hosts', () => {
    const route = (seconds: number) => ({ hosts: ['a.com'], http: [{ timeout: `${seconds}s`, route: [{ destination: { host: 'a.com' } }] }] })
    const mesh = new Mesh().service('n1', 'a.com').service('n1', 'b.com').set('VirtualService', 'n1', 'v', route(1)).connect('p', 'n2', '10.1.0.1')
    const timeout = () => {
      const action = mesh.route('p', '80')?.virtualHosts.find(({ name }) => name === 'a.com:80')?.routes[0]?.action
      return action?.case === 'route' ? Number(action.value.timeout?.seconds) : undefined
    }
    for (const seconds of [2, 3]) {
      mesh.set('VirtualService', 'n1', 'v', route(seconds))
      expect(timeout()).to.equal(seconds)
    }
    const { mesh: before } = mesh.planner.snapshot
    mesh.planner.state.setMesh({ ...before, proxyHttpPort: 15007 })
    mesh.push()
    expect(mesh.route('p', 'http_proxy')?.virtualHosts.map(({ name }) => name)).to.include.members(['a.com:80', 'b.com:80'])
    mesh.set('VirtualService', 'n1', 'v', route(4))
    expect(timeout()).to.equal(4)
    mesh.planner.state.setMesh({ ...before, outboundTrafficPolicy: { mode: 'REGISTRY_ONLY' } })
    mesh.push()
    expect(mesh.route('p', 'http_proxy')).to.equal(undefined)
    expect(mesh.route('p', '80')?.virtualHosts.map(({ name }) => name)).to.include('block_all')
  })

  it('are incomplete only for a service that cannot be generated, and only while that is so', () => {
    const mesh = new Mesh().service('n1', 'a.com').service('n2', 'b.com')
    // The first group for the namespace of this proxy is generated while the service is broken.
    const key = 'ServiceEntry/n1/broken'
    const service = {
      hostname: 'c.com',
      namespace: 'n1',
      name: 'broken',
      provider: 'ServiceEntry',
      cluster: '',
      addresses: 0 as never,
      ports: [{ number: 80, name: 'http', protocol: 'http' as const, targetPort: 0 }],
      resolution: 'static' as const,
      external: true,
      exportTo: [],
      serviceAccounts: [],
      selector: undefined,
      createdAt: 0,
    }
    mesh.planner.state.services.set(key, 'n1/c.com', { service, slices: [] })
    mesh.push().connect('p', 'n1', '10.1.0.1').connect('q', 'n2', '10.1.0.2')
    const hosts = (connection: string) => mesh.route(connection, '80')?.virtualHosts.map(({ name }) => name)
    const others = ['a.com:80', 'b.com:80', 'allow_any']
    expect([hosts('p'), hosts('q')]).to.deep.equal([others, others])
    expect(
      mesh.planner.faults
        .all()
        .filter(({ type }) => type === 'rds')
        .map(({ objects }) => objects),
    ).to.deep.include([key])
    mesh.planner.state.services.set(key, 'n1/c.com', undefined)
    mesh.push()
    expect([hosts('p'), hosts('q')]).to.deep.equal([others, others])
    expect(mesh.planner.faults.all()).to.deep.equal([])
  })

  it('route unknown hosts as the Sidecar says now, in a namespace with private services', () => {
    const mesh = new Mesh().service('n1', 'a.com').service('n2', 'own.com', 80, ['.'])
    for (const egress of [[], [{ hosts: ['*/*'] }]])
      for (const modes of [
        ['ALLOW_ANY', 'REGISTRY_ONLY', 'ALLOW_ANY'],
        [undefined, 'REGISTRY_ONLY'],
      ])
        for (const [index, mode] of modes.entries()) {
          mesh.set('Sidecar', 'n2', 's', { egress, ...(mode ? { outboundTrafficPolicy: { mode } } : {}) })
          if (index === 0) mesh.connect('p', 'n2', '10.1.0.1')
          expect(mesh.route('p', '80')?.virtualHosts.at(-1)?.name).to.equal(mode === 'REGISTRY_ONLY' ? 'block_all' : 'allow_any')
        }
  })

  it('are hidden with a route that the namespace does not have, also hosts that are added to it later', () => {
    const mesh = new Mesh().service('n3', 'w.com').service('n2', 'w.com', 82, ['.']).connect('p', 'n2', '10.1.0.1', {}, true)
    mesh.set('VirtualService', 'n3', 'd', { hosts: ['b.com'], http: [{ route: [{ destination: { host: 'x.com' } }] }] })
    const hosts = resourcesOf(mesh.planner, 'p').get(virtualHostType) ?? []
    expect(hosts.map(({ name }) => name).filter((name) => name.startsWith('80/'))).to.deep.equal([])
    expect(hosts.map(({ name }) => name)).to.include('82/w.com:82')
  })

  it('contain what an EnvoyFilter adds once, in any context', () => {
    for (const [match, place] of [
      [{ context: 'ANY' }, ['clusters-common', 'listeners-out']],
      [undefined, ['clusters-common', 'listeners-out']],
      [{ context: 'SIDECAR_OUTBOUND' }, ['clusters-common', 'listeners-out']],
      [{ context: 'SIDECAR_INBOUND' }, ['clusters-in', 'listeners-in']],
    ] as const) {
      const cluster = { name: 'added', type: 'STATIC', connect_timeout: '1s' }
      const listener = { name: 'added', address: { socket_address: { address: '0.0.0.0', port_value: 7000 } }, filter_chains: [{ filters: [] }] }
      const configPatches = Object.entries({ CLUSTER: cluster, LISTENER: listener }).map(([applyTo, value]) => ({
        applyTo,
        ...(match ? { match } : {}),
        patch: { operation: 'ADD', value },
      }))
      const mesh = new Mesh().service('n2', 'pub.com').set('EnvoyFilter', 'n1', 'f', { configPatches }).connect('p', 'n1', '10.1.0.1')
      const places = [clusterType, listenerType].flatMap((type) =>
        mesh.groupsOf('p', type).filter((group) => mesh.planner.groups.resources(group).has('added')),
      )
      expect(places.map((group) => group.split('|')[0])).to.deep.equal(place)
    }
  })
})
