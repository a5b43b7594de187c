/** Changes that reach an Envoy late, because it did not run or was not connected (docs/xds-protocol.md, S7 and D7). */
import { expect } from 'chai'
import { Envoy, envoysWith } from '../harness/envoy.ts'
import { networkingDocument as document } from '../harness/mesh-document.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

interface ClusterDump {
  readonly configs?: readonly { readonly cluster: { readonly name: string } }[]
}

for (const { version, path: binary, delta } of envoysWith({ delta: false }, { delta: true }))
  describe(`Envoy ${version}, ${delta ? 'delta' : 'state of the world'}, that gets changes late`, () => {
    const service = new Service({ env: { PILOT_DEBOUNCE_AFTER: '10ms' } })
    let envoy: Envoy

    const entry = (name: string, address: string) =>
      document(
        'ServiceEntry',
        name,
        `{hosts: [${name}.example.com], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 9000, name: tcp}], endpoints: [{address: ${address}}]}`,
      )
    const clusters = async () => {
      const { configs = [] } = JSON.parse(await envoy.admin('/config_dump?resource=dynamic_active_clusters')) as ClusterDump
      return configs.map(({ cluster }) => cluster.name).filter((name) => name.startsWith('outbound|'))
    }
    const both = ['outbound|9000||a.example.com', 'outbound|9000||b.example.com']
    const become = (...wanted: string[]) => until(`the clusters ${wanted}`, async () => String((await clusters()).sort()) === String(wanted))
    /** The number of responses of a type that were sent since the start. */
    const pushes = async (type: string) =>
      Number(new RegExp(`^pilot_xds_pushes\\{type="${type}"\\} (\\d+)`, 'm').exec(await service.metrics())?.[1] ?? 0)

    before(async () => {
      service.write('a.yaml', entry('a', '127.0.0.1'))
      service.write('b.yaml', entry('b', '127.0.0.1'))
      await service.start()
      envoy = new Envoy({
        binary,
        delta,
        grpcPort: service.grpcPort,
        nodeId: 'sidecar~127.0.0.43~a.shop~shop.svc.cluster.local',
        metadata: { INTERCEPTION_MODE: 'NONE' },
      })
    })

    after(async () => {
      await envoy?.dispose()
      await service.dispose()
    })

    it('a cluster that went and came again while it was stopped becomes active', async () => {
      const child = await envoy.launch()
      await become(...both)
      child.kill('SIGSTOP')
      const pushed = async (type: string, change: () => void) => {
        const before = await pushes(type)
        change()
        await until(`a push of ${type}`, async () => (await pushes(type)) > before)
      }
      // A patch removes the cluster and not its endpoints, so nothing but the proxy's request is a reason to send them again.
      await pushed('cds', () =>
        service.write(
          'filter.yaml',
          document(
            'EnvoyFilter',
            'f',
            '{configPatches: [{applyTo: CLUSTER, match: {cluster: {service: a.example.com}}, patch: {operation: REMOVE}}]}',
          ),
        ),
      )
      await pushed('cds', () => service.remove('filter.yaml'))
      await pushed('eds', () => service.write('b.yaml', entry('b', '127.0.0.2')))
      child.kill('SIGCONT')
      await until('the endpoint', async () => (await envoy.admin('/clusters')).includes('127.0.0.2:9000'))
      await become(...both)
      expect(await service.rejections()).to.deep.equal([])
    })

    it('a cluster that changed while it was not connected becomes active', async () => {
      await service.stop('SIGKILL')
      service.write('rule.yaml', document('DestinationRule', 'a', '{host: a.example.com, trafficPolicy: {loadBalancer: {simple: RANDOM}}}'))
      await service.start()
      await until('the changed cluster', async () => (await envoy.admin('/config_dump?resource=dynamic_active_clusters')).includes('"RANDOM"'))
      expect(await service.rejections()).to.deep.equal([])
    })
  })
