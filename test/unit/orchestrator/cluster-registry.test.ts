import { expect } from 'chai'
import type { EndpointSlice } from '../../../protocols/data.ts'
import { meshNames } from '../../../src/names/mesh-names.ts'
import { ClusterRegistry, type RegistryChange } from '../../../src/orchestrator/cluster-registry.ts'
import { cut, type FollowedKind } from '../../../src/orchestrator/objects.ts'

const names = meshNames('mesh.io')
const origin = { names, source: 'orchestrator', cluster: 'c1' }
type Document = Record<string, unknown>

const service = (spec: Document, annotations: Document = {}) => ({ metadata: { namespace: 'shop', name: 'web', annotations }, spec })
const http = { name: 'http', port: 80, targetPort: 'web', protocol: 'TCP' }
const usual = service({ type: 'ClusterIP', clusterIP: '10.1.0.1', clusterIPs: ['10.1.0.1', 'fd00:0::1'], ports: [http] })
const slice = (name: string, endpoints: readonly Document[], more: Document = {}) => ({
  metadata: { namespace: 'shop', name, labels: { 'kubernetes.io/service-name': 'web' } },
  addressType: 'IPv4',
  ports: [{ name: 'http', port: 8080, protocol: 'TCP' }],
  endpoints,
  ...more,
})
const at = (address: string, pod: string, conditions: Document = { ready: true }) => ({
  addresses: [address],
  conditions,
  nodeName: 'n1',
  targetRef: { kind: 'Pod', namespace: 'shop', name: pod },
})
const pod = (name: string, labels: Document = { app: 'web' }) => ({
  metadata: {
    namespace: 'shop',
    name,
    labels: { 'pod-template-hash': 'abc', ...labels },
    ownerReferences: [{ controller: true, kind: 'ReplicaSet', name: 'web-abc' }],
  },
  spec: { nodeName: 'n1', serviceAccountName: 'seller' },
  status: { podIP: '10.2.0.1' },
})
const node = (zone: string) => ({ metadata: { name: 'n1', labels: { 'topology.kubernetes.io/region': 'r1', 'topology.kubernetes.io/zone': zone } } })

class Fixture {
  readonly registry = new ClusterRegistry({ names, domain: 'cluster.local', cluster: 'c1' })

  set(kind: FollowedKind, key: string, document: Document | undefined): this {
    const { object, faults } = document ? cut(kind, document, origin) : { object: undefined, faults: [] }
    expect(faults).to.deep.equal([])
    this.registry.set(kind, key, object)
    return this
  }

  take(): RegistryChange[] {
    return this.registry.take()
  }

  /** The registry of one Service with one pod. */
  static web(): Fixture {
    const fixture = new Fixture()
    fixture.set('Node', '/n1', node('z1')).set('Pod', 'shop/web-1', pod('web-1')).set('Service', 'shop/web', usual)
    return fixture.set('EndpointSlice', 'shop/web-x', slice('web-x', [at('10.2.0.1', 'web-1')]))
  }
}

const endpointsIn = (changes: readonly RegistryChange[]) =>
  changes
    .flatMap((change): readonly (EndpointSlice | undefined)[] => (change.type === 'slice' ? [change.slice] : change.slices))
    .flatMap((each) => each?.endpoints ?? [])

