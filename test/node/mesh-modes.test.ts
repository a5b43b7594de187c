/** Pods in other modes than the default: TPROXY, IPv6 only, a proxy that connects to discovery itself. With the oldest Envoy. */
import { expect } from 'chai'
import { envoyBinaries } from '../harness/envoy.ts'
import { type MeshPod, meshDocument, PodMesh } from '../harness/pod-mesh.ts'
import { until } from '../harness/until.ts'

const oldest = envoyBinaries()[0]
const strict = meshDocument('security', 'PeerAuthentication', 'strict', '{mtls: {mode: STRICT}}')
const open = meshDocument('security', 'PeerAuthentication', 'open', '{selector: {matchLabels: {app: vault}}, portLevelMtls: {9001: {mode: DISABLE}}}')

describe('a mesh of pods in other modes', () => {
  let mesh: PodMesh
  before(async () => {
    mesh = new PodMesh(oldest?.path ?? '')
    await mesh.startDiscovery()
  })
  after(() => mesh?.dispose())

  /** Creates a service for the application of the pod. Returns a function that calls the service from another pod. */
  const serve = async (pod: MeshPod, address: string) => {
    const host = `${pod.name}.shop.svc.cluster.local`
    const endpoint = `{address: '${pod.address}', ports: {http: 8080}, labels: {app: ${pod.name}}, serviceAccount: ${pod.name}}`
    const spec = `{hosts: [${host}], addresses: ['${address}'], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [${endpoint}]}`
    mesh.write(`${pod.name}.yaml`, meshDocument('networking', 'ServiceEntry', pod.name, spec))
    mesh.write('policies.yaml', strict, open)
    await pod.app.do('serve', { port: 8080, name: pod.name })
    return async (caller: MeshPod) => {
      const answer = await caller.app.do('call', { url: `http://${host}/` })
      return {
        status: answer.status,
        seen: answer.status === 200 ? (JSON.parse(answer.body) as { from: string; headers: Record<string, string> }) : undefined,
      }
    }
  }

  it("preserves the caller's address in TPROXY mode, also if the proxy connects to discovery itself", async () => {
    const env = { MESH_META_INTERCEPTION_MODE: 'TPROXY' }
    const [caller, server] = await Promise.all([
      mesh.pod('web', { families: 'both', redirect: ['--redirect-dns'] }),
      mesh.pod('vault', {
        families: 'both',
        redirect: ['-m', 'TPROXY'],
        env: { ...env, PROXY_XDS_VIA_AGENT: 'false', MESH_META_DNS_CAPTURE: 'false' },
        capability: 'net_admin',
      }),
    ])
    server.pod.system('sysctl', '-qw', 'net.ipv4.conf.all.route_localnet=1')
    const call = await serve(server, '10.96.0.2')
    await Promise.all([caller.start(), server.start()])
    await until('calls to arrive', async () => (await call(caller)).status === 200)
    const { seen } = await call(caller)
    expect(seen?.from).to.equal(caller.address)
    expect(seen?.headers['x-forwarded-client-cert']).to.include('URI=spiffe://cluster.local/ns/shop/sa/web')
    expect((await mesh.node.do('call', { url: `http://${server.address}:8080/` })).status).to.equal(0)
    // A port without a service is passed through.
    await server.app.do('serve', { port: 9001, name: 'undeclared' })
    const passed = await mesh.node.do('call', { url: `http://${server.address}:9001/` })
    expect(JSON.parse(passed.body)).to.include({ name: 'undeclared', from: mesh.network.node.ipv4 })
    // The same over IPv6.
    const six = `{hosts: [six.shop], addresses: ['fd00:96::2'], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http, targetPort: 8080}], endpoints: [{address: '${server.pod.ipv6}', labels: {app: vault}, serviceAccount: vault}]}`
    mesh.write('six.yaml', meshDocument('networking', 'ServiceEntry', 'six', six))
    const overIpv6 = () => caller.app.do('call', { url: 'http://[fd00:96::2]/' })
    await until('calls over IPv6 to arrive', async () => (await overIpv6()).status === 200)
    expect(JSON.parse((await overIpv6()).body)).to.include({ name: 'vault', from: caller.pod.ipv6 })
    expect((await mesh.node.do('call', { url: `http://[${server.pod.ipv6}]:8080/` })).status).to.equal(0)
    const passedIpv6 = await mesh.node.do('call', { url: `http://[${server.pod.ipv6}]:9001/` })
    expect(JSON.parse(passedIpv6.body)).to.include({ name: 'undeclared', from: mesh.network.node.ipv6 })
    expect(await server.stop()).to.equal(0)
  })

  it('carries mutual TLS between IPv6-only pods, resolves their services, and refuses plaintext', async () => {
    const options = { families: 'ipv6', redirect: ['--redirect-dns'] } as const
    const [caller, server] = await Promise.all([mesh.pod('web', options), mesh.pod('ledger', options)])
    const call = await serve(server, 'fd00:96::2')
    await Promise.all([caller.start(), server.start()])
    await until(
      'the name of the service',
      async () => (await caller.app.do('resolve', { name: 'ledger.shop.svc.cluster.local', type: 'AAAA' }))[0] === 'fd00:96::2',
    )
    await until('calls to arrive', async () => (await call(caller)).status === 200)
    expect((await call(caller)).seen?.headers['x-forwarded-client-cert']).to.include('URI=spiffe://cluster.local/ns/shop/sa/web')
    expect((await mesh.node.do('call', { url: `http://[${server.address}]:8080/` })).status).to.equal(0)
    expect(await server.stop()).to.equal(0)
  })
})
