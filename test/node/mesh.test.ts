/** Traffic between pods with unmodified applications, and agents, proxies, discovery and certificate authority as installed. */
import { expect } from 'chai'
import { envoyBinaries } from '../harness/envoy.ts'
import { type MeshPod, meshDocument, PodMesh } from '../harness/pod-mesh.ts'
import { patienceMs, until } from '../harness/until.ts'

const host = 'cart.shop.svc.cluster.local'
const url = `http://${host}/`
const newest = envoyBinaries().at(-1)

/** The request as the application of a pod received it. */
interface Seen {
  readonly name: string
  readonly from: string
  readonly headers: Readonly<Record<string, string>>
}

describe('a mesh of pods', () => {
  let mesh: PodMesh
  let [web, cart, other] = [] as unknown as [MeshPod, MeshPod, MeshPod]

  /** Returns the services, with the given pods as endpoints of the cart. */
  const services = (...carts: readonly MeshPod[]) => {
    const endpoint = ({ address }: MeshPod) => `{address: ${address}, ports: {http: 8080}, labels: {app: cart}, serviceAccount: cart}`
    const entry = (name: string, spec: string) =>
      meshDocument('networking', 'ServiceEntry', name, `{location: MESH_INTERNAL, resolution: STATIC, ${spec}}`)
    return [
      entry('cart', `hosts: [${host}], addresses: [10.96.0.1], ports: [{number: 80, name: http}], endpoints: [${carts.map(endpoint).join(', ')}]`),
      entry('ledger', `hosts: [ledger.example], ports: [{number: 9000, name: tcp}], endpoints: [{address: ${mesh.network.node.ipv4}}]`),
      meshDocument(
        'networking',
        'DestinationRule',
        'cart',
        `{host: ${host}, trafficPolicy: {connectionPool: {http: {maxRequestsPerConnection: 1}}}}`,
      ),
    ]
  }
  const allow = (account: string) => [
    meshDocument('security', 'PeerAuthentication', 'strict', '{mtls: {mode: STRICT}}'),
    meshDocument(
      'security',
      'AuthorizationPolicy',
      'callers',
      `{selector: {matchLabels: {app: cart}}, rules: [{from: [{source: {principals: [cluster.local/ns/shop/sa/${account}]}}]}]}`,
    ),
  ]
  const status = async () => (await web.app.do('call', { url })).status

  before(async () => {
    mesh = new PodMesh(newest?.path ?? '')
    await mesh.startDiscovery()
    const probers = { '/app-health/cart/readyz': { httpGet: { path: '/status/204', port: 8080 } } }
    const redirect = ['--redirect-dns']
    ;[web, cart, other] = await Promise.all([
      mesh.pod('web', { redirect, env: { MESH_AGENT_KEEP_CONFIGURATION: 'true' } }),
      mesh.pod('cart', { redirect, env: { MESH_ORCH_APP_PROBERS: JSON.stringify(probers), TERMINATION_DRAIN_DURATION_SECONDS: '6' } }),
      mesh.pod('cart', { redirect }),
    ])
    mesh.write('services.yaml', ...services(cart))
    mesh.write('policies.yaml', ...allow('web'))
    await mesh.node.do('listen', { port: 9000, name: 'ledger' })
    for (const [index, { app }] of [cart, other].entries()) await app.do('serve', { port: 8080, name: `cart ${index}` })
  })
  after(() => mesh?.dispose())

  it('lets applications wait until their proxies are ready', async () => {
    const waiting = web.pod.agentCommand(['wait', '--timeoutSeconds', String(patienceMs / 1000), '--periodMillis', '50'], { user: 'application' })
    const early = await web.pod.agentCommand(['wait', '--timeoutSeconds', '1'], { user: 'application' })
    expect([early.code, early.stderr]).to.satisfy(([code, text]: [number, string]) => code === 255 && text.startsWith('Error: '))
    await Promise.all([web.start(), cart.start()])
    expect((await waiting).code).to.equal(0)
  })

  it('resolves services through the agent, and carries traffic over mutual TLS between the right identities', async () => {
    await until('the name of the service', async () => (await web.app.do('resolve', { name: host }))[0] === '10.96.0.1')
    await until('calls to arrive', async () => (await status()) === 200)
    const { name, headers } = JSON.parse((await web.app.do('call', { url })).body) as Seen
    expect(name).to.equal('cart 0')
    expect(headers['x-forwarded-client-cert']).to.match(
      /By=spiffe:\/\/cluster\.local\/ns\/shop\/sa\/cart;.*URI=spiffe:\/\/cluster\.local\/ns\/shop\/sa\/web/,
    )
    const [allocated = ''] = await web.app.do('resolve', { name: 'ledger.example' })
    expect(allocated).to.match(/^240\.240\./)
    expect(JSON.parse(await web.app.do('dial', { host: 'ledger.example', port: 9000 })).name).to.equal('ledger')
  })

  it('refuses callers without a certificate, and answers 403 to identities that the policy does not allow', async () => {
    // Plaintext calls to the application's port and to the proxy's inbound port.
    for (const port of [8080, 15006]) expect((await mesh.node.do('call', { url: `http://${cart.address}:${port}/` })).status).to.equal(0)
    // A call of the application to its own service leaves and enters through its proxy, with its own identity.
    expect((await cart.app.do('call', { url })).status).to.equal(403)
    mesh.write('policies.yaml', ...allow('somebody-else'))
    await until('the policy to forbid', async () => (await status()) === 403)
    mesh.write('policies.yaml', ...allow('web'))
    await until('the policy to allow', async () => (await status()) === 200)
  })

  it("answers the orchestrator's probes of the application and the proxy, and serves the metrics of both", async () => {
    const probe = (path: string) => mesh.node.do('call', { url: `http://${cart.address}:15020${path}` })
    expect((await probe('/app-health/cart/readyz')).status).to.equal(204)
    expect((await probe('/healthz/ready')).status).to.equal(200)
    expect((await mesh.node.do('call', { url: `http://${cart.address}:15021/healthz/ready` })).status).to.equal(200)
    const metrics = (await mesh.node.do('call', { url: `http://${cart.address}:15020/stats/prometheus` })).body
    for (const name of ['envoy_server_live', 'mesh_agent_']) expect(metrics).to.include(name)
  })

  it('loses no request during a crash of discovery, and applies changes when discovery is back', async () => {
    await web.app.do('begin', { url })
    await mesh.stopDiscovery('SIGKILL')
    await until(
      'the agent to notice',
      async () => Number(/mesh_agent_meshd_connection_terminations\{type="\w+"\} (\d+)/.exec(await agentMetrics(web))?.[1] ?? 0) > 0,
    )
    await mesh.startDiscovery()
    await other.start()
    mesh.write('services.yaml', ...services(cart, other))
    await until('both endpoints', async () => (await web.admin('/clusters')).includes(`${other.address}:8080::cx_active`))
    const { statuses } = await web.app.do('end')
    expect(Object.keys(statuses)).to.deep.equal(['200'])
  })

  it('drains a stopping pod without a failed request', async () => {
    await web.app.do('begin', { url: `${url}slow/20` })
    const slow = web.app.do('call', { url: `${url}slow/3000` })
    await until('both calls to be active', async () => {
      const active = (await web.admin('/clusters')).matchAll(/^outbound\|80\|\|cart.*::rq_active::(\d+)$/gm)
      return [...active].reduce((sum, [, count]) => sum + Number(count), 0) === 2
    })
    const ended = cart.stop('SIGTERM')
    mesh.write('services.yaml', ...services(other))
    expect(await ended).to.equal(0)
    const { statuses } = await web.app.do('end')
    expect([(await slow).status, Object.keys(statuses)]).to.deep.equal([200, ['200']])
    expect(JSON.parse((await web.app.do('call', { url })).body).name).to.equal('cart 1')
  })

  it("reports a crash of the proxy by the agent's exit status, and serves again after a restart without discovery", async () => {
    await mesh.stopDiscovery('SIGTERM')
    process.kill(web.proxyPid(), 'SIGSEGV')
    expect(await web.ended()).to.equal(139)
    // The agent uses the saved certificate, roots and configuration.
    await web.start()
    await until('calls to arrive', async () => (await status()) === 200)
    await mesh.startDiscovery()
    mesh.write('policies.yaml', ...allow('somebody-else'))
    await until('a change to arrive', async () => (await status()) === 403)
  })

  const agentMetrics = async ({ address }: MeshPod) => (await mesh.node.do('call', { url: `http://${address}:15020/stats/prometheus` })).body
})
