/** Servers of Gateways at a real Envoy: TLS modes, hosts, addresses, and isolation of incomplete servers (docs/resources.md, G2 to G7). */
import { createHash, X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setInterval } from 'node:timers/promises'
import { createServer as createTlsServer, type Server, connect as tlsConnect } from 'node:tls'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { call, exchange, HttpBackend, tcpBackend } from '../harness/backend.ts'
import { Envoy, envoysWith } from '../harness/envoy.ts'
import { type Pair, SiteCertificates } from '../harness/gateway-secrets.ts'
import { networkingDocument as document } from '../harness/mesh-document.ts'
import { revocationList } from '../harness/revocations.ts'
import { secureCall } from '../harness/secure-call.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

for (const { version, path: binary, delta } of envoysWith({ delta: true }, { delta: false })) {
  describe(`servers of Gateways, Envoy ${version}, ${delta ? 'delta' : 'state of the world'}`, () => {
    const service = new Service({ env: { PILOT_DEBOUNCE_AFTER: '10ms' } })
    const made = new SiteCertificates()
    const dir = mkdtempSync(join(tmpdir(), 'mesh-servers-'))
    const backend = new HttpBackend('app')
    let tcp: Awaited<ReturnType<typeof tcpBackend>>
    let spread: Awaited<ReturnType<typeof tcpBackend>>[] = []
    let passed: Server
    const echo = createServer((socket) => socket.on('error', () => undefined).pipe(socket))
    const [address, second] = ['127.0.0.23', '127.0.0.24']
    const ports = { http: 0, tls: 0, missing: 0, tcp: 0, bytes: 0, spread: 0, limited: 0, auto: 0, end: 0, echo: 0 }
    let root: Pair
    let clients: Pair
    let known: Pair
    let revoked: Pair
    let gateway: Envoy

    const file = (name: string, text: string): string => {
      writeFileSync(join(dir, name), text)
      return join(dir, name)
    }
    const files = (name: string, { chain, key }: Pair) =>
      `serverCertificate: ${file(`${name}.pem`, chain)}, privateKey: ${file(`${name}-key.pem`, key)}`
    const server = (port: number, name: string, protocol: string, hosts: string, tls = '', bind = address) =>
      `{port: {number: ${port}, name: ${name}, protocol: ${protocol}}, bind: ${bind}, hosts: [${hosts}]${tls ? `, tls: {${tls}}` : ''}}`
    const entry = (name: string, hosts: string, endpoint: string) =>
      document(
        'ServiceEntry',
        name,
        `{hosts: [${hosts}], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, name: http}, {number: 9000, name: tcp}], endpoints: [{address: 127.0.0.1, ${endpoint}}]}`,
      )
    const site = (host: string, options: Partial<Parameters<typeof secureCall>[2]> = {}, port = ports.tls) =>
      secureCall(address, port, { host, root, anyName: true, ...options }).then(({ status }) => status)

    before(async () => {
      for (const name of Object.keys(ports) as (keyof typeof ports)[]) ports[name] = await freePort()
      await backend.start()
      tcp = await tcpBackend('bytes', true)
      spread = [await tcpBackend('one', true), await tcpBackend('two', true)]
      await new Promise<void>((resolve) => echo.listen(ports.echo, '127.0.0.1', resolve))
      root = made.authority('sites')
      clients = made.authority('clients')
      const pair = made.issue('site.example', root)
      known = made.issue('known.example', clients)
      passed = createTlsServer({ cert: pair.chain, key: pair.key, ALPNProtocols: ['istio', 'h2', 'http/1.1'] }, (socket) => socket.end('passed'))
      await new Promise<void>((resolve) => passed.listen(ports.end, '127.0.0.1', resolve))
      const own = files('site', pair)
      const mutual = `${own}, caCertificates: ${file('clients.pem', clients.chain)}`
      revoked = made.issue('revoked.example', clients)
      const lists = file('crl.pem', revocationList(clients, [revoked.chain]))
      const hash = createHash('sha256').update(new X509Certificate(known.chain).raw).digest('hex')
      const servers = [
        server(ports.http, 'http', 'HTTP', "'*'"),
        server(ports.http, 'second', 'HTTP', 'second.example', '', second),
        server(ports.http, 'redirect', 'HTTP', 'moved.example', 'httpsRedirect: true'),
        server(ports.tls, 'simple', 'HTTPS', 'simple.example, Other.simple.example', `mode: SIMPLE, ${own}`),
        server(ports.tls, 'wild', 'HTTPS', "'./*.wild.example', 'elsewhere/*.away.example'", `mode: SIMPLE, ${own}`),
        server(ports.tls, 'mutual', 'HTTPS', 'mutual.example', `mode: MUTUAL, ${mutual}`),
        server(ports.tls, 'revoking', 'HTTPS', 'revoking.example', `mode: MUTUAL, ${mutual}, caCrl: ${lists}`),
        server(ports.tls, 'optional', 'HTTPS', 'optional.example', `mode: OPTIONAL_MUTUAL, ${mutual}`),
        server(ports.tls, 'named', 'HTTPS', 'named.example', `mode: MUTUAL, ${mutual}, subjectAltNames: [known.example]`),
        server(ports.tls, 'hashed', 'HTTPS', 'hashed.example', `mode: MUTUAL, ${mutual}, verifyCertificateHash: ['${hash}']`),
        server(ports.tls, 'old', 'HTTPS', 'old.example', `mode: SIMPLE, ${own}, maxProtocolVersion: TLSV1_2`),
        server(ports.tls, 'new', 'HTTPS', 'new.example', `mode: SIMPLE, ${own}, minProtocolVersion: TLSV1_3, cipherSuites: [NO-SUCH]`),
        server(ports.tls, 'through', 'TLS', 'through.example', 'mode: PASSTHROUGH'),
        server(ports.missing, 'mesh', 'HTTPS', 'mesh.example', 'mode: ISTIO_MUTUAL'),
        server(ports.missing, 'beside', 'HTTPS', 'beside.example', `mode: SIMPLE, ${own}`),
        server(ports.missing, 'credential', 'HTTPS', 'credential.example', 'mode: SIMPLE, credentialName: nowhere'),
        server(ports.tcp, 'tcp', 'TCP', "'*'"),
        server(ports.spread, 'spread', 'TCP', "'*'"),
        server(ports.limited, 'limited', 'TCP', "'*'"),
        server(ports.bytes, 'bytes', 'TLS', 'bytes.example', `mode: SIMPLE, ${own}`),
        server(ports.auto, 'auto', 'TLS', "'*.shop.svc.cluster.local'", 'mode: AUTO_PASSTHROUGH'),
      ]
      service.write(
        'mesh.yaml',
        [
          entry('app', 'app.shop.svc.cluster.local', `ports: {http: ${backend.port}, tcp: ${tcp.port}}`),
          entry('meshed', 'meshed.shop.svc.cluster.local, meshed.example', `ports: {http: ${ports.end}}, serviceAccount: meshed`),
          entry('plain', 'plain.shop.svc.cluster.local', `ports: {http: ${ports.end}}`),
          document(
            'ServiceEntry',
            'spread',
            `{hosts: [spread.shop.svc.cluster.local], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 9000, name: tcp}], endpoints: [${spread.map(({ port }) => `{address: 127.0.0.1, ports: {tcp: ${port}}}`)}]}`,
          ),
          document(
            'DestinationRule',
            'spread',
            '{host: spread, trafficPolicy: {loadBalancer: {consistentHash: {useSourceIp: true}}, connectionPool: {tcp: {idleTimeout: 5s}}}}',
          ),
          entry('limited', 'limited.shop.svc.cluster.local', `ports: {tcp: ${ports.echo}}`),
          document(
            'DestinationRule',
            'limited',
            '{host: limited, trafficPolicy: {proxyProtocol: {version: V1}, connectionPool: {tcp: {maxConnectionDuration: 5s}}}}',
          ),
          entry('any', "'*.shop.svc.cluster.local'", `ports: {http: ${ports.end}}, serviceAccount: any`),
          document('Gateway', 'edge', `{selector: {app: edge}, servers: [${servers.join()}]}`),
          document('VirtualService', 'app', `{hosts: ['*'], gateways: [edge], http: [{route: [{destination: {host: app, port: {number: 80}}}]}]}`),
          document(
            'VirtualService',
            'bytes',
            `{hosts: ['*'], gateways: [edge], tcp: [{match: [{port: ${ports.tcp}}, {port: ${ports.bytes}}], route: [{destination: {host: app, port: {number: 9000}}}]}, {match: [{port: ${ports.spread}}], route: [{destination: {host: spread}}]}, {match: [{port: ${ports.limited}}], route: [{destination: {host: limited, port: {number: 9000}}}]}], tls: [{match: [{sniHosts: ['*']}], route: [{destination: {host: meshed, port: {number: 80}}}]}]}`,
          ),
        ].join('---\n'),
      )
      await service.start()
      gateway = new Envoy({
        binary,
        delta,
        grpcPort: service.grpcPort,
        nodeId: `router~${address}~edge.shop~shop.svc.cluster.local`,
        metadata: { NAMESPACE: 'shop', LABELS: { app: 'edge' } },
      })
      await gateway.start()
    })
    after(async () => {
      expect(await service.rejections()).to.deep.equal([])
      expect(await gateway.rejected()).to.equal(0)
      await Promise.all([
        gateway.dispose(),
        service.dispose(),
        backend.stop(),
        tcp.stop(),
        ...spread.map((each) => each.stop()),
        new Promise((resolve) => passed.close(resolve)),
        new Promise((resolve) => echo.close(resolve)),
      ])
      made.dispose()
      rmSync(dir, { recursive: true })
    })

    it('without a certificate do not serve, and affect no other server', async () => {
      await service.output.says('the proxy has no certificate of the mesh')
      expect((await call(address, ports.http, '/')).status).to.equal(200)
      expect(await site('beside.example', {}, ports.missing)).to.equal(200)
      for (const host of ['mesh.example', 'credential.example']) expect(await site(host, {}, ports.missing), host).to.equal(0)
    })

    it('refuse client certificates in the revocation lists that they name', async () => {
      expect(await site('mutual.example', { client: revoked })).to.equal(200)
      expect(await site('revoking.example', { client: known })).to.equal(200)
      expect(await site('revoking.example', { client: revoked })).to.equal(0)
    })

    it('hash TCP connections by client address, and close idle ones, as a DestinationRule configures', async () => {
      const clients = Array.from({ length: 16 }, (_, index) => `127.0.0.${101 + index}`)
      const answers = () => Promise.all(clients.map((client) => exchange(address, ports.spread, 'hello', client)))
      const [first, again] = [await answers(), await answers()]
      expect(again).to.deep.equal(first)
      expect([...new Set(first)].sort()).to.deep.equal(['one', 'two'])
      expect(await exchange(address, ports.spread, ''), 'a client and a server that say nothing').to.equal('')
    })

    it('send a PROXY protocol header, and close active connections after their maximum duration, as a DestinationRule configures', async () => {
      const socket = connect(ports.limited, address)
      let received = ''
      socket.on('data', (bytes) => (received += bytes))
      const ended = new Promise<void>((resolve) => socket.on('close', () => resolve()).on('error', () => undefined))
      for await (const _ of setInterval(20)) {
        if (socket.destroyed || !socket.writable) break
        socket.write('.')
      }
      await ended
      expect(received).to.match(/^PROXY TCP4 127\.0\.0\.\d+ 127\.0\.0\.23 \d+ \d+\r\n\.+$/)
    })

    it('of one port on two bind addresses serve their own hosts only', async () => {
      expect((await call(second, ports.http, '/', { host: 'second.example' })).status).to.equal(200)
      expect((await call(second, ports.http, '/', { host: 'first.example' })).status).to.equal(404)
      expect((await call(address, ports.http, '/', { host: 'first.example' })).status).to.equal(200)
    })

    it('with httpsRedirect answer 301 to HTTPS', async () => {
      const { status, headers } = await call(address, ports.http, '/page', { host: 'moved.example' })
      expect([status, headers.location]).to.deep.equal([301, 'https://moved.example/page'])
    })

    it('serve their hosts only, case-insensitively and with any port', async () => {
      for (const host of ['simple.example', 'other.simple.example', 'a.wild.example', 'a.b.wild.example'])
        expect(await site(host), host).to.equal(200)
      expect(await site('simple.example', { requested: `SIMPLE.example:${ports.tls}` })).to.equal(200)
      expect(await site('a.wild.example', { requested: 'a.wild.example:1' })).to.equal(200)
      expect(await site('unknown.example')).to.equal(0)
      expect(await site('a.away.example'), 'only for VirtualServices of another namespace').to.equal(404)
    })

    it('verify client certificates by CA, name and hash as their TLS mode configures', async () => {
      const client = known
      const other = made.issue('other.example', clients)
      const stranger = made.issue('known.example', root)
      expect([
        await site('mutual.example'),
        await site('mutual.example', { client }),
        await site('mutual.example', { client: stranger }),
      ]).to.deep.equal([0, 200, 0])
      expect([await site('optional.example'), await site('optional.example', { client })]).to.deep.equal([200, 200])
      expect([await site('named.example', { client }), await site('named.example', { client: other })]).to.deep.equal([200, 0])
      expect([await site('hashed.example', { client }), await site('hashed.example', { client: other })]).to.deep.equal([200, 0])
    })

    it('refuse TLS versions outside of the configured range', async () => {
      expect([await site('old.example', { version: 'TLSv1.3' }), await site('old.example', { version: 'TLSv1.2' })]).to.deep.equal([0, 200])
      expect([await site('new.example', { version: 'TLSv1.2' }), await site('new.example', { version: 'TLSv1.3' })]).to.deep.equal([0, 200])
    })

    /** Returns the bytes that a TLS connection receives; empty if it is closed without any. */
    const spoken = (port: number, servername: string, protocols: string[] = [], says = ''): Promise<string> =>
      new Promise((resolve) => {
        let text = ''
        const socket = tlsConnect({ host: address, port, servername, ALPNProtocols: protocols, rejectUnauthorized: false }, () => socket.write(says))
        socket.on('data', (bytes) => (text += bytes))
        socket.on('error', () => resolve(text))
        socket.on('close', () => resolve(text))
      })

    it('forward TCP in plaintext, after TLS termination, and with TLS passthrough', async () => {
      expect(await exchange(address, ports.tcp, 'hello')).to.equal('bytes')
      expect(await spoken(ports.bytes, 'bytes.example', [], 'hello')).to.equal('bytes')
      expect(await spoken(ports.bytes, 'bytes.example', ['h2'], 'hello'), 'who insists on a protocol').to.equal('bytes')
      expect(await spoken(ports.tls, 'through.example')).to.equal('passed')
    })

    it('of mode AUTO_PASSTHROUGH forward only mutual TLS, and only to services with mutual TLS that their hosts cover', async () => {
      const sni = (host: string) => `outbound_.80_._.${host}`
      await until('the service', async () => (await spoken(ports.auto, sni('meshed.shop.svc.cluster.local'), ['istio'])) === 'passed')
      expect(await spoken(ports.auto, sni('meshed.shop.svc.cluster.local'), ['h2', 'http/1.1']), 'not of the mesh').to.equal('')
      expect(await spoken(ports.auto, sni('meshed.shop.svc.cluster.local')), 'without a protocol').to.equal('')
      expect(await spoken(ports.auto, sni('meshed.example'), ['istio']), 'not among the hosts').to.equal('')
      expect(await spoken(ports.auto, sni('plain.shop.svc.cluster.local'), ['istio']), 'takes no mutual TLS').to.equal('')
      expect(await spoken(ports.auto, 'meshed.shop.svc.cluster.local', ['istio']), 'no name of a cluster').to.equal('')
      expect(await spoken(ports.auto, sni('any.shop.svc.cluster.local'), ['istio']), 'a service with a wildcard host').to.equal('')
    })
  })
}
