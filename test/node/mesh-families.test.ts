/** Pods with both address families: policies, mutual TLS and outbound calls hold in each, also for addresses that come later. */
import { expect } from 'chai'
import { envoyBinaries } from '../harness/envoy.ts'
import { type MeshPod, meshDocument, PodMesh } from '../harness/pod-mesh.ts'
import { until } from '../harness/until.ts'

const strict = meshDocument('security', 'PeerAuthentication', 'strict', '{mtls: {mode: STRICT}}')
const open = meshDocument(
  'security',
  'PeerAuthentication',
  'open',
  '{selector: {matchLabels: {app: cart}}, portLevelMtls: {9001: {mode: DISABLE}, 9002: {mode: DISABLE}}}',
)
/** Denies callers of these ranges at one port. */
const deny = (...ranges: string[]) =>
  meshDocument(
    'security',
    'AuthorizationPolicy',
    'ranges',
    `{selector: {matchLabels: {app: cart}}, action: DENY, rules: [{from: [{source: {ipBlocks: ${JSON.stringify(ranges)}}}], to: [{operation: {ports: ["9002"]}}]}]}`,
  )

for (const { version, path } of envoyBinaries()) {
  describe(`a mesh of pods with both families and Envoy ${version}`, () => {
    let mesh: PodMesh
    let [web, cart] = [] as unknown as [MeshPod, MeshPod]
    before(async () => {
      mesh = new PodMesh(path)
      await mesh.startDiscovery()
      const redirect = ['--redirect-dns']
      ;[web, cart] = await Promise.all([mesh.pod('web', { families: 'both', redirect }), mesh.pod('cart', { families: 'ipv4', redirect })])
      const entry = (host: string, address: string, endpoint: string) =>
        meshDocument(
          'networking',
          'ServiceEntry',
          host,
          `{hosts: [${host}.shop.svc.cluster.local], addresses: ['${address}'], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http, targetPort: 8080}, {number: 81, name: http-own, targetPort: 8081}, {number: 90, name: tcp, targetPort: 9000}], endpoints: [{address: '${endpoint}', labels: {app: cart}, serviceAccount: cart}]}`,
        )
      mesh.write('services.yaml', entry('four', '10.96.0.4', cart.pod.ipv4), entry('six', 'fd00:96::6', cart.pod.ipv6))
      mesh.write('policies.yaml', strict, open)
      await cart.app.do('serve', { port: 8080, name: 'both loopbacks' })
      await cart.app.do('serve', { port: 8081, host: '::1', name: 'one loopback' })
      await cart.app.do('listen', { port: 9000, name: 'bytes' })
      for (const port of [9001, 9002]) await cart.app.do('serve', { port, name: 'undeclared' })
      await mesh.node.do('serve', { port: 9000, name: 'outside' })
      await Promise.all([web.start(), cart.start()])
      // The address of IPv6 comes when rules and proxy have long been there.
      cart.pod.system('sysctl', '-qw', 'net.ipv6.conf.eth0.disable_ipv6=0')
      cart.pod.system('ip', '-6', 'addr', 'add', `${cart.pod.ipv6}/64`, 'dev', 'eth0', 'nodad')
      cart.pod.system('ip', '-6', 'route', 'add', 'default', 'dev', 'eth0')
    })
    after(() => mesh?.dispose())

    const seen = (body: string) => JSON.parse(body) as { name: string; from: string; headers: Record<string, string> }

    it('carries mutual TLS in both, to whatever loopback address the application listens on', async () => {
      for (const url of ['http://10.96.0.4/', 'http://[fd00:96::6]/', 'http://10.96.0.4:81/', 'http://[fd00:96::6]:81/']) {
        await until(`calls to arrive at ${url}`, async () => (await web.app.do('call', { url })).status === 200)
        const { name, headers } = seen((await web.app.do('call', { url })).body)
        expect(name).to.equal(url.includes(':81/') ? 'one loopback' : 'both loopbacks')
        expect(headers['x-forwarded-client-cert'], url).to.include('URI=spiffe://cluster.local/ns/shop/sa/web')
      }
      for (const host of ['10.96.0.4', 'fd00:96::6']) expect(JSON.parse(await web.app.do('dial', { host, port: 90 })).name).to.equal('bytes')
    })

    it('refuses callers without a certificate at every address', async () => {
      const linkLocal = /inet6 (fe80:[^/]+)/.exec(cart.pod.system('ip', '-6', 'addr', 'show', 'dev', 'eth0'))?.[1]
      for (const host of [cart.pod.ipv4, cart.pod.ipv6, `${linkLocal}%bridge`])
        for (const port of [8080, 8081, 9000, 15006]) {
          const answer = await mesh.node.do('dial', { host, port, say: 'GET / HTTP/1.1\r\nHost: x\r\n\r\n' })
          expect(answer, `${host} ${port}`).to.be.oneOf(['', 'ECONNRESET', 'ECONNREFUSED'])
        }
    })

    it('passes connections to undeclared ports on, and compares addresses of callers in the form of their family', async () => {
      const { ipv4, ipv6 } = cart.pod
      const { node } = mesh.network
      const status = async (host: string) => (await mesh.node.do('call', { url: `http://${host}:9002/` })).status
      for (const host of [ipv4, `[${ipv6}]`]) {
        const answer = await mesh.node.do('call', { url: `http://${host}:9001/` })
        expect(seen(answer.body).from, host).to.equal(host === ipv4 ? '127.0.0.6' : '::6')
      }
      for (const [denied, statuses] of [
        [node.ipv4, [403, 200]],
        [node.ipv6, [200, 403]],
        [`::ffff:${node.ipv4}/128`, [403, 200]],
      ] as const) {
        mesh.write('policies.yaml', strict, open, deny(denied))
        await until(`${denied} to be denied`, async () => String([await status(ipv4), await status(`[${ipv6}]`)]) === String(statuses))
      }
    })

    it('passes calls to other destinations on, and answers probes and scrapes', async () => {
      for (const host of [mesh.network.node.ipv4, `[${mesh.network.node.ipv6}]`])
        expect(seen((await web.app.do('call', { url: `http://${host}:9000/` })).body).name).to.equal('outside')
      for (const host of [web.pod.ipv4, `[${web.pod.ipv6}]`])
        for (const path of [':15021/healthz/ready', ':15090/stats/prometheus', ':15020/healthz/ready'])
          expect((await mesh.node.do('call', { url: `http://${host}${path}` })).status, `${host}${path}`).to.equal(200)
    })
  })
}
