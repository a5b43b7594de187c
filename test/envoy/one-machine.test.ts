/** Two workloads on one machine, without an orchestrator and without redirection, started by three commands: the README shows the same. */
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { Agent } from '../harness/agent.ts'
import { call, HttpBackend } from '../harness/backend.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const host = 'cart.shop.svc.cluster.local'
const addresses = { cart: '127.0.0.17', shopper: '127.0.0.18' }

const { version, path: binary } = envoyBinaries().at(-1) ?? { version: 'none', path: '' }

describe(`two workloads on one machine, Envoy ${version}`, function () {
  this.timeout(90_000)
  const service = new Service()
  const backend = new HttpBackend('cart')
  const ports = { http: 0, inbound: 0, secure: 0 }
  const agents = {} as Record<keyof typeof addresses, Agent>

  const write = () => {
    const documents = {
      'networking.mesh.io/v1 ServiceEntry cart': `{hosts: [${host}], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: ${ports.http}, name: http}], endpoints: [{address: ${addresses.cart}, ports: {http: ${ports.inbound}}, labels: {app: cart}, serviceAccount: cart}]}`,
      'networking.mesh.io/v1 Sidecar cart': `{workloadSelector: {labels: {app: cart}}, ingress: [{port: {number: ${ports.inbound}, protocol: HTTP, name: http}, bind: ${addresses.cart}, captureMode: NONE, defaultEndpoint: '127.0.0.1:${backend.port}'}], egress: [{hosts: ['./*']}]}`,
      'networking.mesh.io/v1 Sidecar shopper': `{workloadSelector: {labels: {app: shopper}}, egress: [{port: {number: ${ports.http}, protocol: HTTP, name: http}, bind: ${addresses.shopper}, captureMode: NONE, hosts: ['./*']}]}`,
      'security.mesh.io/v1 PeerAuthentication strict': '{mtls: {mode: STRICT}}',
    }
    const text = Object.entries(documents).map(([head, spec]) => {
      const [apiVersion, kind, name] = head.split(' ')
      return `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: {name: ${name}, namespace: shop}\nspec: ${spec}\n`
    })
    service.write('cart.yaml', text.join('---\n'))
  }

  const newAgent = (name: keyof typeof addresses) =>
    new Agent({
      binary,
      proxyConfig: { discoveryAddress: `localhost:${ports.secure}` },
      env: {
        POD_NAME: name,
        POD_NAMESPACE: 'shop',
        SERVICE_ACCOUNT: name,
        INSTANCE_IP: addresses[name],
        MESH_META_INTERCEPTION_MODE: 'NONE',
        MESH_METAJSON_LABELS: JSON.stringify({ app: name }),
        CREDENTIAL_FETCHER_TYPE: 'meshd',
        MESHD_ADMIN_SOCKET: service.env.MESHD_ADMIN_SOCKET as string,
        TERMINATION_DRAIN_DURATION_SECONDS: '2',
      },
    })

  const request = async () => (await call(addresses.shopper, ports.http, '/', { host }).catch(() => undefined))?.status ?? 0

  before(async () => {
    for (const name of Object.keys(ports) as (keyof typeof ports)[]) ports[name] = await freePort()
    await backend.start()
    service.flags.push('--secureGRPCAddr', `127.0.0.1:${ports.secure}`)
    write()
    await service.start()
    for (const name of ['cart', 'shopper'] as const) agents[name] = newAgent(name)
    await Promise.all(Object.values(agents).map((agent) => agent.start()))
  })
  after(async () => {
    await Promise.all(Object.values(agents).map((agent) => agent.dispose()))
    await Promise.all([service.dispose(), backend.stop()])
  })

  it('speak mutual TLS, each as itself, with tokens that their agents have fetched', async () => {
    for (const agent of Object.values(agents))
      await until('the proxy to be ready', async () => (await fetch(`http://127.0.0.1:${agent.readyPort}/healthz/ready`)).status === 200, 30_000)
    await until('a call to arrive', async () => (await request()) === 200)
    expect(String(backend.seen.at(-1)?.headers['x-forwarded-client-cert'])).to.include('URI=spiffe://cluster.local/ns/shop/sa/shopper')
    expect(await call(addresses.cart, ports.inbound, '/', { host }).catch(() => undefined), 'in plain text').to.equal(undefined)
    expect(await service.rejections()).to.deep.equal([])
  })

  it('are told from each other by their commands: request and wait find the proxy of their folder', async () => {
    const { cart } = agents
    const waited = await cart.run(['wait', '--url', `http://localhost:${cart.readyPort}/healthz/ready`])
    const asked = await cart.run(['request', 'GET', '/server_info'])
    expect([waited.code, asked.code]).to.deep.equal([0, 0])
    expect(asked.stdout).to.contain('sidecar~127.0.0.17~cart.shop~shop.svc.cluster.local')
  })

  it('that end take no new calls while what is under way is answered, and end in order', async () => {
    const { cart } = agents
    const { promise, resolve } = Promise.withResolvers<void>()
    backend.until = promise
    const slow = call(addresses.shopper, ports.http, '/slow', { host })
    await until('the call to arrive', () => backend.seen.at(-1)?.path === '/slow')
    const ended = cart.stop()
    await until('the drain to begin', () => cart.output.includes('drains its connections'))
    resolve()
    expect((await slow).status).to.equal(200)
    expect(await ended).to.equal(0)
    expect(cart.output).to.contain('the proxy ended in order')
    agents.cart = newAgent('cart')
    await cart.dispose()
    await agents.cart.start()
    await until('a call to arrive', async () => (await request()) === 200, 30_000)
  })
})
