import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { call, HttpBackend, readAll, tcpBackend } from '../harness/backend.ts'
import { Envoy, envoyBinaries } from '../harness/envoy.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const host = 'reviews.shop.svc.cluster.local'

for (const { version, path: binary } of envoyBinaries()) {
  for (const delta of [false, true]) {
    describe(`Envoy ${version}, ${delta ? 'delta' : 'state of the world'}`, () => {
      const service = new Service()
      const v1 = new HttpBackend('v1')
      const v2 = new HttpBackend('v2')
      let tcp: Awaited<ReturnType<typeof tcpBackend>>
      let gateway: Envoy
      let server: Envoy
      let client: Envoy
      const ports = { gateway: 0, tcpGateway: 0, inbound: 0, http: 0, tcp: 0 }
      const proxies = () => [gateway, server, client]

      const routes = (http: string) => `apiVersion: networking.mesh.io/v1alpha3
kind: VirtualService
metadata: {name: reviews, namespace: shop}
spec:
  hosts: [reviews.shop.svc.cluster.local]
  gateways: [edge, mesh]
  http:
${http}
  tcp:
  - match: [{gateways: [edge], port: ${ports.tcpGateway}}]
    route: [{destination: {host: tcp.shop.svc.cluster.local, port: {number: ${ports.tcp}}}}]
`
      const to = (subset: string, weight = 100) => `{destination: {host: ${host}, subset: ${subset}}, weight: ${weight}}`

      before(async () => {
        for (const name of Object.keys(ports) as (keyof typeof ports)[]) ports[name] = await freePort()
        await Promise.all([v1.start(), v2.start()])
        tcp = await tcpBackend('tcp-workload')
        service.write(
          'services.yaml',
          `apiVersion: networking.mesh.io/v1alpha3
kind: ServiceEntry
metadata: {name: reviews, namespace: shop}
spec:
  hosts: [${host}]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: ${ports.http}, name: http, protocol: HTTP}]
  endpoints:
  - {address: 127.0.0.1, ports: {http: ${v1.port}}, labels: {version: v1}}
  - {address: 127.0.0.1, ports: {http: ${v2.port}}, labels: {version: v2}}
---
apiVersion: networking.mesh.io/v1alpha3
kind: ServiceEntry
metadata: {name: tcp, namespace: shop}
spec:
  hosts: [tcp.shop.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: ${ports.tcp}, name: tcp, protocol: TCP}]
  endpoints: [{address: 127.0.0.1, ports: {tcp: ${tcp.port}}}]
---
apiVersion: networking.mesh.io/v1alpha3
kind: ServiceEntry
metadata: {name: behind-sidecar, namespace: shop}
spec:
  hosts: [behind.shop.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: ${ports.http}, name: http, protocol: HTTP}]
  endpoints: [{address: 127.0.0.2, ports: {http: ${ports.inbound}}, labels: {app: behind}}]
---
apiVersion: networking.mesh.io/v1alpha3
kind: DestinationRule
metadata: {name: reviews, namespace: shop}
spec:
  host: ${host}
  subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]
---
apiVersion: networking.mesh.io/v1alpha3
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  selector: {app: edge}
  servers:
  - {port: {number: ${ports.gateway}, name: http, protocol: HTTP}, hosts: ['*']}
  - {port: {number: ${ports.tcpGateway}, name: tcp, protocol: TCP}, hosts: ['*']}
---
apiVersion: networking.mesh.io/v1alpha3
kind: Sidecar
metadata: {name: server, namespace: shop}
spec:
  workloadSelector: {labels: {app: behind}}
  ingress: [{port: {number: ${ports.inbound}, protocol: HTTP, name: http}, bind: 127.0.0.2, captureMode: NONE, defaultEndpoint: '127.0.0.1:${v1.port}'}]
  egress: [{hosts: ['./*']}]
---
apiVersion: networking.mesh.io/v1alpha3
kind: Sidecar
metadata: {name: client, namespace: shop}
spec:
  workloadSelector: {labels: {app: client}}
  egress:
  - {port: {number: ${ports.http}, protocol: HTTP, name: http}, bind: 127.0.0.3, captureMode: NONE, hosts: ['./*']}
  - {port: {number: ${ports.tcp}, protocol: TCP, name: tcp}, bind: 127.0.0.3, captureMode: NONE, hosts: ['./tcp.shop.svc.cluster.local']}
`,
        )
        service.write('routes.yaml', routes(`  - route: [${to('v1')}]`))
        await service.start()
        const envoy = (type: string, address: string, name: string) =>
          new Envoy({
            binary,
            delta,
            grpcPort: service.grpcPort,
            nodeId: `${type}~${address}~${name}.shop~shop.svc.cluster.local`,
            metadata: {
              NAMESPACE: 'shop',
              LABELS: { app: name },
              MESH_VERSION: '1.9.0',
              ...(type === 'sidecar' ? { INTERCEPTION_MODE: 'NONE' } : {}),
            },
          })
        gateway = envoy('router', '127.0.0.4', 'edge')
        server = envoy('sidecar', '127.0.0.2', 'behind')
        client = envoy('sidecar', '127.0.0.3', 'client')
        await Promise.all(proxies().map((proxy) => proxy.start()))
        await until('the gateway to route', async () => (await call('127.0.0.1', ports.gateway, '/', { host })).status === 200)
      })

      afterEach(async () => {
        expect(await service.rejections()).to.deep.equal([])
        for (const proxy of proxies()) expect(await proxy.rejected()).to.equal(0)
      })

      after(async () => {
        await Promise.all([...proxies().map((proxy) => proxy.dispose()), service.dispose(), v1.stop(), v2.stop(), tcp.stop()])
      })

      const viaGateway = (path: string, headers: Record<string, string> = {}) => call('127.0.0.1', ports.gateway, path, { host, headers })
      /** Replaces the routes and waits until the gateway applies them. */
      const route = async (http: string, taken: () => Promise<boolean>) => {
        service.write('routes.yaml', routes(http))
        await until('the new routes to be taken', taken)
      }

      it('routes HTTP through the gateway to the subset that the matching route names', async () => {
        await route(
          `  - match: [{headers: {end-user: {exact: jason}}}]\n    route: [${to('v2')}]\n  - route: [${to('v1')}]`,
          async () => (await viaGateway('/', { 'end-user': 'jason' })).body === 'v2',
        )
        expect((await viaGateway('/')).body).to.equal('v1')
        expect((await viaGateway('/', { 'end-user': 'somebody' })).body).to.equal('v1')
      })

      it('routes TCP through the gateway', async () => {
        expect(await readAll('127.0.0.1', ports.tcpGateway)).to.equal('tcp-workload')
      })

      it('answers 404 if no route or no host matches', async () => {
        await route(`  - match: [{uri: {prefix: /known}}]\n    route: [${to('v1')}]`, async () => (await viaGateway('/unknown')).status === 404)
        expect((await viaGateway('/known/page')).body).to.equal('v1')
        expect((await call('127.0.0.1', ports.gateway, '/known', { host: 'other.example.com' })).status).to.equal(404)
      })

      it('splits requests between subsets by weight', async () => {
        await route(`  - route: [${to('v1', 80)}, ${to('v2', 20)}]`, async () => (await viaGateway('/')).body === 'v2')
        const answers = await Promise.all(Array.from({ length: 300 }, () => viaGateway('/')))
        const share = answers.filter((answer) => answer.body === 'v2').length / answers.length
        expect(share).to.be.within(0.1, 0.32)
      })

      it('retries, redirects, rewrites, mirrors, injects faults and changes headers', async () => {
        await route(
          `  - match: [{uri: {prefix: /retry}}]
    route: [${to('v1')}]
    retries: {attempts: 3, retryOn: '503', perTryTimeout: 2s}
  - match: [{uri: {exact: /old}}]
    redirect: {uri: /new, authority: elsewhere.example.com, redirectCode: 302}
  - match: [{uri: {prefix: /rewrite}}]
    rewrite: {uri: /rewritten}
    route: [${to('v1')}]
  - match: [{uri: {prefix: /mirror}}]
    route: [${to('v1')}]
    mirror: {host: ${host}, subset: v2}
    mirrorPercentage: {value: 100}
  - match: [{uri: {prefix: /fault}}]
    fault: {abort: {httpStatus: 418, percentage: {value: 100}}}
    route: [${to('v1')}]
  - match: [{uri: {prefix: /cors}}]
    corsPolicy: {allowOrigins: [{exact: 'https://shop.example.com'}], allowMethods: [GET], maxAge: 60s}
    headers: {request: {set: {x-by: mesh}}, response: {add: {x-out: mesh}}}
    route: [${to('v1')}]
  - route: [${to('v2')}]`,
          async () => (await viaGateway('/fault')).status === 418,
        )
        v1.failures.push(503, 503)
        expect((await viaGateway('/retry')).status).to.equal(200)
        const redirect = await viaGateway('/old')
        expect([redirect.status, redirect.headers.location]).to.deep.equal([302, 'http://elsewhere.example.com/new'])
        await viaGateway('/rewrite/page')
        expect(v1.seen.at(-1)?.path).to.equal('/rewritten/page')
        await viaGateway('/mirror')
        await until('the mirrored request', () => v2.seen.some((seen) => seen.path === '/mirror'))
        expect((await viaGateway('/fault')).status).to.equal(418)
        const cors = await viaGateway('/cors', { origin: 'https://shop.example.com' })
        expect([cors.headers['access-control-allow-origin'], cors.headers['x-out']]).to.deep.equal(['https://shop.example.com', 'mesh'])
        expect(v1.seen.at(-1)?.headers['x-by']).to.equal('mesh')
      })

      it('carries HTTP and TCP through a pair of sidecars', async () => {
        const answer = await call('127.0.0.3', ports.http, '/pair', { host: 'behind.shop.svc.cluster.local' })
        expect([answer.status, answer.body]).to.deep.equal([200, 'v1'])
        expect(v1.seen.at(-1)?.headers['x-envoy-decorator-operation'] ?? v1.seen.at(-1)?.path).to.be.a('string')
        expect(await server.stat('.downstream_rq_2xx')).to.be.greaterThan(0)
        expect((await call('127.0.0.3', ports.http, '/', { host: 'behind' })).status).to.equal(200)
        expect(await readAll('127.0.0.3', ports.tcp)).to.equal('tcp-workload')
      })

      it(`receives a changed virtual host ${version === '1.40' && delta ? 'over VHDS' : 'within its route configuration'}`, async () => {
        // Listener and route configuration have the name of the bind address.
        const updates = async () => [
          await client.stat(`.rds.127.0.0.3_${ports.http}.update_success`),
          await client.stat(`.rds.vhds.127.0.0.3_${ports.http}.update_success`),
        ]
        const viaSidecar = (name = host) => call('127.0.0.3', ports.http, '/', { host: name })
        await route(`  - route: [${to('v1')}]`, async () => (await viaSidecar()).body === 'v1')
        const [routesBefore = 0, hostsBefore = 0] = await updates()
        await route(`  - route: [${to('v2')}]`, async () => (await viaSidecar()).body === 'v2')
        const [routesAfter = 0, hostsAfter = 0] = await updates()
        const [routesSent, hostsSent] = version === '1.40' && delta ? [0, 1] : [1, 0]
        expect([routesAfter - routesBefore, hostsAfter - hostsBefore]).to.deep.equal([routesSent, hostsSent])
        const dump = JSON.stringify(await service.debug('config_dump?proxyID=client.shop'))
        expect(dump).to.match(new RegExp(`"name":"([^"]*/)?${host}:${ports.http}"`))
        // A withdrawn host is unknown, and is known again when it is added again.
        const entry = `apiVersion: networking.mesh.io/v1alpha3\nkind: ServiceEntry\nmetadata: {name: late, namespace: shop}\nspec: {hosts: [late.example.com], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: ${ports.http}, name: http, protocol: HTTP}], endpoints: [{address: 127.0.0.1, ports: {http: ${v1.port}}}]}\n`
        for (let time = 0; time < 2; time++) {
          service.write('late.yaml', entry)
          await until('the host to be known', async () => (await viaSidecar('late.example.com')).body === 'v1')
          service.remove('late.yaml')
          await until('the host to be gone', async () => (await viaSidecar('late.example.com').catch(() => ({ body: '' }))).body !== 'v1')
        }
      })

      it('changes configuration under constant traffic without a failed request', async () => {
        await route(`  - route: [${to('v1')}]`, async () => (await viaGateway('/')).body === 'v1')
        const failures: string[] = []
        const bodies = new Set<string>()
        let calls = 0
        let done = false
        const load = Array.from({ length: 4 }, async () => {
          while (!done) {
            const answer = await viaGateway('/load').catch((error: Error) => ({ status: 0, body: error.message }))
            calls++
            bodies.add(answer.body)
            if (answer.status !== 200) failures.push(`${answer.status} ${answer.body}`)
          }
        })
        for (const round of [1, 2, 3]) {
          // At the same time a new subset is added, the route changes to it, and the old subset is removed.
          service.write(
            'extra.yaml',
            `apiVersion: networking.mesh.io/v1alpha3\nkind: DestinationRule\nmetadata: {name: extra, namespace: shop}\nspec: {host: ${host}, subsets: [{name: round${round}, labels: {version: v${(round % 2) + 1}}}]}\n`,
          )
          service.write('routes.yaml', routes(`  - route: [${to(`round${round}`)}]`))
          await until('the new subset to be used', () => bodies.has(`v${(round % 2) + 1}`))
          bodies.clear()
          const seen = calls
          await until('more calls', () => calls > seen + 200)
        }
        done = true
        await Promise.all(load)
        expect(failures).to.deep.equal([])
        service.remove('extra.yaml')
      })

      it('routes after a restart of Envoy, during a crash of the control plane, and applies changes made meanwhile', async () => {
        await route(`  - route: [${to('v1')}]`, async () => (await viaGateway('/')).body === 'v1')
        await gateway.stop()
        await gateway.start()
        await until('the gateway to route again', async () => (await viaGateway('/')).status === 200)
        await service.stop('SIGKILL')
        expect((await viaGateway('/')).body, 'without a control plane').to.equal('v1')
        service.write('routes.yaml', routes(`  - route: [${to('v2')}]`))
        await service.start()
        await until('the change made meanwhile to arrive', async () => (await viaGateway('/')).body === 'v2')
      })
    })
  }
}
