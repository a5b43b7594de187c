/** Failures in pods, and the recovery from them. */
import { connect } from 'node:net'
import { join } from 'node:path'
import { expect } from 'chai'
import { envoyBinaries } from '../harness/envoy.ts'
import { type MeshPod, meshDocument, PodMesh } from '../harness/pod-mesh.ts'
import { patienceMs, until } from '../harness/until.ts'

const host = 'cart.shop.svc.cluster.local'
const url = `http://${host}/`

describe('a mesh of pods with failures', () => {
  let mesh: PodMesh
  let [web, cart] = [] as unknown as [MeshPod, MeshPod]
  const status = async () => (await web.app.do('call', { url })).status

  before(async () => {
    mesh = new PodMesh(envoyBinaries().at(-1)?.path ?? '')
    await mesh.startDiscovery()
    const redirect = ['--redirect-dns']
    ;[web, cart] = await Promise.all([mesh.pod('web', { redirect }), mesh.pod('cart', { redirect })])
    const endpoint = `{address: ${cart.address}, ports: {http: 8080}, labels: {app: cart}, serviceAccount: cart}`
    const spec = `{hosts: [${host}], addresses: [10.96.0.1], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [${endpoint}]}`
    mesh.write(
      'services.yaml',
      meshDocument('networking', 'ServiceEntry', 'cart', spec),
      // One request per connection, so that each request needs a TLS handshake.
      meshDocument(
        'networking',
        'DestinationRule',
        'cart',
        `{host: ${host}, trafficPolicy: {connectionPool: {http: {maxRequestsPerConnection: 1}}}}`,
      ),
      meshDocument('security', 'PeerAuthentication', 'strict', '{mtls: {mode: STRICT}}'),
    )
    await cart.app.do('serve', { port: 8080, name: 'cart' })
    await cart.start()
  })
  after(() => mesh?.dispose())

  it('recovers a pod with an expired token as soon as the token is replaced', async () => {
    await web.token('1s')
    const expired = Date.now() + 2000
    await until('the token to expire', () => Date.now() > expired)
    web.launch()
    await web.output.says(/\t(warn|error)\t.*(authenticat|token|nauthenticated|certificate)/)
    expect((await web.pod.agentCommand(['wait', '--timeoutSeconds', '1'], { user: 'application' })).code).to.equal(255)
    await web.token()
    expect(
      (await web.pod.agentCommand(['wait', '--timeoutSeconds', String(patienceMs / 1000), '--periodMillis', '50'], { user: 'application' })).code,
    ).to.equal(0)
    await until('calls to arrive', async () => (await status()) === 200)
  })

  it('keeps token, state and sockets of the agent inaccessible for the application', async () => {
    for (const file of ['var/run/secrets/tokens/mesh-token', 'var/lib/mesh/data', 'etc/mesh/proxy']) {
      const reader = web.pod.spawn(['sh', '-c', `cat "$0" || ls "$0"`, join(web.dir, file)], { user: 'application' })
      expect(await new Promise((resolve) => reader.on('exit', resolve)), file).not.to.equal(0)
    }
    for (const name of ['SDS', 'XDS']) {
      const path = join(web.dir, 'etc/mesh/proxy', name)
      const reached = (code: string) =>
        `require('net').connect(${JSON.stringify(path)}).on('connect', () => process.exit(0)).on('error', () => process.exit(${code}))`
      const dialler = web.pod.spawn([process.execPath, '-e', reached('3')], { user: 'application' })
      expect(await new Promise((resolve) => dialler.on('exit', resolve)), name).to.equal(3)
      // The socket exists, and accepts its owner.
      await new Promise<void>((resolve, reject) => {
        const socket = connect(path, () => resolve(void socket.destroy())).on('error', reject)
      })
    }
  })

  it('ends the proxy of a killed agent, and serves again when the agent is started again', async () => {
    const proxy = web.proxyPid()
    expect(await web.stop('SIGKILL')).to.equal(null)
    await until('the proxy to be gone', () => !web.pod.processes().includes(proxy))
    await web.start()
    await until('calls to arrive', async () => (await status()) === 200)
  })

  it('answers 503 for a workload whose certificate expired without an authority, until the authority is back', async () => {
    expect(await cart.stop()).to.equal(0)
    await cart.start({ SECRET_TTL: '10s', MESH_AGENT_STATE_DIR: '' })
    await until('calls to arrive', async () => (await status()) === 200)
    await mesh.stopDiscovery('SIGKILL')
    await until('the certificate to expire', async () => (await status()) === 503)
    await mesh.startDiscovery()
    await until('calls to arrive', async () => (await status()) === 200)
  })
})
