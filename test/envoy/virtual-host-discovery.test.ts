/** Virtual hosts that proxies take by themselves (VHDS), at a real Envoy: those that go are gone (docs/resources.md, R12, V10). */
import { join } from 'node:path'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { Envoy, envoyBinaries } from '../harness/envoy.ts'
import { networkingDocument as document } from '../harness/mesh-document.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

interface RouteDump {
  readonly configs?: readonly { readonly route_config: { readonly name: string; readonly virtual_hosts?: readonly { readonly name: string }[] } }[]
}

for (const { version, path: binary } of envoyBinaries().filter((known) => known.version === '1.40'))
  describe(`Virtual host discovery, Envoy ${version}`, () => {
    const service = new Service({ env: { PILOT_DEBOUNCE_AFTER: '10ms' } })
    let envoy: Envoy
    let port = 0

    const entry = (name: string, host: string) =>
      document(
        'ServiceEntry',
        name,
        `{hosts: [${host}], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: ${port}, name: http}], endpoints: [{address: 127.0.0.1}]}`,
      )
    const names = async () => {
      const { configs = [] } = JSON.parse(await envoy.admin('/config_dump?resource=dynamic_route_configs')) as RouteDump
      const route = configs.find(({ route_config: { name } }) => name === String(port))
      return (route?.route_config.virtual_hosts ?? []).map(({ name }) => name.slice(name.indexOf('/') + 1)).sort()
    }
    const become = (...wanted: string[]) => until(`the virtual hosts ${wanted}`, async () => String(await names()) === String(wanted))

    before(async () => {
      port = await freePort()
      service.write('a.yaml', entry('a', 'a.example.com'))
      service.write('b.yaml', entry('b', 'b.example.com'))
      // Without a port for redirected connections no listener is bound, so that Envoys of other tests are not in the way.
      service.write('.mesh', 'proxyListenPort: 0\n')
      service.flags.push('--meshConfig', join(service.dir, '.mesh'))
      await service.start()
      envoy = new Envoy({ binary, nodeId: 'sidecar~127.0.0.41~a.shop~shop.svc.cluster.local', metadata: {}, grpcPort: service.grpcPort, delta: true })
      await envoy.start()
    })

    after(async () => {
      await envoy?.dispose()
      await service.dispose()
    })

    it('a removed and a renamed host are gone, and so is the catch-all when unknown hosts are no longer allowed', async () => {
      await become(`a.example.com:${port}`, 'allow_any', `b.example.com:${port}`)
      service.remove('b.yaml')
      await become(`a.example.com:${port}`, 'allow_any')
      service.write('a.yaml', entry('a', 'c.example.com'))
      await become('allow_any', `c.example.com:${port}`)
      service.write('sidecar.yaml', document('Sidecar', 'default', '{egress: [{hosts: ["./*"]}], outboundTrafficPolicy: {mode: REGISTRY_ONLY}}'))
      await become('block_all', `c.example.com:${port}`)
      service.remove('sidecar.yaml')
      await become('allow_any', `c.example.com:${port}`)
      expect(await service.rejections()).to.deep.equal([])
    })

    it('a route that comes after a reconnect without routes has its hosts', async () => {
      service.remove('a.yaml')
      await become()
      await service.stop('SIGKILL')
      await service.start()
      // Envoy subscribes to its virtual hosts when it reconnects, and to routes when a listener names one.
      await until('Envoy to be connected', async () => (await service.debug<object[]>('syncz')).length === 1)
      service.write('b.yaml', entry('b', 'b.example.com'))
      await become('allow_any', `b.example.com:${port}`)
      expect(await service.rejections()).to.deep.equal([])
    })
  })
