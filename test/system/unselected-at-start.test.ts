/** What the log says of objects that select nothing when the service starts. */
import { Service } from '../harness/service.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const policy = (name: string, namespace: string, app: string) =>
  `apiVersion: security.mesh.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: {selector: {matchLabels: {app: ${app}}}, action: AUDIT, rules: [{}]}\n`
const gateway =
  'apiVersion: networking.mesh.io/v1\nkind: Gateway\nmetadata: {name: g, namespace: ns}\nspec: {selector: {app: gate}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["*"]}]}\n'
const filter = (name: string, app: string) =>
  `apiVersion: networking.mesh.io/v1alpha3\nkind: EnvoyFilter\nmetadata: {name: ${name}, namespace: ns}\nspec: {workloadSelector: {labels: {app: ${app}}}, configPatches: [{applyTo: CLUSTER, match: {cluster: {name: none}}, patch: {operation: REMOVE}}]}\n`
const entry =
  'apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: cart, namespace: ns}\nspec: {hosts: [cart.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.2.0.1, labels: {app: cart}}]}\n'

describe('objects that select nothing at the start', () => {
  const service = new Service({ env: { PILOT_DEBOUNCE_AFTER: '1ms', PILOT_DEBOUNCE_MAX: '10ms' } })
  const clients: XdsClient[] = []
  before(async () => {
    service.write('entry.yaml', entry)
    service.write('right.yaml', [policy('connected', 'ns', 'web'), policy('known', 'ns', 'cart'), filter('right', 'web')].join('---\n'))
    service.write('wrong.yaml', [policy('wrong', 'ns', 'wep'), policy('elsewhere', 'nowhere', 'web'), gateway, filter('wrong', 'wep')].join('---\n'))
    await service.start()
    clients.push(await new XdsClient(service.grpcPort, sidecarNode('10.1.0.1', 'web-0', 'ns', { LABELS: { app: 'web' } }), true).connect().ready())
  })
  after(async () => {
    for (const client of clients) client.close()
    await service.dispose()
  })

  it('are told in one line once proxies have connected, and not those that a connected proxy or an endpoint has the labels of', async () => {
    await service.output.says(
      'info\tprocessing\tno connected proxy and no other known workload is selected by AuthorizationPolicy nowhere/elsewhere, AuthorizationPolicy ns/wrong, EnvoyFilter ns/wrong; what they say has no effect at present\n',
    )
    service.output.lacks(/warn/)
  })

  it('are Gateways not before a gateway has connected: it may be started last', async () => {
    service.output.lacks(/Gateway ns\/g/)
    const output = service.output.fromNow()
    const edge = { id: 'router~10.1.0.2~edge-0.ns~ns.svc.cluster.local', metadata: { NAMESPACE: 'ns', LABELS: { app: 'edge' } } }
    clients.push(await new XdsClient(service.grpcPort, edge, true).connect().ready())
    await output.says('no connected proxy and no other known workload is selected by Gateway ns/g; what they say has no effect at present\n')
  })

  it('of EnvoyFilters in the line about their change, too', async () => {
    service.write('more.yaml', filter('more', 'wep'))
    await service.output.says('more.yaml: 1 added; nothing differs for any of 2 proxies; no connected proxy is selected by EnvoyFilter ns/more\n')
    const output = service.output.fromNow()
    service.write('more.yaml', filter('more', 'web'))
    await output.says(/more\.yaml: 1 changed; [^;\n]*\n/)
  })
})
