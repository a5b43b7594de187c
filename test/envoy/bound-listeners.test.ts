/** A listener that is bound, and then is not, under one name: Envoy takes each change in place and stays alive (docs/resources.md, L21). */
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { call, HttpBackend } from '../harness/backend.ts'
import { Envoy, envoysWith } from '../harness/envoy.ts'
import { networkingDocument as document } from '../harness/mesh-document.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const egressAddress = '127.0.0.45'
const serviceAddress = '127.0.0.46'

for (const { version, path: binary, delta } of envoysWith({ delta: false }, { delta: true }))
  describe(`listeners of Envoy ${version} that are bound and unbound under one name, ${delta ? 'delta' : 'state of the world'}`, () => {
    const service = new Service({ env: { PILOT_DEBOUNCE_AFTER: '10ms' } })
    const backend = new HttpBackend('backend')
    let envoy: Envoy
    let port = 0

    /** What a client gets at an address; undefined: nothing listens there. */
    const answerAt = (address: string) => call(address, port, '/', { host: 'a.shop.svc.cluster.local' }).then(({ body }) => body, reasonOf)
    const isBound = async (address: string) => {
      const { configs } = JSON.parse(await envoy.admin(`/config_dump?resource=dynamic_listeners&name_regex=^${address}_${port}$`))
      return configs?.[0]?.active_state?.listener?.bind_to_port !== false
    }
    /** Waits until the listener of an address is bound, or is not, and for what a client gets there. */
    const becomes = async (address: string, bound: boolean, why: string) => {
      await until(`${why}: ${address} to be ${bound ? 'bound' : 'unbound'}`, async () => (await isBound(address)) === bound)
      await until(`${why}: an answer of ${address}`, async () => (await answerAt(address)) === (bound ? 'backend' : 'ECONNREFUSED'))
    }
    const egress = (captureMode: string) =>
      service.write(
        'sidecar.yaml',
        document(
          'Sidecar',
          'own',
          `{egress: [{port: {number: ${port}, protocol: HTTP, name: http}, bind: ${egressAddress}, captureMode: ${captureMode}, hosts: [./*]}, {hosts: [./*]}]}`,
        ),
      )

    before(async () => {
      await backend.start()
      port = await freePort()
      service.write(
        'entry.yaml',
        document(
          'ServiceEntry',
          'a',
          `{hosts: [a.shop.svc.cluster.local], addresses: [${serviceAddress}], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: ${port}, name: tcp}], endpoints: [{address: 127.0.0.1, ports: {tcp: ${backend.port}}}]}`,
        ),
      )
      service.write('mesh-config', `proxyListenPort: ${await freePort()}\n`)
      egress('DEFAULT')
      await service.start()
      envoy = new Envoy({ binary, delta, nodeId: 'sidecar~127.0.0.44~c.shop~shop.svc.cluster.local', metadata: {}, grpcPort: service.grpcPort })
      await envoy.start()
    })
    after(() => Promise.all([backend.stop(), envoy?.dispose(), service.dispose()]))
    afterEach(async () => {
      expect((await envoy.admin('/ready')).trim(), envoy.log).to.equal('LIVE')
      expect([await service.rejections(), await envoy.rejected()]).to.deep.equal([[], 0])
    })

    it('follow captureMode of a Sidecar to and fro, also after a restart of discovery', async () => {
      await becomes(egressAddress, false, 'at first')
      for (const round of [1, 2, 3]) {
        egress('NONE')
        await becomes(egressAddress, true, `round ${round}`)
        egress('DEFAULT')
        await becomes(egressAddress, false, `round ${round}`)
      }
      await service.stop('SIGKILL')
      egress('NONE')
      await service.start()
      await becomes(egressAddress, true, 'after a restart')
    })

    it("follow a Sidecar that gives its workload the address of a service's listener, and its removal", async () => {
      for (const round of [1, 2]) {
        await becomes(serviceAddress, false, `before round ${round}`)
        service.write(
          'sidecar.yaml',
          document(
            'Sidecar',
            'own',
            `{ingress: [{port: {number: ${port}, protocol: HTTP, name: http}, bind: ${serviceAddress}, captureMode: NONE, defaultEndpoint: 127.0.0.1:${backend.port}}], egress: [{hosts: [./*]}]}`,
          ),
        )
        await becomes(serviceAddress, true, `round ${round}`)
        service.remove('sidecar.yaml')
      }
      await becomes(serviceAddress, false, 'at last')
    })

    it('follow bind_to_port of an EnvoyFilter, with a socket option that both have', async () => {
      const filter = (value: string) =>
        service.write(
          'filter.yaml',
          document(
            'EnvoyFilter',
            'bound',
            `{configPatches: [{applyTo: LISTENER, match: {listener: {name: ${serviceAddress}_${port}}}, patch: {operation: MERGE, value: ${value}}}]}`,
          ),
        )
      for (const round of [1, 2]) {
        filter('{freebind: true}')
        await becomes(serviceAddress, false, `round ${round}`)
        filter('{freebind: true, bind_to_port: true}')
        await becomes(serviceAddress, true, `round ${round}`)
      }
    })
  })

const reasonOf = (error: Error & { readonly code?: string }): string => error.code ?? error.message
