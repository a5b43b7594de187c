/** Connections from a pod to unknown destinations on ports that services use: the outbound traffic policy decides. */
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { Authority } from '../harness/certificates.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { type MeshPod, meshDocument, PodMesh } from '../harness/pod-mesh.ts'
import { until } from '../harness/until.ts'

const entry = (name: string, spec: string) => meshDocument('networking', 'ServiceEntry', name, spec)

/** An address outside of the mesh, and the address of a service with resolution NONE, whose connections keep their destination. */
const [stranger, virtual] = ['10.90.0.1', '10.96.0.9']
const ports = { http: 8000, tcp: 8001, tls: 8002 }

const services = [
  entry(
    'web',
    `{hosts: [web.shop.svc.cluster.local], resolution: STATIC, ports: [{number: ${ports.http}, name: http}], endpoints: [{address: 10.77.0.1}]}`,
  ),
  // A service on the ports of the listeners that receive redirected connections, which it must not replace.
  entry(
    'greedy',
    '{hosts: [greedy.example.com], resolution: STATIC, ports: [{number: 15006, name: tcp}, {number: 15001, name: http}, {number: 15021, name: http-status}], endpoints: [{address: 10.77.0.1}]}',
  ),
  entry(
    'range',
    `{hosts: [range.example.com], addresses: [10.91.0.0/24, 10.92.0.1], resolution: STATIC, ports: [{number: ${ports.tcp}, name: tcp}], endpoints: [{address: 10.77.0.1}]}`,
  ),
  entry('secure', `{hosts: [secure.example.com], addresses: [${virtual}], resolution: NONE, ports: [{number: ${ports.tls}, name: tls}]}`),
  entry(
    'elsewhere',
    `{hosts: [elsewhere.example.com], resolution: STATIC, ports: [{number: ${ports.tls}, name: tls}], endpoints: [{address: 10.77.0.1}]}`,
  ),
  meshDocument(
    'networking',
    'VirtualService',
    'secure',
    `{hosts: [secure.example.com], tls: [{match: [{sniHosts: [secure.example.com]}], route: [{destination: {host: elsewhere.example.com}}]}]}`,
  ),
]

for (const { version, path } of envoyBinaries())
  describe(`outbound traffic of a pod, Envoy ${version}`, () => {
    const authority = new Authority()
    let mesh: PodMesh
    let pod: MeshPod

    before(async () => {
      mesh = new PodMesh(path)
      mesh.configure('protocolDetectionTimeout: 200ms\n')
      mesh.write('services.yaml', ...services)
      await mesh.startDiscovery()
      for (const address of [stranger, virtual, '10.91.0.7', '10.92.0.1'])
        mesh.network.node.system('ip', 'addr', 'add', `${address}/32`, 'dev', 'bridge')
      const { chain, key } = authority.issue('server', 'spiffe://cluster.local/ns/shop/sa/server')
      const pair = { cert: readFileSync(chain, 'utf8'), key: readFileSync(key, 'utf8') }
      const { node } = mesh
      await node.do('serve', { port: ports.http, host: '10.77.0.1', name: 'web' })
      await node.do('listenTls', { port: ports.http, host: stranger, name: 'TLS of a stranger', ...pair })
      await node.do('listen', { port: ports.http, host: virtual, name: 'bytes of a stranger' })
      await node.do('serve', { port: ports.http, host: '10.92.0.1', name: 'requests of a stranger' })
      for (const [host, name] of Object.entries({ '10.77.0.1': 'range', '10.92.0.1': 'nobody', [stranger]: 'bytes of a stranger' }))
        await node.do('listen', { port: ports.tcp, host, name })
      await node.do('listenTls', { port: ports.tls, host: '10.77.0.1', name: 'elsewhere', ...pair })
      await node.do('listenTls', { port: ports.tls, host: virtual, name: 'secure', ...pair })
      pod = await mesh.pod('client', { redirect: [] })
      await pod.start()
    })
    after(async () => {
      await mesh?.dispose()
      authority.dispose()
    })

    const names = (answer: string) => (JSON.parse(answer) as { name: string }).name
    const request = async (host: string, address: string) => {
      const { status, body } = await pod.app.do('call', { url: `http://${address}:${ports.http}/`, headers: { host } })
      return status === 200 ? names(body) : status
    }

    it('has all listeners accepted, even with services on the ports of redirection', async () => {
      expect(await pod.admin('/stats?filter=lds.update_rejected')).to.match(/: 0\n/)
      const { listeners } = { listeners: await pod.admin('/listeners') }
      expect(listeners).to.include('virtualInbound::0.0.0.0:15006').and.include('virtualOutbound::0.0.0.0:15001')
    })

    it('reaches known services by host, by address range and by server name', async () => {
      expect(await request('web.shop', '10.91.0.200')).to.equal('web')
      for (const host of ['10.91.0.7', '10.92.0.1']) expect(names(await pod.app.do('dial', { host, port: ports.tcp }))).to.equal('range')
      const dial = (servername: string) => pod.app.do('dialTls', { host: virtual, port: ports.tls, servername })
      expect(await dial('secure.example.com')).to.equal('elsewhere')
    })

    it('passes through to unknown destinations on an HTTP port, on a shared port, and for server names without a route', async () => {
      const { app } = pod
      expect(await app.do('dialTls', { host: stranger, port: ports.http, servername: 'any' })).to.equal('TLS of a stranger')
      expect(await app.do('dialTls', { host: virtual, port: ports.tls, servername: 'other.example.com' })).to.equal('secure')
      for (const say of ['\u0001binary\u0002', undefined])
        expect(names(await app.do('dial', { host: virtual, port: ports.http, ...(say ? { say } : {}) }))).to.equal('bytes of a stranger')
      expect(names(await app.do('dial', { host: stranger, port: ports.tcp }))).to.equal('bytes of a stranger')
      expect(await request('who.example.com', '10.92.0.1')).to.equal('requests of a stranger')
    })

    it('is refused for unknown destinations in mode REGISTRY_ONLY, and still reaches known services', async () => {
      mesh.write(
        'sidecar.yaml',
        meshDocument('networking', 'Sidecar', 'default', '{egress: [{hosts: ["*/*"]}], outboundTrafficPolicy: {mode: REGISTRY_ONLY}}'),
      )
      const { app } = pod
      await until('requests to be refused', async () => (await request('who.example.com', '10.92.0.1')) === 502)
      const closed = ['', 'ECONNRESET']
      expect(await app.do('dialTls', { host: stranger, port: ports.http, servername: 'any' })).to.be.oneOf(closed)
      expect(await app.do('dialTls', { host: virtual, port: ports.tls, servername: 'other.example.com' })).to.be.oneOf(closed)
      expect(await app.do('dial', { host: virtual, port: ports.http, say: '\u0001binary' })).to.be.oneOf(closed)
      expect(await app.do('dial', { host: stranger, port: ports.tcp })).to.be.oneOf(closed)
      expect(await request('web.shop', '10.91.0.200')).to.equal('web')
    })
  })
