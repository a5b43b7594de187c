/** Objects that match the same connections: the first object gets the connections, and Envoy accepts all listeners. */
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { Authority } from '../harness/certificates.ts'
import { Envoy, envoyBinaries } from '../harness/envoy.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

/** The configuration of a golden file with its ports replaced by free ones. */
const golden = (name: string, ports: Readonly<Record<string, number>>): string => {
  const text = readFileSync(new URL(`../golden/${name}/in.yaml`, import.meta.url), 'utf8')
  const replaced = Object.entries(ports).reduce((all, [from, to]) => all.replaceAll(`number: ${from},`, `number: ${to},`), text)
  return replaced.slice(replaced.indexOf('\n---\n') + 5)
}

for (const { version, path: binary } of envoyBinaries())
  describe(`Envoy ${version} accepts the listeners for overlapping matches`, () => {
    const service = new Service()
    const proxies: Envoy[] = []
    const authority = new Authority()

    after(async () => {
      await Promise.all([...proxies.map((proxy) => proxy.dispose()), service.dispose()])
      authority.dispose()
    })

    it('of gateway servers, routes and services', async () => {
      const [tls, tcp, edge] = [await freePort(), await freePort(), await freePort()]
      const { chain, key } = authority.issue('edge', 'spiffe://cluster.local/ns/edge/sa/edge')
      const text = golden('gateways/overlapping-names', { 443: edge })
      service.write('gateway.yaml', text.replace('serverCertificate: /c, privateKey: /k', `serverCertificate: ${chain}, privateKey: ${key}`))
      service.write('services.yaml', golden('listeners/overlapping-matches', { 443: tls, 9000: tcp }))
      await service.start()
      for (const [id, app] of [
        ['router~127.0.0.8~gateway.edge~edge.svc.cluster.local', 'gateway'],
        ['sidecar~127.0.0.9~c.shop~shop.svc.cluster.local', 'c'],
      ])
        proxies.push(
          new Envoy({ binary, grpcPort: service.grpcPort, nodeId: id as string, metadata: { LABELS: { app }, INTERCEPTION_MODE: 'NONE' } }),
        )
      await Promise.all(proxies.map((proxy) => proxy.start()))
      const active = async (proxy: Envoy) => {
        const { configs } = JSON.parse(await proxy.admin('/config_dump?resource=dynamic_listeners')) as {
          configs?: { name: string; active_state?: object; error_state?: object }[]
        }
        return (configs ?? []).map(({ name, active_state: is, error_state: error }) => (is && !error ? name : `not ${name}`)).sort()
      }
      await until('the listeners', async () => (await Promise.all(proxies.map(active))).every((names) => names.length > 0))
      expect(await service.rejections()).to.deep.equal([])
      expect(await Promise.all(proxies.map(active))).to.deep.equal([[`0.0.0.0_${edge}`], [`127.0.0.1_${tcp}`, `127.0.0.1_${tls}`].sort()])
      expect(await Promise.all(proxies.map((proxy) => proxy.rejected()))).to.deep.equal([0, 0])
    })
  })
