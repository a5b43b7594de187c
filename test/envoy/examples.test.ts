/**
 * Documents in the style of the reference's users, for every use of ServiceEntry, WorkloadEntry, WorkloadGroup, DestinationRule and Sidecar:
 * discovery and the proxies accept them, and they have their documented effect.
 */
import { createServer, request, type Server } from 'node:http'
import { join } from 'node:path'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { call, HttpBackend, readAll, tcpBackend } from '../harness/backend.ts'
import { Envoy, envoyBinaries } from '../harness/envoy.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const object = (kind: string, name: string, spec: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: shop}\nspec: ${spec}\n`

/** Documents that are checked for acceptance only, without a server behind them. */
const accepted = [
  // External hosts over TLS, with resolution DNS and NONE, and wildcard hosts.
  object(
    'ServiceEntry',
    'payments',
    '{hosts: [api.pay.example, api.cards.example], location: MESH_EXTERNAL, ports: [{number: 443, name: https, protocol: TLS}], resolution: DNS}',
  ),
  object(
    'ServiceEntry',
    'maps',
    '{hosts: [maps.example, "*.maps.example"], location: MESH_EXTERNAL, ports: [{number: 443, name: https, protocol: TLS}], resolution: NONE}',
  ),
  object(
    'VirtualService',
    'maps',
    '{hosts: [maps.example, "*.maps.example"], tls: [{match: [{sniHosts: [maps.example, "*.maps.example"]}], route: [{destination: {host: wall.shop.svc.cluster.local}}]}]}',
  ),
  object(
    'ServiceEntry',
    'wild',
    '{hosts: ["*.news.example"], location: MESH_EXTERNAL, ports: [{number: 80, name: http, protocol: HTTP}], resolution: NONE}',
  ),
  object(
    'ServiceEntry',
    'feeds',
    '{hosts: [feeds.example], exportTo: ["."], ports: [{number: 80, name: http, protocol: HTTP}], resolution: DNS, endpoints: [{address: eu.feeds.example, ports: {http: 8080}, locality: eu/west, weight: 2}, {address: us.feeds.example, ports: {http: 9080}}]}',
  ),
  // A database with an address range, over mutual TLS with certificate files of the user.
  object(
    'ServiceEntry',
    'store',
    '{hosts: [store.example], addresses: [198.51.100.0/24], ports: [{number: 27018, name: mongo, protocol: MONGO}], location: MESH_INTERNAL, resolution: STATIC, endpoints: [{address: 198.51.100.2}, {address: 198.51.100.3}]}',
  ),
  object('DestinationRule', 'store', '{host: store.example, trafficPolicy: {tls: {mode: DISABLE}}}'),
  object(
    'ServiceEntry',
    'named',
    '{hosts: [named.example], location: MESH_INTERNAL, ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, endpoints: [{address: 198.51.100.4, network: far, locality: eu/west/a, weight: 3}], subjectAltNames: ["spiffe://cluster.local/ns/shop/sa/named"]}',
  ),
  // Single WorkloadEntries, one without an address in another network, and a WorkloadGroup.
  object('WorkloadEntry', 'vm-1', '{address: 198.51.100.10, serviceAccount: ledger, labels: {app: ledger, instance-id: vm1}}'),
  object('WorkloadEntry', 'vm-2', '{network: far, serviceAccount: ledger, labels: {app: ledger, instance-id: vm2}}'),
  object(
    'ServiceEntry',
    'ledger',
    '{hosts: [ledger.shop.svc.cluster.local], location: MESH_INTERNAL, ports: [{number: 80, name: http, protocol: HTTP, targetPort: 7070}], resolution: STATIC, workloadSelector: {labels: {app: ledger}}}',
  ),
  object(
    'WorkloadGroup',
    'ledger',
    '{metadata: {labels: {app: ledger, version: "1"}}, template: {ports: {http: 7070}, serviceAccount: ledger, network: far}, probe: {initialDelaySeconds: 5, timeoutSeconds: 3, periodSeconds: 4, successThreshold: 3, failureThreshold: 3, httpGet: {path: /ready, host: 127.0.0.1, port: 3100, scheme: HTTPS, httpHeaders: [{name: Lit-Header, value: Im-The-Best}]}}}',
  ),
  // Connection pools, outlier detection, locality settings and TLS to external hosts.
  object(
    'DestinationRule',
    'ledger',
    '{host: ledger.shop.svc.cluster.local, exportTo: ["."], workloadSelector: {matchLabels: {app: client}}, trafficPolicy: {connectionPool: {tcp: {maxConnections: 100, connectTimeout: 30ms, tcpKeepalive: {time: 7200s, interval: 75s}}, http: {http2MaxRequests: 1000, maxRequestsPerConnection: 10}}, outlierDetection: {consecutive5xxErrors: 7, interval: 5m, baseEjectionTime: 15m}, loadBalancer: {simple: LEAST_REQUEST, localityLbSetting: {enabled: true, distribute: [{from: "eu/*", to: {"eu/*": 80, "us/*": 20}}]}}}}',
  ),
  object(
    'DestinationRule',
    'named',
    '{host: named.example, trafficPolicy: {loadBalancer: {consistentHash: {httpCookie: {name: user, ttl: 0s}, maglev: {tableSize: 65537}}, localityLbSetting: {failover: [{from: eu, to: us}]}}, outlierDetection: {}, portLevelSettings: [{port: {number: 80}, loadBalancer: {simple: ROUND_ROBIN}}]}, subsets: [{name: v3, labels: {version: v3}, trafficPolicy: {portLevelSettings: [{port: {number: 80}, loadBalancer: {consistentHash: {useSourceIp: true, ringHash: {minimumRingSize: 2048}}}}]}}]}',
  ),
  object(
    'DestinationRule',
    'payments',
    '{host: "*.pay.example", trafficPolicy: {tls: {mode: SIMPLE, sni: api.pay.example, subjectAltNames: [api.pay.example], insecureSkipVerify: true}}}',
  ),
]

