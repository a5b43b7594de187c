/** What Services, slices, pods and nodes of a real cluster mean to proxies (docs/resources.md, O6 to O12, P6, E10; docs/operation.md, C9). */
import { fromBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { ClusterLoadAssignmentSchema } from '../../protocols/gen/envoy/config/endpoint/v3/endpoint_pb.js'
import { clusterType, endpointType } from '../../src/xds/type-urls.ts'
import { TestCluster } from '../harness/cluster.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const namespace = (name: string) => `apiVersion: v1\nkind: Namespace\nmetadata: {name: ${name}}`
const pod = (name: string, labels: string, more = '') => `apiVersion: v1
kind: Pod
metadata: {name: ${name}, namespace: shop, labels: {${labels}}}
spec:
  terminationGracePeriodSeconds: 1
  ${more}
  containers: [{name: echo, image: echo, ports: [{name: web, containerPort: 8080}]}]`
const service = (name: string, spec: string, metadata = '', of = 'shop') =>
  `apiVersion: v1\nkind: Service\nmetadata: {name: ${name}, namespace: ${of}, ${metadata}}\nspec: {${spec}}`
const slice = (name: string, of: string, family: string, endpoints: string) =>
  `apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: ${name}, namespace: shop, labels: {kubernetes.io/service-name: ${of}}}\naddressType: ${family}\nports: [{name: http, port: 8080}]\nendpoints: [${endpoints}]`
const http = 'ports: [{name: http, port: 80, targetPort: web}]'

describe('the semantics of a real cluster', () => {
  let cluster: TestCluster
  let running: Service
  const services: Service[] = []
  const clients: XdsClient[] = []

  const discovery = async (kubeconfig: string, env: Record<string, string> = {}, flags: readonly string[] = []): Promise<Service> => {
    const made = new Service({
      env: { PILOT_DEBOUNCE_AFTER: '10ms', ...env },
      flags: ['--registries', 'Orchestrator', '--orchconfig', kubeconfig, ...flags],
    })
    services.push(made)
    await made.start()
    return made
  }
  const connect = (to: Service, name: string, address = '10.99.0.1', metadata: Record<string, unknown> = {}): Promise<XdsClient> => {
    const client = new XdsClient(to.grpcPort, sidecarNode(address, name, 'shop', metadata), true)
    clients.push(client.connect())
    return client.ready()
  }
  const clusterName = (name: string, of = 'shop') => `outbound|80||${name}.${of}.svc.cluster.local`
  /** The endpoints of a Service as a proxy has them: `<address>:<port> <priority>`, sorted. */
  const endpoints = (client: XdsClient, name: string): string[] => {
    const bytes = client.resources.get(endpointType)?.get(clusterName(name))
    if (!bytes) return []
    return fromBinary(ClusterLoadAssignmentSchema, bytes)
      .endpoints.flatMap(({ priority, lbEndpoints }) =>
        lbEndpoints.map(({ hostIdentifier }) => {
          const at = hostIdentifier.case === 'endpoint' ? hostIdentifier.value.address?.address : undefined
          const socket = at?.case === 'socketAddress' ? at.value : undefined
          return `${socket?.address}:${socket?.portSpecifier.value} ${priority}`
        }),
      )
      .sort()
  }
  const has = (client: XdsClient, name: string, ...wanted: readonly string[]) =>
    until(`${name} to have ${wanted}`, () => JSON.stringify(endpoints(client, name)) === JSON.stringify([...wanted].sort()))
  const inbound = (client: XdsClient): string[] =>
    [...(client.resources.get(clusterType)?.keys() ?? [])].filter((name) => /^inbound\|/.test(name)).sort()
  const listens = (client: XdsClient, ...ports: readonly number[]) =>
    until(`inbound ports ${ports}`, () => JSON.stringify(inbound(client)) === JSON.stringify(ports.map((port) => `inbound|${port}||`)))
  const field = (kind: string, name: string, path: string, of = 'shop') => cluster.kubectl(['get', kind, '-n', of, name, '-o', `jsonpath={${path}}`])
  const address = async (name: string): Promise<string> => {
    await until(`an address of ${name}`, () => field('pod', name, '.status.podIP') !== '')
    return field('pod', name, '.status.podIP')
  }
  const metric = async (series: string) =>
    Number(
      (await running.metrics())
        .split('\n')
        .find((line) => line.startsWith(`${series} `))
        ?.split(' ')[1] ?? Number.NaN,
    )

  before(async () => {
    cluster = await TestCluster.start('n1=region1/zone1,n2=region1/zone2')
    cluster.apply(
      ...['shop', 'other', 'mesh-system'].map(namespace),
      pod('web-1', 'app: web, security.istio.io/tlsMode: istio', 'nodeName: n1'),
      pod('web-2', 'app: web, security.istio.io/tlsMode: istio', 'nodeName: n2'),
      service('web', `selector: {app: web}, ${http}`),
      service('elsewhere', `selector: {app: web}, ${http}`, '', 'other'),
    )
    running = await discovery(cluster.roleConfig())
  })
  after(async () => {
    for (const client of clients) client.close()
    for (const each of services) await each.dispose()
    await cluster?.dispose()
  })

  it('a Service has the WorkloadEntries that it selects beside its pods, live', async () => {
    const client = await connect(running, 'a-1')
    const [one, two] = [await address('web-1'), await address('web-2')]
    const pods = [`${one}:8080 0`, `${two}:8080 0`]
    await has(client, 'web', ...pods)
    const entry = (app: string, ports: string) =>
      `apiVersion: networking.istio.io/v1\nkind: WorkloadEntry\nmetadata: {name: vm, namespace: shop}\nspec: {address: 192.0.2.7, labels: {app: ${app}}, ports: {${ports}}}`
    running.write('vm.yaml', entry('web', 'web: 7070'))
    await has(client, 'web', ...pods, '192.0.2.7:7070 0')
    running.write('vm.yaml', entry('web', 'http: 7071'))
    await has(client, 'web', ...pods, '192.0.2.7:7071 0')
    const vm = await connect(running, 'vm', '192.0.2.7')
    await listens(vm, 7071)
    running.write('vm.yaml', entry('none', 'http: 7071'))
    await has(client, 'web', ...pods)
    await listens(vm)
  })

  it('inbound ports follow the labels of the pod, and not a list of addresses that somebody else writes', async () => {
    cluster.apply(
      service('queue', 'selector: {app: queue}, ports: [{name: tcp, port: 90, targetPort: 9090}]'),
      service('claimed', 'ports: [{name: http, port: 80, targetPort: 6666}]'),
      slice('claimed', 'claimed', 'IPv4', `{addresses: [${await address('web-1')}]}`).replace('8080', '6666'),
    )
    const client = await connect(running, 'web-1', await address('web-1'))
    await until('the Service that lists the address', () => endpoints(client, 'claimed').length === 1)
    await listens(client, 8080)
    cluster.kubectl(['label', 'pod', '-n', 'shop', 'web-1', 'app=queue', '--overwrite'])
    await listens(client, 9090)
    cluster.kubectl(['label', 'pod', '-n', 'shop', 'web-1', 'app=free', '--overwrite'])
    await listens(client, 6666)
    cluster.kubectl(['label', 'pod', '-n', 'shop', 'web-1', 'app=web', '--overwrite'])
    await listens(client, 8080)
    cluster.kubectl(['delete', '-n', 'shop', 'service/claimed', 'service/queue', 'endpointslice/claimed'])
  })

  it('annotations name further accounts of a Service, and a preference of its callers for near endpoints', async () => {
    const [one, two] = [await address('web-1'), await address('web-2')]
    const client = await connect(running, 'web-1', one, { PROXY_CONFIG: '{}' })
    await has(client, 'web', `${one}:8080 0`, `${two}:8080 0`)
    const names = () => client.resources.get(clusterType)?.get(clusterName('web'))?.toString('latin1') ?? ''
    expect(names()).to.contain('spiffe://cluster.local/ns/shop/sa/default').and.not.to.contain('sa/seller')
    cluster.kubectl([
      'annotate',
      'service',
      '-n',
      'shop',
      'web',
      'alpha.istio.io/kubernetes-serviceaccounts=seller',
      'alpha.mesh.io/canonical-serviceaccounts=spiffe://other/x',
    ])
    await until('the accounts', () => ['ns/shop/sa/default', 'ns/shop/sa/seller', 'spiffe://other/x'].every((name) => names().includes(name)))
    cluster.kubectl(['patch', 'service', '-n', 'shop', 'web', '-p', '{"spec":{"trafficDistribution":"PreferClose"}}'])
    await has(client, 'web', `${one}:8080 0`, `${two}:8080 1`)
    cluster.kubectl(['patch', 'service', '-n', 'shop', 'web', '-p', '{"spec":{"trafficDistribution":null}}'])
    await has(client, 'web', `${one}:8080 0`, `${two}:8080 0`)
    cluster.kubectl(['annotate', 'namespace', 'shop', 'networking.istio.io/traffic-distribution=PreferSameZone'])
    await has(client, 'web', `${one}:8080 0`, `${two}:8080 1`)
    cluster.kubectl(['annotate', 'namespace', 'shop', 'networking.istio.io/traffic-distribution-'])
    await has(client, 'web', `${one}:8080 0`, `${two}:8080 0`)
  })

  it('endpoints on the node of their caller come first where the Service prefers these, then those of its zone', async () => {
    const [one, two, other] = [await address('web-1'), await address('web-2'), '192.0.2.31']
    cluster.apply(
      // A further node in the zone of the first, and an endpoint there.
      'apiVersion: v1\nkind: Node\nmetadata: {name: n3, labels: {topology.kubernetes.io/region: region1, topology.kubernetes.io/zone: zone1}}',
      slice('web-more', 'web', 'IPv4', `{addresses: [${other}], nodeName: n3}`),
    )
    const first = await connect(running, 'web-1', one, { PROXY_CONFIG: '{}' })
    const second = await connect(running, 'web-2', two, { PROXY_CONFIG: '{}' })
    await has(first, 'web', `${one}:8080 0`, `${two}:8080 0`, `${other}:8080 0`)
    cluster.kubectl(['patch', 'service', '-n', 'shop', 'web', '-p', '{"spec":{"trafficDistribution":"PreferSameNode"}}'])
    await has(first, 'web', `${one}:8080 0`, `${other}:8080 1`, `${two}:8080 2`)
    await has(second, 'web', `${two}:8080 0`, `${one}:8080 1`, `${other}:8080 1`)
    cluster.kubectl(['label', 'pod', '-n', 'shop', 'web-1', 'app=off', '--overwrite'])
    await has(second, 'web', `${two}:8080 0`, `${other}:8080 1`)
    cluster.kubectl(['label', 'pod', '-n', 'shop', 'web-1', 'app=web', '--overwrite'])
    await has(first, 'web', `${one}:8080 0`, `${other}:8080 1`, `${two}:8080 2`)
    cluster.kubectl(['patch', 'service', '-n', 'shop', 'web', '-p', '{"spec":{"trafficDistribution":null}}'])
    cluster.kubectl(['delete', 'endpointslice', '-n', 'shop', 'web-more'])
    cluster.kubectl(['delete', 'node', 'n3'])
    await has(first, 'web', `${one}:8080 0`, `${two}:8080 0`)
  })

  it('a Service with the label of a network is its gateway: by the addresses of a balancer, or of the nodes that it selects', async () => {
    const gateway = (name: string, type: string, annotations = '') =>
      service(
        name,
        `type: ${type}, selector: {app: gateway}, ports: [{name: tls, port: 15443}]`,
        `labels: {topology.istio.io/network: far}, annotations: {${annotations}}`,
      )
    cluster.apply(
      pod('distant', 'app: distant, security.istio.io/tlsMode: istio, topology.istio.io/network: far'),
      service('distant', `selector: {app: distant}, ${http}`),
      'apiVersion: v1\nkind: Node\nmetadata: {name: edge, labels: {edge: "yes"}}',
    )
    const client = await connect(running, 'a-4', '10.99.0.1', { NETWORK: 'near' })
    await has(client, 'distant', `${await address('distant')}:8080 0`)
    cluster.kubectl([
      'patch',
      'node',
      'edge',
      '--subresource=status',
      '-p',
      '{"status":{"addresses":[{"type":"ExternalIP","address":"203.0.113.5"}]}}',
    ])
    cluster.apply(gateway('at-nodes', 'NodePort', `traffic.istio.io/nodeSelector: '{"edge":"yes"}'`))
    await has(client, 'distant', `203.0.113.5:${field('service', 'at-nodes', '.spec.ports[0].nodePort')} 0`)
    cluster.kubectl(['label', 'node', 'edge', 'edge-'])
    await has(client, 'distant', `${await address('distant')}:8080 0`)
    cluster.apply(gateway('balanced', 'LoadBalancer'))
    await until('an address of the balancer', () => field('service', 'balanced', '.status.loadBalancer.ingress[0].ip') !== '')
    await has(client, 'distant', `${field('service', 'balanced', '.status.loadBalancer.ingress[0].ip')}:15443 0`)
    cluster.kubectl(['label', 'service', '-n', 'shop', 'balanced', 'topology.istio.io/network-'])
    await has(client, 'distant', `${await address('distant')}:8080 0`)
    // The network of the whole cluster, for endpoints without a label of their own.
    cluster.kubectl(['label', 'service', '-n', 'shop', 'balanced', 'topology.istio.io/network=whole'])
    cluster.kubectl(['label', 'namespace', 'mesh-system', 'topology.istio.io/network=whole'])
    await has(client, 'web', `${field('service', 'balanced', '.status.loadBalancer.ingress[0].ip')}:15443 0`)
    cluster.kubectl(['label', 'namespace', 'mesh-system', 'topology.istio.io/network-'])
    cluster.kubectl(['delete', 'service', '-n', 'shop', 'balanced', 'at-nodes'])
    await has(client, 'web', `${await address('web-1')}:8080 0`, `${await address('web-2')}:8080 0`)
  })

  it('endpoints come from slices of both families, each for proxies of the family, and wait for their pods', async () => {
    cluster.apply(
      service('both', 'clusterIP: None, ports: [{name: http, port: 80}]'),
      slice('both-4', 'both', 'IPv4', '{addresses: [192.0.2.1]}, {addresses: [192.0.2.2], targetRef: {kind: Pod, name: late, namespace: shop}}'),
      slice('both-6', 'both', 'IPv6', '{addresses: ["2001:db8::1"]}'),
    )
    // A gateway has the endpoints of headless Services.
    const gateway = (own: string): Promise<XdsClient> => {
      const client = new XdsClient(running.grpcPort, { id: `router~${own}~g.shop~shop.svc.cluster.local`, metadata: { NAMESPACE: 'shop' } }, true)
      clients.push(client.connect())
      return client.ready()
    }
    const [client, other] = [await gateway('10.99.0.2'), await gateway('2001:db8::99')]
    await has(client, 'both', '192.0.2.1:8080 0')
    await has(other, 'both', '2001:db8::1:8080 0')
    expect([await metric('endpoint_no_pod'), await metric('pilot_orch_endpoints_pending_pod')]).to.deep.equal([1, 1])
    expect(await metric('pilot_orch_endpoints_with_no_pods')).to.be.greaterThan(0)
    cluster.apply(pod('late', 'app: late'))
    await has(client, 'both', '192.0.2.1:8080 0', '192.0.2.2:8080 0')
    expect(await metric('endpoint_no_pod')).to.equal(0)
  })

  it('PILOT_USE_ENDPOINT_SLICE=false reads Endpoints, and warns', async () => {
    const other = await discovery(cluster.roleConfig(), { PILOT_USE_ENDPOINT_SLICE: 'false' })
    await other.output.says('PILOT_USE_ENDPOINT_SLICE=false: endpoints are read from Endpoints')
    const client = await connect(other, 'a-6')
    await has(client, 'web', `${await address('web-1')}:8080 0`, `${await address('web-2')}:8080 0`)
    cluster.kubectl(['label', 'pod', '-n', 'shop', 'web-1', 'app=free', '--overwrite'])
    await has(client, 'web', `${await address('web-2')}:8080 0`)
    cluster.kubectl(['label', 'pod', '-n', 'shop', 'web-1', 'app=web', '--overwrite'])
    await has(client, 'web', `${await address('web-1')}:8080 0`, `${await address('web-2')}:8080 0`)
    await other.dispose()
  })

  it('--appNamespace needs a Role in each of its namespaces, and follows no other', async () => {
    const role = (kind: string, of: string, resources: string) =>
      `apiVersion: rbac.authorization.k8s.io/v1\nkind: ${kind}\nmetadata: {name: limited${of}}\nrules: [{apiGroups: ["", discovery.k8s.io], resources: [${resources}], verbs: [list, watch]}]`
    const binding = (kind: string, of: string) =>
      `apiVersion: rbac.authorization.k8s.io/v1\nkind: ${kind}Binding\nmetadata: {name: limited${of}}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ${kind}, name: limited${of === '' ? '' : of.replace(/, namespace.*/, '')}}\nsubjects: [{kind: ServiceAccount, name: limited, namespace: shop}]`
    cluster.apply(
      'apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: limited, namespace: shop}',
      role('ClusterRole', '', 'namespaces, nodes'),
      binding('ClusterRole', ''),
      ...['shop', 'mesh-system'].flatMap((of) => [
        role('Role', `, namespace: ${of}`, 'services, pods, configmaps, endpointslices'),
        binding('Role', `, namespace: ${of}`),
      ]),
    )
    const token = cluster.kubectl(['create', 'token', '-n', 'shop', 'limited']).trim()
    const limited = await discovery(cluster.tokenConfig('limited', token), {}, ['--appNamespace', 'shop'])
    const client = await connect(limited, 'a-7')
    await has(client, 'web', `${await address('web-1')}:8080 0`, `${await address('web-2')}:8080 0`)
    expect(client.resources.get(clusterType)?.has(clusterName('elsewhere', 'other'))).to.equal(false)
    cluster.apply(service('later', `selector: {app: web}, ${http}`))
    await until('a later Service', () => endpoints(client, 'later').length === 2)
  })
})
