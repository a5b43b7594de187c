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
    /** The active listener of an address in Envoy; undefined: there is none. */
    const listenerAt = async (address: string): Promise<{ readonly bind_to_port?: boolean; readonly enable_reuse_port?: boolean } | undefined> => {
      const { configs } = JSON.parse(await envoy.admin(`/config_dump?resource=dynamic_listeners&name_regex=^${address}_${port}$`))
      return configs?.[0]?.active_state?.listener
    }
    const isBound = async (address: string) => {
      const listener = await listenerAt(address)
      return listener && listener.bind_to_port !== false
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
    const ingress = () =>
      service.write(
        'sidecar.yaml',
        document(
          'Sidecar',
          'own',
          `{ingress: [{port: {number: ${port}, protocol: HTTP, name: http}, bind: ${serviceAddress}, captureMode: NONE, defaultEndpoint: 127.0.0.1:${backend.port}}], egress: [{hosts: [./*]}]}`,
        ),
      )
    /** Merges a value into the listener at the address of the service. */
    const patch = (value: string) =>
      service.write(
        'filter.yaml',
        document(
          'EnvoyFilter',
          'patch',
          `{configPatches: [{applyTo: LISTENER, match: {listener: {name: ${serviceAddress}_${port}}}, patch: {operation: MERGE, value: ${value}}}]}`,
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

    /** The Envoy is there, and refused nothing. */
    const isWell = async () => {
      expect((await envoy.admin('/ready')).trim(), envoy.log).to.equal('LIVE')
      expect([await service.rejections(), await envoy.rejected()]).to.deep.equal([[], 0])
    }

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
      await isWell()
    })

    it("follow a Sidecar that gives its workload the address of a service's listener, and its removal", async () => {
      for (const round of [1, 2]) {
        await becomes(serviceAddress, false, `before round ${round}`)
        ingress()
        await becomes(serviceAddress, true, `round ${round}`)
        service.remove('sidecar.yaml')
      }
      await becomes(serviceAddress, false, 'at last')
      await isWell()
    })

    it('follow bind_to_port of an EnvoyFilter, with a socket option that both have', async () => {
      for (const round of [1, 2]) {
        patch('{freebind: true}')
        await becomes(serviceAddress, false, `round ${round}`)
        patch('{freebind: true, bind_to_port: true}')
        await becomes(serviceAddress, true, `round ${round}`)
      }
      service.remove('filter.yaml')
      await becomes(serviceAddress, false, 'without the patch')
      await isWell()
    })

    it('are removed and added where Envoy cannot change them, as with enable_reuse_port, so that policies count', async () => {
      const becomesReused = (value: boolean) =>
        until(`enable_reuse_port: ${value}`, async () => {
          const listener = await listenerAt(serviceAddress)
          return listener !== undefined && (listener.enable_reuse_port !== false) === value
        })
      ingress()
      await becomes(serviceAddress, true, 'at first')
      for (const value of [false, true, false]) {
        patch(`{enable_reuse_port: ${value}}`)
        await becomesReused(value)
        await becomes(serviceAddress, true, `enable_reuse_port: ${value}`)
      }
      service.remove('filter.yaml')
      await becomesReused(true)
      service.write(
        'policy.yaml',
        'apiVersion: security.mesh.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: deny, namespace: shop}\nspec: {action: DENY, rules: [{}]}\n',
      )
      await until('the policy to count', async () => (await answerAt(serviceAddress)) === 'RBAC: access denied')
      expect((await service.debug<{ faults: object[] }>('push_status')).faults).to.deep.equal([])
      const refused = await service.rejections()
      expect(refused, 'each change is refused once').to.have.length(4)
      for (const line of refused) expect(line).to.contain('reuse port cannot be changed during an update')
      expect((await envoy.admin('/ready')).trim(), envoy.log).to.equal('LIVE')
    })
  })

const reasonOf = (error: Error & { readonly code?: string }): string => error.code ?? error.message
