/** A stock Envoy fetches its configuration over TLS, and authenticates with a client certificate or a token. */
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { Envoy, envoyBinaries } from '../harness/envoy.ts'
import { Issuer } from '../harness/issuer.ts'
import { Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'

for (const { version, path: binary } of envoyBinaries()) {
  describe(`Envoy ${version} at the secured port`, () => {
    const service = new Service()
    const made = new ServingCertificates(service.dir)
    const envoys: Envoy[] = []
    let token = ''
    let port = 0

    before(async () => {
      const issuer = await new Issuer('https://issuer.test').rotateOnly('ES256')
      token = await issuer.token({ sub: 'system:serviceaccount:shop:cart', aud: 'mesh-ca' })
      service.env.JWT_RULE = JSON.stringify({ issuer: issuer.name, jwks: issuer.jwks, audiences: ['mesh-ca'] })
      made.authority('ca')
      made.issue('server', 'ca', 1, 'subjectAltName=DNS:meshd.mesh-system.svc\n')
      made.workload('cart', 'ca', ['spiffe://cluster.local/ns/shop/sa/cart'])
      service.write('a.yaml', serviceEntry('a', '10.0.0.1'))
      port = await freePort()
      service.flags.push('--secureGRPCAddr', `127.0.0.1:${port}`)
      service.flags.push(...made.servingFlags())
      await service.start()
    })
    afterEach(async () => {
      for (const envoy of envoys.splice(0)) await envoy.dispose()
    })
    after(() => service.dispose())

    const envoy = (namespace: string, shown: { token?: string; certificate?: { cert: string; key: string } }, delta: boolean) => {
      const started = new Envoy({
        binary,
        nodeId: `sidecar~127.0.0.9~cart.${namespace}~${namespace}.svc.cluster.local`,
        metadata: { NAMESPACE: namespace, SERVICE_ACCOUNT: 'cart' },
        grpcPort: port,
        delta,
        credentials: { root: made.text('ca.pem'), serverName: 'meshd.mesh-system.svc', ...shown },
      })
      envoys.push(started)
      return started
    }
    const certificate = () => ({ cert: made.text('cart.pem'), key: made.text('cart-key.pem') })

    for (const delta of [false, true]) {
      const protocol = delta ? 'delta' : 'state of the world'

      it(`is served with a client certificate or a token, and receives changes (${protocol})`, async () => {
        for (const shown of [{ certificate: certificate() }, { token }]) {
          const proxy = envoy('shop', shown, delta)
          await proxy.start()
          const address = delta ? '10.0.1.1' : '10.0.2.1'
          service.write('a.yaml', serviceEntry('a', address))
          await until('the change', async () => (await proxy.admin('/clusters')).includes(address))
          expect(await proxy.rejected()).to.equal(0)
          service.write('a.yaml', serviceEntry('a', '10.0.0.1'))
        }
        const connections = await service.debug<{ proxy: string }[]>('syncz')
        expect(connections.length).to.be.above(0)
      })
    }

    it('gets no configuration with an identity of another namespace, or without a valid credential', async () => {
      for (const [namespace, shown, line] of [
        ['bank', { token }, 'may not act for namespace \\"bank\\"'],
        ['shop', {}, 'neither a client certificate nor a token'],
        ['shop', { token: 'garbage' }, 'authentication failure'],
      ] as const) {
        const proxy = envoy(namespace, shown, true)
        await proxy.launch()
        await service.output.says(line.replaceAll('\\', ''))
        await until('its admin page', async () => (await proxy.admin('/ready')) !== '')
        expect(await proxy.stat('cluster_manager.cds.update_success')).to.equal(0)
      }
    })
  })
}
