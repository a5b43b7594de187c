/** Ingresses of a real cluster reach its gateways, and the addresses of these their status (docs/resources.md, I1 to I7). */
import { fromBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { RouteConfigurationSchema } from '../../protocols/gen/envoy/config/route/v3/route_pb.js'
import { listenerType, routeType } from '../../src/xds/type-urls.ts'
import { TestCluster } from '../harness/cluster.ts'
import { LocalDiscovery } from '../harness/discovery.ts'
import { until } from '../harness/until.ts'
import { XdsClient } from '../harness/xds-client.ts'

/** The cluster of the Service that most requests go to. */
const web = 'outbound|80||web.shop.svc.cluster.local'

const service = (name: string, namespace: string, spec: string) =>
  `apiVersion: v1\nkind: Service\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: {${spec}}`
const ingressClass = (name: string, controller: string) =>
  `apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: ${name}}\nspec: {controller: ${controller}}`
const ingress = (name: string, spec: string, annotations = '') =>
  `apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: ${name}, namespace: shop, annotations: {${annotations}}}\nspec: {${spec}}`
const rule = (host: string, path: string, to: string, port = 'number: 80') =>
  `{host: ${host}, http: {paths: [{path: ${path}, pathType: Prefix, backend: {service: {name: ${to}, port: {${port}}}}}]}}`
const binding = (kind: string, name: string) =>
  `apiVersion: rbac.authorization.k8s.io/v1\nkind: ${kind}Binding\nmetadata: {name: ${name}}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ${kind}, name: ${name}}\nsubjects: [{kind: ServiceAccount, name: limited, namespace: shop}]`
const role = (name: string, ...rules: readonly string[]) =>
  `apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: ${name}}\nrules: [${rules.join(', ')}]`

describe('Ingresses of a real cluster', () => {
  let cluster: TestCluster
  const started: LocalDiscovery[] = []
  const clients: XdsClient[] = []
  const start = async (orchconfig = cluster.adminConfig): Promise<LocalDiscovery> => {
    const discovery = new LocalDiscovery({}, { PILOT_DEBOUNCE_AFTER: '10ms' })
    started.push(discovery)
    await discovery.start({ registries: ['Orchestrator'], orchconfig })
    await until('the service to be ready', async () => (await discovery.ready()).status === 200)
    return discovery
  }
  /** A gateway with one of the labels that count. */
  const gateway = async (discovery: LocalDiscovery, label: string): Promise<XdsClient> => {
    const id = `router~10.99.0.1~edge-${label}.mesh-system~mesh-system.svc.cluster.local`
    const client = new XdsClient(discovery.grpcPort, { id, metadata: { NAMESPACE: 'mesh-system', LABELS: { [label]: 'ingressgateway' } } }, true)
    clients.push(client.connect())
    return client.ready()
  }
  /** Where a request to a host and path goes: the cluster, or the kind of answer; undefined without a route. */
  const to = (client: XdsClient, host: string, path: string, name = 'http.80'): string | undefined => {
    const bytes = client.resources.get(routeType)?.get(name)
    const hosts = bytes ? fromBinary(RouteConfigurationSchema, bytes).virtualHosts : []
    const route = hosts
      .find(({ domains }) => domains.includes(host))
      ?.routes.find(({ match }) => {
        const { case: type, value } = match?.pathSpecifier ?? {}
        return type === 'path' ? value === path : type === 'prefix' && path.startsWith(value as string)
      })
    const { action } = route ?? {}
    return action?.case === 'route' && action.value.clusterSpecifier.case === 'cluster' ? action.value.clusterSpecifier.value : action?.case
  }
  const goes = async (client: XdsClient, host: string, path: string, wanted: string | undefined): Promise<void> => {
    await until(`requests for ${host}${path} to go to ${wanted}`, () => to(client, host, path) === wanted)
  }
  const status = (name: string): string =>
    cluster.kubectl(['get', 'ingress', '-n', 'shop', name, '-o', 'jsonpath={.status.loadBalancer.ingress[*].ip}'])
  const hasStatus = (name: string, wanted: string) => until(`the address ${wanted} of ${name}`, () => status(name) === wanted)

  before(async () => {
    cluster = await TestCluster.start('n1=region1/zone1')
    cluster.apply(
      'apiVersion: v1\nkind: Namespace\nmetadata: {name: mesh-system}',
      'apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}',
      'apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: limited, namespace: shop}',
      service('web', 'shop', 'selector: {app: web}, ports: [{name: http, port: 80}]'),
      ingressClass('mesh', 'mesh.io/ingress-controller'),
      ingressClass('istio', 'istio.io/ingress-controller'),
      ingressClass('other', 'example.com/other'),
      ingress('web', `ingressClassName: mesh, tls: [{hosts: [web.example], secretName: web-cert}], rules: [${rule('web.example', '/', 'web')}]`),
    )
  })
  after(async () => {
    for (const client of clients) client.close()
    for (const each of started) await each.dispose()
    await cluster?.dispose()
  })

  it('route the requests of gateways with either label, in plain text and with the certificate of their Secret', async () => {
    const discovery = await start()
    for (const label of ['mesh', 'istio']) {
      const client = await gateway(discovery, label)
      await goes(client, 'web.example', '/', web)
      const secured = `https.443.https-443-ingress-web-shop-0.web-${label}-autogenerated-orch-ingress-shop.mesh-system`
      await until('the routes of HTTPS', () => to(client, 'web.example', '/', secured) === web)
      const listener = client.resources.get(listenerType)?.get('0.0.0.0_443')
      expect(listener?.includes('kubernetes://web-cert')).to.equal(true)
    }
  })

  it('are followed: rules, classes, ports by name, and the settings of the mesh', async () => {
    const [discovery] = started as [LocalDiscovery]
    const [client] = clients as [XdsClient]
    cluster.apply(ingress('more', `ingressClassName: istio, rules: [${rule('web.example', '/api', 'late', 'name: api')}]`))
    await until('the reason', () =>
      discovery.log().includes('Service shop/late does not exist or has no port named "api"; requests for it are answered with 503'),
    )
    for (const path of ['/api', '/api/x']) await goes(client, 'web.example', path, 'directResponse')
    expect(['/', '/apix'].map((path) => to(client, 'web.example', path))).to.deep.equal([web, web])
    cluster.apply(service('late', 'shop', 'selector: {app: late}, ports: [{name: api, port: 8080}]'))
    const late = 'outbound|8080||late.shop.svc.cluster.local'
    await goes(client, 'web.example', '/api/x', late)
    cluster.apply(ingress('more', `ingressClassName: other, rules: [${rule('web.example', '/api', 'late', 'name: api')}]`))
    await goes(client, 'web.example', '/api/x', web)
    cluster.apply(ingress('plain', `rules: [${rule('plain.example', '/', 'web')}]`))
    const settings = (mesh: string) =>
      JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'mesh', namespace: 'mesh-system' }, data: { mesh } })
    cluster.apply(settings('ingressControllerMode: DEFAULT'))
    await goes(client, 'plain.example', '/', web)
    const configs = await discovery.debug<{ kind: string; metadata: { name: string } }[]>('configz')
    const origin = configs.find(({ metadata }) => metadata.name === 'plain-example.plain-mesh-autogenerated-orch-ingress')
    expect(JSON.stringify(origin)).to.contain('Ingress shop/plain of cluster Orchestrator')
    cluster.apply(settings(''))
    await goes(client, 'plain.example', '/', undefined)
  })

  it('have the addresses of the Service of the gateways in their status while they are for this mesh, written by the leader', async () => {
    expect(status('web')).to.equal('')
    cluster.apply(service('istio-ingressgateway', 'mesh-system', 'type: ClusterIP, externalIPs: [192.0.2.7], ports: [{name: http2, port: 80}]'))
    await hasStatus('web', '192.0.2.7')
    cluster.apply(
      service('mesh-ingressgateway', 'mesh-system', 'type: ClusterIP, externalIPs: [192.0.2.9, 192.0.2.8], ports: [{name: http2, port: 80}]'),
    )
    await hasStatus('web', '192.0.2.8 192.0.2.9')
    expect(['more', 'plain'].map(status)).to.deep.equal(['', ''])
    expect(cluster.kubectl(['get', 'lease', '-n', 'mesh-system', 'mesh-leader', '-o', 'jsonpath={.spec.holderIdentity}'])).not.to.equal('')
    cluster.apply(ingress('web', `ingressClassName: other, rules: [${rule('web.example', '/', 'web')}]`))
    await hasStatus('web', '')
    cluster.apply(ingress('web', `ingressClassName: mesh, rules: [${rule('web.example', '/', 'web')}]`))
    await hasStatus('web', '192.0.2.8 192.0.2.9')
    // Without the Service nothing is known, and nothing is written.
    cluster.kubectl(['delete', 'service', '-n', 'mesh-system', 'mesh-ingressgateway', 'istio-ingressgateway'])
    cluster.apply(ingress('web', `ingressClassName: mesh, rules: [${rule('later.example', '/', 'web')}]`))
    await goes(clients[0] as XdsClient, 'later.example', '/', web)
    expect(status('web')).to.equal('192.0.2.8 192.0.2.9')
  })

  it('need not be permitted: what the role lacks is told, and works once it is there', async () => {
    const follow =
      '{apiGroups: ["", discovery.k8s.io], resources: [namespaces, nodes, services, pods, endpointslices, configmaps], verbs: [list, watch]}'
    cluster.apply(role('limited', follow), binding('ClusterRole', 'limited'))
    const discovery = await start(cluster.tokenConfig('limited', cluster.kubectl(['create', 'token', '-n', 'shop', 'limited']).trim()))
    const refusal = 'the role of this service account does not permit "watch" of "ingresses.networking.k8s.io"'
    expect((await discovery.ready()).text).to.contain(refusal)
    const client = await gateway(discovery, 'mesh')
    expect(to(client, 'later.example', '/')).to.equal(undefined)
    cluster.apply(role('limited', follow, '{apiGroups: [networking.k8s.io], resources: [ingresses, ingressclasses], verbs: [list, watch]}'))
    await goes(client, 'later.example', '/', web)
    // The leader that could write ends; this one may neither lead nor write before its role says so.
    await (started.shift() as LocalDiscovery).dispose()
    cluster.apply(
      service('mesh-ingressgateway', 'mesh-system', 'type: ClusterIP, externalIPs: [192.0.2.10], ports: [{name: http2, port: 80}]'),
      role(
        'limited',
        follow,
        '{apiGroups: [networking.k8s.io], resources: [ingresses, ingressclasses], verbs: [list, watch]}',
        '{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update, patch]}',
      ),
    )
    await until('the reason', () => discovery.log().includes('does not permit "patch" of "ingresses.networking.k8s.io/status"'))
    expect(status('web')).to.equal('192.0.2.8 192.0.2.9')
    cluster.apply(
      role(
        'limited',
        follow,
        '{apiGroups: [networking.k8s.io], resources: [ingresses, ingressclasses], verbs: [list, watch]}',
        '{apiGroups: [networking.k8s.io], resources: [ingresses/status], verbs: [patch]}',
        '{apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update, patch]}',
      ),
    )
    await hasStatus('web', '192.0.2.10')
  })
})
