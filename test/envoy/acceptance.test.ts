import { execFileSync } from 'node:child_process'
import { request as httpsRequest } from 'node:https'
import { join } from 'node:path'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { call, HttpBackend } from '../harness/backend.ts'
import { Envoy, envoyBinaries } from '../harness/envoy.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

for (const { version, path: binary } of envoyBinaries()) {
  describe(`Envoy ${version} with a configuration of every kind`, () => {
    const service = new Service({ env: { PILOT_MOCK_SERVICES: '30', PILOT_MOCK_PROXIES_PER_SERVICE: '1' } })
    const backend = new HttpBackend('secure')
    const proxies: Envoy[] = []
    const ports = { tls: 0, plain: 0 }

    before(async () => {
      ports.tls = await freePort()
      ports.plain = await freePort()
      await backend.start()
      const file = (name: string) => join(service.dir, name)
      execFileSync(
        'openssl',
        [
          'req',
          '-x509',
          '-newkey',
          'ec',
          '-pkeyopt',
          'ec_paramgen_curve:prime256v1',
          '-nodes',
          '-keyout',
          file('key.pem'),
          '-out',
          file('cert.pem'),
          '-days',
          '2',
          '-subj',
          '/CN=shop.example.com',
          '-addext',
          'subjectAltName=DNS:shop.example.com',
        ],
        { stdio: 'ignore' },
      )
      service.write(
        'mesh-config',
        'accessLogFile: /dev/null\naccessLogEncoding: JSON\nlocalityLbSetting: {enabled: true}\ntcpKeepalive: {time: 10s, interval: 5s}\n',
      )
      service.write(
        'everything.yaml',
        `apiVersion: networking.istio.io/v1beta1
kind: ServiceEntry
metadata: {name: shop, namespace: mock-0}
spec:
  hosts: [shop.mock-0.svc.cluster.local]
  addresses: [240.0.9.9]
  location: MESH_INTERNAL
  resolution: STATIC
  ports:
  - {number: 8000, name: http, protocol: HTTP}
  - {number: 8001, name: unknown}
  - {number: 8002, name: mongo, protocol: MONGO}
  - {number: 8003, name: tls, protocol: TLS}
  - {number: 8004, name: tcp, protocol: TCP}
  - {number: 8005, name: grpc-web, protocol: GRPC-Web}
  endpoints:
  - {address: 127.0.0.1, ports: {http: ${backend.port}}, labels: {version: v1}, locality: r1/z1/s1, weight: 3}
  - {address: 127.0.0.7, labels: {version: v2}, locality: r2/z1}
---
apiVersion: networking.istio.io/v1alpha3
kind: ServiceEntry
metadata: {name: shared, namespace: mock-0}
spec:
  hosts: [shared.example.com, '*.wild.example.com']
  resolution: NONE
  ports: [{number: 443, name: tls, protocol: TLS}, {number: 80, name: http, protocol: HTTP}, {number: 7000, name: sniffed}]
---
apiVersion: networking.istio.io/v1alpha3
kind: ServiceEntry
metadata: {name: dns, namespace: mock-0}
spec:
  hosts: [dns.example.com]
  resolution: DNS
  ports: [{number: 7000, name: http, protocol: HTTP}, {number: 7443, name: https, protocol: HTTPS}]
  endpoints: [{address: localhost, ports: {http: 1}}]
---
apiVersion: networking.istio.io/v1alpha3
kind: DestinationRule
metadata: {name: shop, namespace: mock-0}
spec:
  host: shop
  trafficPolicy:
    loadBalancer: {consistentHash: {httpCookie: {name: user, ttl: 60s}}}
    connectionPool: {tcp: {maxConnections: 10, connectTimeout: 2s, tcpKeepalive: {probes: 3}}, http: {http1MaxPendingRequests: 5, maxRequestsPerConnection: 7, idleTimeout: 30s}}
    outlierDetection: {consecutive5xxErrors: 3, consecutiveGatewayErrors: 0, interval: 5s, baseEjectionTime: 400s, maxEjectionPercent: 50, minHealthPercent: 20}
    portLevelSettings: [{port: {number: 8004}, loadBalancer: {simple: LEAST_REQUEST}}]
  subsets:
  - {name: v1, labels: {version: v1}, trafficPolicy: {loadBalancer: {simple: RANDOM}}}
  - {name: v2, labels: {version: v2}, trafficPolicy: {connectionPool: {http: {h2UpgradePolicy: UPGRADE}}}}
---
apiVersion: networking.istio.io/v1alpha3
kind: VirtualService
metadata: {name: shop, namespace: mock-0}
spec:
  hosts: [shop, shop.example.com]
  gateways: [mesh, secure]
  http:
  - match: [{headers: {x: {regex: 'a.*b'}}, withoutHeaders: {'y': {}}, queryParams: {q: {exact: '1'}}, method: {exact: GET}, uri: {regex: '/a/.*'}, sourceLabels: {app: mock-0}}]
    timeout: 3s
    retries: {attempts: 2, retryRemoteLocalities: true, retryOn: 'gateway-error,reset,503'}
    route: [{destination: {host: shop, subset: v1, port: {number: 8000}}}]
  - match: [{uri: {prefix: /direct}}]
    directResponse: {status: 503, body: {string: none}}
  - route: [{destination: {host: shop, subset: v1, port: {number: 8000}}, weight: 50, headers: {request: {add: {a: b}}}}, {destination: {host: shop, port: {number: 8000}, subset: v1}, weight: 50}]
  tcp:
  - match: [{port: 8004}]
    route: [{destination: {host: shop, subset: v1, port: {number: 8004}}, weight: 10}, {destination: {host: shop, subset: v2, port: {number: 8004}}, weight: 90}]
  tls:
  - match: [{sniHosts: [shop.example.com], port: 8003}]
    route: [{destination: {host: shop, port: {number: 8003}}}]
---
apiVersion: networking.istio.io/v1alpha3
kind: Gateway
metadata: {name: secure, namespace: mock-0}
spec:
  selector: {app: edge}
  servers:
  - {port: {number: ${ports.tls}, name: https, protocol: HTTPS}, hosts: [shop.example.com], tls: {mode: SIMPLE, serverCertificate: ${file('cert.pem')}, privateKey: ${file('key.pem')}, minProtocolVersion: TLSV1_2, cipherSuites: [ECDHE-ECDSA-AES128-GCM-SHA256, NOT-A-CIPHER]}}
  - {port: {number: ${ports.plain}, name: http, protocol: HTTP}, hosts: [shop.example.com], tls: {httpsRedirect: true}}
---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: lua, namespace: mesh-system}
spec:
  configPatches:
  - applyTo: HTTP_FILTER
    match: {context: GATEWAY, listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager, subFilter: {name: envoy.filters.http.router}}}}}
    patch:
      operation: INSERT_BEFORE
      value:
        name: envoy.filters.http.lua
        typed_config:
          '@type': type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua
          default_source_code: {inline_string: "function envoy_on_response(h) h:headers():add('x-lua', 'yes') end"}
  - applyTo: EXTENSION_CONFIG
    patch:
      operation: ADD
      value:
        name: dynamic-lua
        typed_config:
          '@type': type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua
          default_source_code: {inline_string: "function envoy_on_response(h) h:headers():add('x-dynamic', 'yes') end"}
  - applyTo: HTTP_FILTER
    match: {context: GATEWAY, listener: {filterChain: {filter: {name: envoy.http_connection_manager, subFilter: {name: envoy.router}}}}}
    patch:
      operation: INSERT_BEFORE
      value:
        name: dynamic-lua
        config_discovery: {config_source: {ads: {}, resource_api_version: V3}, type_urls: [type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua]}
  - applyTo: NETWORK_FILTER
    match: {context: GATEWAY, listener: {filterChain: {filter: {name: envoy.filters.network.http_connection_manager}}}}
    patch:
      operation: MERGE
      value:
        typed_config:
          '@type': type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          server_name: merged
  - applyTo: VIRTUAL_HOST
    match: {context: GATEWAY}
    patch: {operation: MERGE, value: {response_headers_to_add: [{header: {key: x-host, value: patched}}]}}
  - applyTo: HTTP_ROUTE
    match: {context: GATEWAY, routeConfiguration: {vhost: {route: {action: ROUTE}}}}
    patch: {operation: MERGE, value: {response_headers_to_add: [{header: {key: x-route, value: patched}}]}}
  - applyTo: CLUSTER
    match: {context: SIDECAR_OUTBOUND, cluster: {service: shop.mock-0.svc.cluster.local}}
    patch: {operation: MERGE, value: {per_connection_buffer_limit_bytes: 12345}}
  - applyTo: LISTENER
    match: {context: SIDECAR_INBOUND, listener: {name: virtualInbound}}
    patch: {operation: MERGE, value: {per_connection_buffer_limit_bytes: 54321}}
  - applyTo: ROUTE_CONFIGURATION
    match: {context: SIDECAR_OUTBOUND, routeConfiguration: {name: '80'}}
    patch: {operation: MERGE, value: {max_direct_response_body_size_bytes: 99}}
  - applyTo: CLUSTER
    match: {context: SIDECAR_OUTBOUND}
    patch: {operation: ADD, value: {name: added, type: STATIC, connect_timeout: 1s, load_assignment: {cluster_name: added}}}
  - applyTo: HTTP_FILTER
    match: {context: ANY}
    patch: {operation: INSERT_FIRST, value: {name: broken, typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua, default_source_code: 7}}}
`,
      )
      await service.start()
      const start = async (type: string, address: string, name: string, metadata: object = {}) => {
        const proxy = new Envoy({
          binary,
          grpcPort: service.grpcPort,
          nodeId: `${type}~${address}~${name}.mock-0~mock-0.svc.cluster.local`,
          metadata: { NAMESPACE: 'mock-0', LABELS: { app: name }, ...metadata },
        })
        proxies.push(proxy)
        await proxy.start()
        return proxy
      }
      await start('sidecar', '10.64.0.0', 'mock-0', { DNS_CAPTURE: 'true', DNS_AUTO_ALLOCATE: 'true' })
      await start('router', '127.0.0.9', 'edge')
    })

    after(async () => {
      await Promise.all([...proxies.map((proxy) => proxy.dispose()), service.dispose(), backend.stop()])
    })

    it('accepts all configuration of a full sidecar, including redirected listeners and EnvoyFilters', async () => {
      const [sidecar] = proxies as [Envoy]
      await until('the inbound cluster of the mock workload', async () => (await sidecar.admin('/clusters')).includes('inbound|8080||'))
      const listeners = await sidecar.admin('/listeners')
      for (const name of ['virtualInbound', 'virtualOutbound', '0.0.0.0_80', '240.0.9.9_8004']) expect(listeners).to.contain(name)
      expect(listeners, 'the address that is given to a service without').to.match(/^240\.240\.\d+\.\d+_7443::/m)
      const dump = await sidecar.admin('/config_dump')
      expect(dump)
        .to.contain('"per_connection_buffer_limit_bytes": 12345')
        .and.to.contain('"per_connection_buffer_limit_bytes": 54321')
        .and.to.contain('"name": "added"')
        .and.to.contain('"max_direct_response_body_size_bytes": 99')
      expect(await service.rejections()).to.deep.equal([])
      for (const proxy of proxies) expect(await proxy.rejected()).to.equal(0)
    })

    it('terminates TLS with certificates from files, and applies patches of filters, virtual hosts and routes', async () => {
      const answer = await new Promise<{ status: number; headers: Record<string, unknown> }>((resolve, reject) => {
        const request = httpsRequest(
          {
            host: '127.0.0.1',
            port: ports.tls,
            path: '/',
            servername: 'shop.example.com',
            headers: { host: 'shop.example.com' },
            rejectUnauthorized: false,
            agent: false,
          },
          (response) => {
            response.resume()
            response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers }))
          },
        )
        request.on('error', reject)
        request.end()
      })
      expect([
        answer.status,
        answer.headers['x-lua'],
        answer.headers['x-dynamic'],
        answer.headers['x-host'],
        answer.headers['x-route'],
        answer.headers.server,
      ]).to.deep.equal([200, 'yes', 'yes', 'patched', 'patched', 'merged'])
      const redirect = await call('127.0.0.1', ports.plain, '/x', { host: 'shop.example.com' })
      expect([redirect.status, redirect.headers.location]).to.deep.equal([301, 'https://shop.example.com/x'])
    })

    it('reports an EnvoyFilter patch that cannot be applied with its object', async () => {
      const { faults } = await service.debug<{ faults: { resource: string; reason: string }[] }>('push_status')
      expect(faults.map((fault) => fault.resource)).to.contain('EnvoyFilter/mesh-system/lua')
      expect(faults.find((fault) => fault.resource === 'EnvoyFilter/mesh-system/lua')?.reason).to.contain('cannot decode')
    })
  })
}