for (const { version, path: binary } of envoyBinaries())
  describe(`Envoy ${version} and the documents of users`, () => {
    const service = new Service()
    const one = new HttpBackend('one')
    const two = new HttpBackend('two')
    const socket = join(service.dir, 'backend.sock')
    const egress = join(service.dir, 'egress.sock')
    let behind: Server
    let bytes: Awaited<ReturnType<typeof tcpBackend>>
    const ports = { http: 0, inbound: 0, tcp: 0 }
    const envoys: Envoy[] = []

    before(async () => {
      for (const name of Object.keys(ports) as (keyof typeof ports)[]) ports[name] = await freePort()
      await Promise.all([one.start(), two.start()])
      bytes = await tcpBackend('bytes')
      behind = createServer((_, response) => response.end('behind a socket'))
      await new Promise<void>((resolve) => behind.listen(socket, resolve))
      const entry = (name: string, endpoints: string) =>
        object(
          'ServiceEntry',
          name,
          `{hosts: [${name}.shop.svc.cluster.local], resolution: STATIC, ports: [{number: ${ports.http}, name: http}], endpoints: [${endpoints}]}`,
        )
      const live = [
        entry('pipe', `{address: "unix://${socket}"}`),
        entry(
          'pair',
          `{address: 127.0.0.1, ports: {http: ${one.port}}, labels: {version: v1}}, {address: 127.0.0.1, ports: {http: ${two.port}}, labels: {version: v2}}`,
        ),
        object(
          'DestinationRule',
          'pair',
          `{host: pair, trafficPolicy: {loadBalancer: {consistentHash: {httpHeaderName: x-user}}}, subsets: [{name: v2, labels: {version: v2}, trafficPolicy: {loadBalancer: {simple: RANDOM}}}]}`,
        ),
        object(
          'VirtualService',
          'second',
          `{hosts: [pair, second.example], http: [{match: [{uri: {prefix: /second}}], route: [{destination: {host: pair, subset: v2}}]}, {route: [{destination: {host: pair}}]}]}`,
        ),
        entry('server', `{address: 127.0.5.1, ports: {http: ${ports.inbound}}}`),
        entry('closed', `{address: 127.0.0.1, ports: {http: ${one.port}}}`),
        object(
          'ServiceEntry',
          'bytes',
          `{hosts: [bytes.example], addresses: [240.2.2.2], resolution: STATIC, ports: [{number: ${ports.tcp}, name: tcp}], endpoints: [{address: 127.0.0.1, ports: {tcp: ${bytes.port}}}]}`,
        ),
        object(
          'Sidecar',
          'server',
          `{workloadSelector: {labels: {app: server}}, ingress: [{port: {number: ${ports.inbound}, protocol: HTTP, name: http}, bind: 127.0.5.1, captureMode: NONE, defaultEndpoint: "unix://${socket}", connectionPool: {http: {http1MaxPendingRequests: 10}}}], inboundConnectionPool: {tcp: {maxConnections: 50}}, egress: [{hosts: ["~/*"]}]}`,
        ),
        object(
          'Sidecar',
          'client',
          `{workloadSelector: {labels: {app: client}}, outboundTrafficPolicy: {mode: REGISTRY_ONLY}, egress: [{port: {number: 0, protocol: HTTP, name: all}, bind: "unix://${egress}", hosts: ["./pipe.shop.svc.cluster.local"]}, {bind: 127.0.5.2, captureMode: NONE, hosts: ["./*", "*/wall.shop.svc.cluster.local", "~./closed.shop.svc.cluster.local"]}]}`,
        ),
        object('Sidecar', 'default', '{egress: [{hosts: ["./*", "mesh-system/*"]}]}'),
      ]
      service.write('accepted.yaml', accepted.join('---\n'))
      service.write('live.yaml', live.join('---\n'))
      await service.start()
      for (const [app, address] of Object.entries({ server: '127.0.5.1', client: '127.0.5.2' })) {
        const metadata = { NAMESPACE: 'shop', LABELS: { app }, INTERCEPTION_MODE: 'NONE' }
        envoys.push(
          new Envoy({
            binary,
            delta: version === '1.40',
            grpcPort: service.grpcPort,
            nodeId: `sidecar~${address}~${app}.shop~shop.svc.cluster.local`,
            metadata,
          }),
        )
      }
      await Promise.all(envoys.map((envoy) => envoy.start()))
      await until('the client to call', async () => (await ask('pipe')).status === 200)
    })

    after(async () => {
      await Promise.all([...envoys.map((envoy) => envoy.dispose()), service.dispose(), one.stop(), two.stop(), bytes.stop()])
      behind.close()
    })

    const ask = (name: string, headers: Record<string, string> = {}, path = '/') =>
      call('127.0.5.2', ports.http, path, { host: name.includes('.') ? name : `${name}.shop.svc.cluster.local`, headers })

    it('accepts all of them without a rejection', async () => {
      expect(await service.rejections()).to.deep.equal([])
      // A WorkloadGroup and the selector of a DestinationRule have no effect, which is reported. Nothing else has a validation message.
      service.output.lacks(/validation\t(?!WorkloadGroup|DestinationRule\/shop\/ledger .*spec\.workloadSelector|2 objects )/)
      expect(await Promise.all(envoys.map((envoy) => envoy.rejected()))).to.deep.equal([0, 0])
    })

    it('reaches workloads at unix sockets, from a unix socket listener, and through a sidecar in front of one', async () => {
      expect((await ask('pipe')).body).to.equal('behind a socket')
      expect((await ask('server')).body).to.equal('behind a socket')
      expect((await ask('pipe.shop.svc.cluster.local.')).body).to.equal('behind a socket')
      const body = await new Promise<string>((resolve, reject) => {
        const asked = request({ socketPath: egress, path: '/', headers: { host: `pipe.shop.svc.cluster.local:${ports.http}` } }, (response) => {
          let text = ''
          response.on('data', (part) => (text += part)).on('end', () => resolve(text))
        })
        asked.on('error', reject).end()
      })
      expect(body).to.equal('behind a socket')
    })

    it('routes each user to the same workload with consistent hashing, and routes a host that only a VirtualService names', async () => {
      const users = Array.from({ length: 40 }, (_, index) => `user-${index}`)
      const homes = async () => Promise.all(users.map(async (user) => (await ask('pair', { 'x-user': user })).body))
      const [first, again] = [await homes(), await homes()]
      expect(again).to.deep.equal(first)
      expect(new Set(first)).to.deep.equal(new Set(['one', 'two']))
      expect((await ask('second.example', {}, '/second/page')).body).to.equal('two')
    })

    it('forwards TCP, and answers 502 for excluded and unknown hosts', async () => {
      expect(await readAll('127.0.5.2', ports.tcp)).to.equal('bytes')
      for (const host of ['closed', 'nobody.example']) expect((await ask(host)).status).to.equal(502)
    })
  })
