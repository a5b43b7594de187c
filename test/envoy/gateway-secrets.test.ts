/** Gateways of real Envoys whose certificates come from Secrets, over the secured port with client certificates (docs/resources.md, K1 to K9). */
import { X509Certificate } from 'node:crypto'
import { createServer as createHttpsServer, type Server } from 'node:https'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { call, HttpBackend } from '../harness/backend.ts'
import { Envoy, type EnvoyOptions, envoysWith } from '../harness/envoy.ts'
import { newKey, type Pair, pairValues, SiteCertificates, secretDocument } from '../harness/gateway-secrets.ts'
import { type Outcome, secureCall } from '../harness/secure-call.ts'
import { Service } from '../harness/service.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'

const serialOf = ({ chain }: Pair): string => new X509Certificate(chain).serialNumber

for (const { version, path: binary, delta } of envoysWith({ delta: false }, { delta: true })) {
  describe(`secrets of gateways, Envoy ${version}, ${delta ? 'delta' : 'state of the world'}`, () => {
    const service = new Service({ env: { PILOT_DEBOUNCE_AFTER: '10ms', ENABLE_DEBUG_ON_LOOPBACK: 'true' } })
    const mesh = new ServingCertificates(service.dir)
    const made = new SiteCertificates()
    const backend = new HttpBackend('app')
    const address = '127.0.0.9'
    const ports = { http: 0, tls: 0, foreign: 0, late: 0, upstream: 0, secured: 0 }
    let root: Pair
    let clients: Pair
    let sites: Pair[]
    let upstream: Server
    let gateway: Envoy
    const others: Envoy[] = []

    const write = (path: string, values: Record<string, string>) => service.write(`${path.replace('/', '-')}.json`, secretDocument(path, values))
    const envoy = (type: 'router' | 'sidecar', options: Pick<EnvoyOptions, 'grpcPort'> & Partial<EnvoyOptions>) =>
      new Envoy({
        binary,
        delta,
        nodeId: `${type}~${address}~gateway.edge~edge.svc.cluster.local`,
        metadata: { NAMESPACE: 'edge', LABELS: { app: 'gateway' } },
        ...options,
      })
    const secured = () => ({
      grpcPort: ports.secured,
      credentials: {
        root: mesh.text('ca.pem'),
        serverName: 'server.example',
        certificate: { cert: mesh.text('edge.pem'), key: mesh.text('edge-key.pem') },
      },
    })
    const site = (host: string, client?: Pair, port = ports.tls) => secureCall(address, port, { host, root, ...(client ? { client } : {}) })

    before(async () => {
      for (const name of Object.keys(ports) as (keyof typeof ports)[]) ports[name] = await freePort()
      await backend.start()
      root = made.authority('sites')
      clients = made.authority('clients')
      sites = Array.from({ length: 4 }, () => made.issue('site.example', root))
      const server = made.issue('upstream.example', root)
      upstream = createHttpsServer({ cert: server.chain, key: server.key, ca: clients.chain, requestCert: true }, (_, response) =>
        response.end('upstream'),
      )
      await new Promise<void>((resolve) => upstream.listen(ports.upstream, '127.0.0.1', resolve))
      mesh.authority('ca')
      mesh.issue('server', 'ca', 1, 'subjectAltName=DNS:server.example\n')
      mesh.workload('edge', 'ca', ['spiffe://cluster.local/ns/edge/sa/gateway'])
      write('edge/site', pairValues(sites[0] as Pair))
      write('edge/mutual', pairValues(made.issue('mutual.example', root)))
      service.write('cacert.json', secretDocument('edge/mutual-cacert', { cacert: clients.chain }, 'Opaque'))
      write('other/site', pairValues(made.issue('foreign.example', root)))
      write('edge/out', pairValues(made.issue('gateway.example', clients), root))
      const tls = (port: number, name: string, host: string, mode: string, credential: string) =>
        `  - {port: {number: ${port}, name: ${name}, protocol: HTTPS}, bind: ${address}, hosts: [${host}], tls: {mode: ${mode}, credentialName: ${credential}}}`
      service.write(
        'gateway.yaml',
        `apiVersion: networking.mesh.io/v1
kind: Gateway
metadata: {name: g, namespace: edge}
spec:
  selector: {app: gateway}
  servers:
  - {port: {number: ${ports.http}, name: http, protocol: HTTP}, bind: ${address}, hosts: ['*']}
${tls(ports.tls, 'site', 'site.example', 'SIMPLE', 'site')}
${tls(ports.tls, 'again', 'again.example', 'SIMPLE', 'edge/site')}
${tls(ports.tls, 'mutual', 'mutual.example', 'MUTUAL', 'mutual')}
${tls(ports.tls, 'rootless', 'rootless.example', 'MUTUAL', 'site')}
${tls(ports.foreign, 'foreign', 'foreign.example', 'SIMPLE', 'other/site')}
${tls(ports.late, 'late', 'site.example', 'SIMPLE', 'late')}
---
apiVersion: networking.mesh.io/v1
kind: VirtualService
metadata: {name: v, namespace: edge}
spec:
  hosts: ['*']
  gateways: [g]
  http:
  - {match: [{uri: {prefix: /out}}], route: [{destination: {host: upstream.example}}]}
  - {route: [{destination: {host: app.edge.svc.cluster.local}}]}
---
apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: app, namespace: edge}
spec: {hosts: [app.edge.svc.cluster.local], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}], endpoints: [{address: 127.0.0.1, ports: {http: ${backend.port}}}]}
---
apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: upstream, namespace: edge}
spec: {hosts: [upstream.example], resolution: STATIC, ports: [{number: 443, name: http}], endpoints: [{address: 127.0.0.1, ports: {http: ${ports.upstream}}}]}
---
apiVersion: networking.mesh.io/v1
kind: DestinationRule
metadata: {name: upstream, namespace: edge}
spec: {host: upstream.example, trafficPolicy: {tls: {mode: MUTUAL, credentialName: out, sni: upstream.example, subjectAltNames: [upstream.example]}}}
`,
      )
      service.flags.push('--secureGRPCAddr', `127.0.0.1:${ports.secured}`)
      service.flags.push(...mesh.servingFlags())
      await service.start()
      gateway = envoy('router', secured())
      await gateway.start()
    })
    after(async () => {
      expect(await service.rejections()).to.deep.equal([])
      expect(await gateway.rejected()).to.equal(0)
      await Promise.all([gateway, ...others].map((one) => one.dispose()))
      upstream.closeAllConnections()
      upstream.close()
      await Promise.all([service.dispose(), backend.stop()])
      made.dispose()
    })

    it('that do not exist yet keep only their own listener from serving', async () => {
      expect((await call(address, ports.http, '/')).status).to.equal(200)
      expect(await site('site.example')).to.deep.equal({ status: 200, serial: serialOf(sites[0] as Pair) })
      expect((await site('site.example', undefined, ports.late)).status).to.equal(0)
    })

    it('are served for credential names with and without a namespace', async () => {
      const again = await secureCall(address, ports.tls, { host: 'again.example', root, anyName: true })
      expect(again).to.deep.equal({ status: 200, serial: serialOf(sites[0] as Pair) })
    })

    it('verify client certificates with the CA of the Secret', async () => {
      expect((await site('mutual.example', made.issue('client.example', clients))).status).to.equal(200)
      expect((await site('mutual.example')).status).to.equal(0)
      expect((await site('mutual.example', made.issue('client.example', root))).status, 'a certificate of another authority').to.equal(0)
    })

    it('without a CA make a MUTUAL server refuse every client', async () => {
      expect((await site('rootless.example', made.issue('client.example', clients))).status).to.equal(0)
    })

    it('of another namespace are not served to the gateway', async () => {
      expect((await site('foreign.example', undefined, ports.foreign)).status).to.equal(0)
      const dump = await gateway.admin('/config_dump?resource=dynamic_active_secrets')
      expect(dump).to.contain('kubernetes://site').and.not.to.contain('kubernetes://other/site')
    })

    it('serve as client certificate of a DestinationRule for upstream TLS', async () => {
      await until('the answer of the service', async () => (await call(address, ports.http, '/out')).body === 'upstream')
    })

    it('that are created later activate their listener', async () => {
      write('edge/late', pairValues(sites[1] as Pair))
      await until('the listener', async () => (await site('site.example', undefined, ports.late)).status === 200)
      expect((await site('site.example', undefined, ports.late)).serial).to.equal(serialOf(sites[1] as Pair))
    })

    it('may have ECDSA P-384, P-521 and RSA keys', async () => {
      const kinds = [newKey('secp384r1'), newKey('secp521r1'), ...['2048', '3072'].map((bits) => ['-newkey', `rsa:${bits}`, '-nodes'])]
      for (const key of kinds) {
        const pair = made.issue('site.example', root, { key })
        write('edge/late', pairValues(pair))
        await until(
          `the certificate of ${key[1]} ${key[3]}`,
          async () => (await site('site.example', undefined, ports.late)).serial === serialOf(pair),
        )
        expect((await site('site.example', undefined, ports.late)).status).to.equal(200)
      }
    })

    it('are replaced under traffic without a failed request', async () => {
      const failed: Outcome[] = []
      const seen = new Set<string>()
      let calls = 0
      let isOver = false
      const traffic = Array.from({ length: 4 }, async () => {
        while (!isOver) {
          const outcome = await site('site.example')
          calls++
          seen.add(outcome.serial)
          if (outcome.status !== 200) failed.push(outcome)
        }
      })
      for (const next of [1, 2, 3]) {
        const before = calls
        write('edge/site', pairValues(sites[next] as Pair))
        await until('the next certificate', () => seen.has(serialOf(sites[next] as Pair)))
        await until('more calls', () => calls > before + 20)
      }
      isOver = true
      await Promise.all(traffic)
      expect(failed).to.deep.equal([])
      expect([...seen]).to.have.members(sites.map(serialOf))
    })

    it('that are deleted stay in use at a running gateway', async () => {
      service.remove('edge-site.json')
      service.write(
        'marker.yaml',
        `apiVersion: networking.mesh.io/v1\nkind: VirtualService\nmetadata: {name: m, namespace: edge}\nspec: {hosts: [marker.example], gateways: [g], http: [{route: [{destination: {host: app.edge.svc.cluster.local}}]}]}\n`,
      )
      await until('a later change', async () => (await gateway.admin('/config_dump')).includes('marker.example'))
      expect((await site('site.example')).status).to.equal(200)
      write('edge/site', pairValues(sites[0] as Pair))
    })

    it('are not served over plaintext xDS, and the other listeners of that gateway work', async () => {
      await gateway.stop()
      const plain = envoy('router', { grpcPort: service.grpcPort })
      others.push(plain)
      await plain.start()
      await until('plain HTTP', async () => (await call(address, ports.http, '/')).status === 200)
      expect((await site('site.example')).status).to.equal(0)
      expect(await plain.admin('/config_dump?resource=dynamic_active_secrets')).not.to.contain('kubernetes://')
      await plain.stop()
      await gateway.start()
      await until('the certificate', async () => (await site('site.example')).status === 200)
    })
  })
}