describe('the registry of a cluster', () => {
  it('makes services of Services, and endpoints of their slices, with what pods and nodes say of them', () => {
    expect(Fixture.web().take()).to.deep.equal([
      {
        type: 'service',
        key: 'shop/web.shop.svc.cluster.local',
        service: {
          hostname: 'web.shop.svc.cluster.local',
          namespace: 'shop',
          name: 'web',
          provider: 'Orchestrator',
          cluster: 'c1',
          addresses: ['10.1.0.1', 'fd00::1'],
          ports: [{ number: 80, name: 'http', protocol: 'http', targetPort: 0, targetName: 'web' }],
          resolution: 'static',
          external: false,
          exportTo: [],
          serviceAccounts: [],
          selector: undefined,
          createdAt: 0,
        },
        slices: [
          {
            key: 'shop/web-x',
            version: '',
            endpoints: [
              {
                address: '10.2.0.1',
                ports: { http: 8080 },
                labels: {
                  'pod-template-hash': 'abc',
                  app: 'web',
                  'security.mesh.io/tlsMode': 'disabled',
                  'topology.kubernetes.io/region': 'r1',
                  'topology.kubernetes.io/zone': 'z1',
                  'topology.mesh.io/cluster': 'c1',
                },
                locality: 'r1/z1',
                network: '',
                weight: 1,
                serviceAccount: 'seller',
                namespace: 'shop',
                workload: 'web',
                node: 'n1',
              },
            ],
          },
        ],
      },
    ])
  })

  it('tells a changed slice alone, and what a changed pod or node changes in it', () => {
    const fixture = Fixture.web()
    fixture.take()
    const labels = (changes: readonly RegistryChange[]) => [changes.map(({ type }) => type), endpointsIn(changes).map(({ labels: of }) => of.version)]
    expect(labels(fixture.set('Pod', 'shop/web-1', pod('web-1', { version: 'v2' })).take())).to.deep.equal([['slice'], ['v2']])
    expect(
      fixture.set('Pod', 'shop/web-1', { ...pod('web-1', { version: 'v2' }), status: { podIP: '10.2.0.1', phase: 'Running' } }).take(),
    ).to.deep.equal([])
    expect(endpointsIn(fixture.set('Node', '/n1', node('z2')).take()).map(({ locality }) => locality)).to.deep.equal(['r1/z2'])
    expect(fixture.set('Node', '/n1', node('z2')).take()).to.deep.equal([])
    expect(endpointsIn(fixture.set('Pod', 'shop/web-1', pod('web-1', { 'mesh-locality': 'r8.z8.s8' })).take())[0]?.locality).to.equal('r8/z8/s8')
    const [gone] = fixture.set('EndpointSlice', 'shop/web-x', undefined).take()
    expect(gone).to.deep.equal({ type: 'slice', key: 'shop/web.shop.svc.cluster.local', part: 'shop/web-x', slice: undefined })
  })

  it('leaves out endpoints whose pods are not known until they are', () => {
    const fixture = Fixture.web()
    fixture.take()
    const both = slice('web-x', [at('10.2.0.1', 'web-1'), at('10.2.0.2', 'web-2')])
    expect(endpointsIn(fixture.set('EndpointSlice', 'shop/web-x', both).take()).map(({ address }) => address)).to.deep.equal(['10.2.0.1'])
    expect(fixture.registry.awaitedPods).to.equal(1)
    expect(endpointsIn(fixture.set('Pod', 'shop/web-2', pod('web-2')).take()).map(({ address }) => address)).to.deep.equal(['10.2.0.1', '10.2.0.2'])
    expect(fixture.registry.awaitedPods).to.equal(0)
  })

  it('keeps apart endpoints that are ready, that terminate and still serve, and that do not', () => {
    const states: [Document, string][] = [
      [{}, 'ready'],
      [{ ready: null }, 'ready'],
      [{ ready: false }, 'unready'],
      [{ ready: false, serving: true, terminating: true }, 'terminating'],
      [{ ready: false, serving: false, terminating: true }, 'unready'],
      // The Service publishes addresses that are not ready.
      [{ ready: true, serving: false, terminating: false }, 'ready'],
    ]
    for (const [conditions, readiness] of states) {
      const fixture = Fixture.web().set('EndpointSlice', 'shop/web-x', slice('web-x', [at('10.2.0.1', 'web-1', conditions)]))
      expect(
        endpointsIn(fixture.take()).map((endpoint) => endpoint.readiness ?? 'ready'),
        JSON.stringify(conditions),
      ).to.deep.equal([readiness])
    }
  })

  it('knows headless Services, those that stand for a host, and those without a selector', () => {
    const of = (document: Document) => {
      const [change] = new Fixture().set('Service', 'shop/web', document).take()
      return change?.type === 'service' ? change : undefined
    }
    const headless = of(service({ clusterIP: 'None', clusterIPs: ['None'], ports: [http] }))
    expect([headless?.service?.resolution, headless?.service?.addresses]).to.deep.equal(['passthrough', []])
    const external = of(service({ type: 'ExternalName', externalName: 'Db.Example.com', ports: [{ port: 5432 }] }))
    expect([
      external?.service?.resolution,
      external?.service?.external,
      endpointsIn(external ? [external] : []).map(({ address }) => address),
    ]).to.deep.equal(['dns', true, ['db.example.com']])
    const fixture = new Fixture().set('Service', 'shop/web', usual)
    fixture.set('EndpointSlice', 'shop/own', slice('own', [{ addresses: ['192.0.2.1'] }]))
    expect(endpointsIn(fixture.take()).map(({ address, serviceAccount, namespace }) => [address, serviceAccount, namespace])).to.deep.equal([
      ['192.0.2.1', '', 'shop'],
    ])
  })

  it('reads protocols and the visibility of Services', () => {
    const port = (name: string, more: Document = {}) => ({ name, port: 9000, ...more })
    const ports = [
      port('http-a'),
      port('x'),
      port('x', { appProtocol: 'grpc' }),
      port('x', { appProtocol: 'kubernetes.io/h2c' }),
      port('http', { appProtocol: 'TCP' }),
      port('http', { protocol: 'UDP' }),
    ]
    const fixture = new Fixture().set(
      'Service',
      'shop/web',
      service({ clusterIP: '10.1.0.1', ports }, { 'networking.istio.io/exportTo': '., other' }),
    )
    const [change] = fixture.take()
    const made = change?.type === 'service' ? change.service : undefined
    expect(made?.ports.map(({ protocol }) => protocol)).to.deep.equal(['http', 'unknown', 'grpc', 'http2', 'tcp', 'udp'])
    expect(made?.exportTo).to.deep.equal(['.', 'other'])
  })

  const madeOf = (document: Document, ...more: [FollowedKind, string, Document][]) => {
    const fixture = new Fixture().set('Service', 'shop/web', document)
    for (const [kind, key, each] of more) fixture.set(kind, key, each)
    const [change] = fixture.take()
    return change?.type === 'service' ? change.service : undefined
  }

  it('reads selectors, accounts and preferences of Services, and preferences of their Namespace', () => {
    const annotated = service(
      { clusterIP: '10.1.0.1', selector: { app: 'web', 'service.istio.io/canonical-name': 'w' }, trafficDistribution: 'PreferSameNode' },
      { 'alpha.istio.io/kubernetes-serviceaccounts': 'seller, buyer', 'alpha.mesh.io/canonical-serviceaccounts': 'spiffe://a/b,spiffe://c' },
    )
    const preferring: Document = { metadata: { name: 'shop', annotations: { 'networking.istio.io/traffic-distribution': 'PreferClose' } } }
    expect(madeOf(annotated, ['Namespace', '/shop', preferring])).to.deep.include({
      selector: { app: 'web', 'service.mesh.io/canonical-name': 'w' },
      ownAccounts: ['seller', 'buyer'],
      serviceAccounts: ['spiffe://a/b', 'spiffe://c'],
      distribution: 'PreferSameNode',
    })
    expect(madeOf(usual, ['Namespace', '/shop', preferring])?.distribution).to.equal('PreferSameZone')
    expect(madeOf(service({ trafficDistribution: 'Other', selector: {} })))
      .to.include({ selector: undefined })
      .and.not.to.have.property('distribution')
    const fixture = Fixture.web().set('Namespace', '/shop', preferring)
    fixture.take()
    expect(fixture.set('Namespace', '/shop', { metadata: { name: 'shop' } }).take()).to.have.length(1)
    expect(fixture.set('Namespace', '/shop', { metadata: { name: 'shop', labels: { a: 'b' } } }).take()).to.have.length(0)
  })

  it('tells wrong values of annotations and labels, and opens nothing by them', () => {
    const cutOf = (kind: FollowedKind, document: Document) => {
      const { object, faults } = cut(kind, document, origin)
      return { object: object as never as Record<string, unknown>, faults: faults.map(({ path, reason }) => `${path}: ${reason}`) }
    }
    const exported = (value: string) => cutOf('Service', service({ clusterIP: '10.1.0.1' }, { 'networking.istio.io/exportTo': value }))
    const at = 'metadata.annotations[networking.mesh.io/exportTo]'
    const consequence = 'without another value the Service is seen in its own namespace only'
    for (const [value, exportTo, wrong] of [
      ['*', ['*'], []],
      ['', [], []],
      ['~', ['~'], []],
      ['shop;bank', ['.'], ['shop;bank']],
      ['bank, Not A Name', ['bank'], ['Not A Name']],
    ] as const) {
      const { object, faults } = exported(value)
      expect(object.exportTo, value).to.deep.equal(exportTo)
      expect(faults).to.deep.equal(wrong.map((each) => `${at}: "${each}" is neither a namespace nor one of * . ~; ${consequence}`))
    }
    const odd = cutOf(
      'Service',
      service(
        { clusterIP: '10.1.0.1' },
        {
          'alpha.mesh.io/kubernetes-serviceaccounts': 'a/b, seller',
          'alpha.mesh.io/canonical-serviceaccounts': 'spiffe://a b',
          'networking.mesh.io/traffic-distribution': 'Near',
        },
      ),
    )
    expect([odd.object.accounts, odd.object.identities, odd.object.distribution]).to.deep.equal([['seller'], [], undefined])
    expect(odd.faults).to.deep.equal([
      'metadata.annotations[alpha.mesh.io/canonical-serviceaccounts]: "spiffe://a b" is not a name of a certificate: it is no account of the endpoints',
      'metadata.annotations[alpha.mesh.io/kubernetes-serviceaccounts]: "a/b" is not the name of a service account: it is no account of the endpoints',
      'metadata.annotations[networking.mesh.io/traffic-distribution]: expected one of PreferClose, PreferSameZone, PreferSameNode, got "Near"',
    ])
    const near = cutOf('Namespace', { metadata: { name: 'shop', annotations: { 'networking.istio.io/traffic-distribution': 'x' } } })
    expect([near.object === undefined, near.faults.length]).to.deep.equal([false, 1])
    const mode = cutOf('Pod', pod('web-1', { 'security.istio.io/tlsMode': 'Mesh' }))
    expect([mode.object === undefined, mode.faults]).to.deep.equal([
      false,
      [
        'metadata.labels[security.mesh.io/tlsMode]: expected mesh, istio or disabled, got "Mesh": it counts as disabled, and callers send plain text to the pod',
      ],
    ])
  })

  it('knows how Services are reached from outside, as nodes come, change and go', () => {
    const gateway = (spec: Document, annotations: Document = {}, labels: Document = {}) => ({
      metadata: { namespace: 'shop', name: 'web', annotations, labels: { 'topology.istio.io/network': 'far', ...labels } },
      spec: { ports: [{ name: 'tls', port: 15443, nodePort: 30443 }], ...spec },
      status: { loadBalancer: { ingress: [{ ip: '203.0.113.1' }, { hostname: 'LB.Example.com' }, {}, 7] } },
    })
    const far = { network: 'far', port: 15443 }
    expect(madeOf(gateway({ type: 'LoadBalancer', externalIPs: ['203.0.113.9'] }))?.outside).to.deep.equal({
      addresses: ['203.0.113.9', '203.0.113.1', 'lb.example.com'],
      ports: {},
      gateway: far,
    })
    expect(madeOf(gateway({ type: 'ClusterIP' }))?.outside).to.equal(undefined)
    const machine = (labels: Document, ...addresses: string[]) => ({
      metadata: { name: 'n1', labels },
      status: { addresses: [{ type: 'InternalIP', address: '10.0.0.1' }, ...addresses.map((address) => ({ type: 'ExternalIP', address }))] },
    })
    const byNodes = gateway({ type: 'NodePort' }, { 'traffic.istio.io/nodeSelector': '{"edge":"yes"}' }, { 'networking.mesh.io/gatewayPort': '443' })
    const fixture = new Fixture().set('Service', 'shop/web', byNodes)
    const outside = () => fixture.take().map((change) => (change.type === 'service' ? change.service?.outside : 'slice'))
    expect(outside()).to.deep.equal([undefined])
    fixture.set('Node', '/n1', machine({ edge: 'yes' }, '203.0.113.5', '203.0.113.6'))
    expect(outside()).to.deep.equal([{ addresses: ['203.0.113.5'], ports: { 15443: 30443 }, gateway: { network: 'far', port: 443 } }])
    fixture.set('Node', '/n1', machine({ edge: 'yes', more: '1' }, '203.0.113.5'))
    expect(outside()).to.deep.equal([])
    fixture.set('Node', '/n1', machine({}, '203.0.113.5'))
    expect(outside()).to.deep.equal([undefined])
    const faultsOf = (document: Document) => cut('Service', document, origin).faults.map(({ path }) => path)
    expect(faultsOf(gateway({ type: 'NodePort' }, { 'traffic.mesh.io/nodeSelector': '[' }, { 'networking.mesh.io/gatewayPort': 'x' }))).to.deep.equal(
      ['metadata.labels[networking.mesh.io/gatewayPort]', 'metadata.annotations[traffic.mesh.io/nodeSelector]'],
    )
  })

  it('reads Endpoints as it reads slices: ready addresses, others, their pods and the ports of each subset', () => {
    const subset = (port: number, addresses: readonly Document[], notReadyAddresses: readonly Document[] = []) => ({
      ports: [{ name: 'http', port }],
      addresses,
      notReadyAddresses,
    })
    const of = (ip: string, name: string) => ({ ip, nodeName: 'n1', targetRef: { kind: 'Pod', namespace: 'shop', name } })
    const endpoints = (...subsets: readonly Document[]) => ({ metadata: { namespace: 'shop', name: 'web' }, subsets })
    const fixture = Fixture.web().set('EndpointSlice', 'shop/web-x', undefined).set('Pod', 'shop/web-2', pod('web-2'))
    fixture.set(
      'Endpoints',
      'shop/web',
      endpoints(subset(8080, [of('10.2.0.1', 'web-1')], [of('10.2.0.2', 'web-2')]), subset(8081, [{ ip: '192.0.2.1' }])),
    )
    const seen = () =>
      fixture.registry
        .all()
        .flatMap((change) => endpointsIn([change]))
        .map(({ address, ports, readiness = 'ready', workload }) => [address, ports.http, readiness, workload])
    expect(seen()).to.deep.equal([
      ['10.2.0.1', 8080, 'ready', 'web'],
      ['10.2.0.2', 8080, 'unready', 'web'],
      ['192.0.2.1', 8081, 'ready', ''],
    ])
    fixture.set('Endpoints', 'shop/web', endpoints(subset(8080, [of('10.2.0.9', 'web-9')])))
    expect(seen()).to.deep.equal([])
    expect([fixture.registry.awaitedPods, fixture.registry.awaitedEver]).to.deep.equal([1, 1])
    fixture.set('Pod', 'shop/web-9', pod('web-9'))
    expect([seen(), fixture.registry.awaitedPods, fixture.registry.awaitedEver]).to.deep.equal([[['10.2.0.9', 8080, 'ready', 'web']], 0, 1])
    fixture.set('Endpoints', 'shop/web', undefined)
    expect(seen()).to.deep.equal([])
    const over = {
      ...endpoints(),
      metadata: { namespace: 'shop', name: 'web', annotations: { 'endpoints.kubernetes.io/over-capacity': 'truncated' } },
    }
    expect(cut('Endpoints', over, origin).faults.map(({ reason }) => reason)[0]).to.match(/more than 1,000 endpoints/)
  })

  it('has the endpoints of slices of both families', () => {
    const fixture = Fixture.web().set('EndpointSlice', 'shop/web-6', slice('web-6', [at('2001:db8:0::1', 'web-1')], { addressType: 'IPv6' }))
    expect(
      endpointsIn(fixture.take())
        .map(({ address }) => address)
        .sort(),
    ).to.deep.equal(['10.2.0.1', '2001:db8::1'])
  })

  it('gives an endpoint only the ports of its slice', () => {
    const two = service({ clusterIP: '10.1.0.1', ports: [http, { name: 'admin', port: 81 }] })
    const [change] = Fixture.web().set('Service', 'shop/web', two).take()
    expect(endpointsIn(change ? [change] : []).map(({ ports, serves }) => [ports, serves])).to.deep.equal([[{ http: 8080 }, ['http']]])
  })

  it('moves a slice that comes to belong to another Service', () => {
    const fixture = Fixture.web().set('Service', 'shop/other', { ...usual, metadata: { namespace: 'shop', name: 'other' } })
    fixture.take()
    const moved = { ...slice('web-x', [at('10.2.0.1', 'web-1')]) }
    moved.metadata.labels = { 'kubernetes.io/service-name': 'other' }
    const changes = fixture.set('EndpointSlice', 'shop/web-x', moved).take()
    expect(changes.map((change) => [change.key, endpointsIn([change]).length]).sort()).to.deep.equal([
      ['shop/other.shop.svc.cluster.local', 1],
      ['shop/web.shop.svc.cluster.local', 0],
    ])
  })

  it('withdraws a Service, and tells all of it when it comes again', () => {
    const fixture = Fixture.web()
    fixture.take()
    const [gone] = fixture.set('Service', 'shop/web', undefined).take()
    expect(gone).to.deep.equal({ type: 'service', key: 'shop/web.shop.svc.cluster.local', service: undefined, slices: [] })
    expect(fixture.set('EndpointSlice', 'shop/web-x', slice('web-x', [at('10.2.0.9', 'web-1')])).take()).to.deep.equal([])
    expect(endpointsIn(fixture.set('Service', 'shop/web', usual).take()).map(({ address }) => address)).to.deep.equal(['10.2.0.9'])
    expect(endpointsIn(fixture.registry.all()).length).to.equal(1)
  })

  it('contains what is wrong with an object: the part, or the object where nothing of it can be used', () => {
    const read = (kind: FollowedKind, document: Document) => {
      const { object, faults } = cut(kind, document, origin)
      return [object !== undefined, faults.map(({ path }) => path)]
    }
    expect(read('Service', service({ clusterIP: 'x', ports: [{ port: 0 }, http, 7] }))).to.deep.equal([
      true,
      ['spec.ports[0].port', 'spec.ports[2].port', 'spec.clusterIPs'],
    ])
    expect(read('Service', service({ type: 'ExternalName' }))).to.deep.equal([false, ['spec.externalName']])
    expect(read('EndpointSlice', slice('x', [at('10.2.0', 'web-1')]))).to.deep.equal([true, ['endpoints[0].addresses']])
    expect(read('EndpointSlice', slice('x', [], { addressType: 'FQDN' }))).to.deep.equal([true, ['addressType']])
    expect(read('Pod', { metadata: { name: 'p', namespace: 'shop', labels: 7 } })[0]).to.equal(false)
    for (const kind of ['Service', 'EndpointSlice', 'Endpoints', 'Pod', 'Node', 'Namespace'] as const)
      for (const document of [{}, { metadata: 1, spec: [], status: 'x' }, { metadata: { labels: [] }, endpoints: [1], ports: 'x', subsets: [1, {}] }])
        expect(() => cut(kind, document, origin)).not.to.throw()
  })
})
