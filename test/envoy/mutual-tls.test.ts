import { type AddressInfo, connect, createServer } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { grpcAuthorizer, type RunningAuthorizer } from '../harness/authorizer.ts'
import { call, HttpBackend, tcpBackend } from '../harness/backend.ts'
import { Authority, type Certificate } from '../harness/certificates.ts'
import { Envoy, envoysWith } from '../harness/envoy.ts'
import { enforce, policyDocument } from '../harness/policies.ts'
import { send } from '../harness/raw-http.ts'
import { secretServer } from '../harness/secret-server.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'

for (const { version, path: binary, from } of envoysWith({ from: 'files' }, { from: 'an agent' })) {
  describe(`mutual TLS between two sidecars, Envoy ${version}, certificates from ${from}`, () => {
    const service = new Service({ env: { PILOT_DEBOUNCE_AFTER: '10ms' } })
    const backend = new HttpBackend('app')
    const authority = new Authority()
    const stranger = new Authority()
    const certificates = {
      server: authority.issue('server', 'spiffe://cluster.local/ns/shop/sa/server'),
      client: authority.issue('client', 'spiffe://cluster.local/ns/shop/sa/client'),
      other: authority.issue('other', 'spiffe://cluster.local/ns/elsewhere/sa/other.dotted'),
      alias: authority.issue('alias', 'spiffe://old.domain/ns/shop/sa/client'),
      foreign: authority.issue('foreign', 'spiffe://foreign.domain/ns/shop/sa/client'),
      forged: stranger.issue('forged', 'spiffe://cluster.local/ns/shop/sa/client'),
    }
    const [serverAddress, clientAddress] = ['127.0.0.7', '127.0.0.8']
    const ports = { http: 0, tcp: 0, inbound: 0, inboundTcp: 0, inboundAny: 0 }
    let tcp: Awaited<ReturnType<typeof tcpBackend>>
    let server: Envoy
    let client: Envoy
    let authorizer: RunningAuthorizer
    let agents: Awaited<ReturnType<typeof secretServer>>[] = []

    const files = (side: string, { chain, key }: Certificate) => ({
      [`TLS_${side}_CERT_CHAIN`]: chain,
      [`TLS_${side}_KEY`]: key,
      [`TLS_${side}_ROOT_CERT`]: authority.root,
    })
    const policy = (kind: string, name: string, spec: string, namespace = 'shop') => policyDocument(kind, name, spec, { namespace })
    /** Applies policies and waits until the server's proxy enforces them. */
    const inForce = (...documents: string[]) => enforce(service, server, documents, 'selector: {matchLabels: {app: server}}, ')
    /** Returns the status of a direct call to the server's proxy, with a certificate or in plaintext. */
    const direct = (certificate?: Certificate) => send(serverAddress, ports.inbound, certificate ? { tls: Authority.read(certificate) } : {})
    const peer = (mode: string, selector = '{matchLabels: {app: server}}') =>
      policy('PeerAuthentication', 'peers', `{selector: ${selector}, mtls: {mode: ${mode}}}`)

    before(async () => {
      for (const name of Object.keys(ports) as (keyof typeof ports)[]) ports[name] = await freePort()
      await backend.start()
      // The workload waits for the first bytes of the client, since Envoy applies its policies to a connection when they arrive.
      tcp = await tcpBackend('tcp-workload', true)
      authorizer = await grpcAuthorizer()
      const authorizerPort = await freePort()
      const host = 'authz.shop.svc.cluster.local'
      service.write(
        'mesh-config',
        `trustDomainAliases: [old.domain]\nextensionProviders: [{name: authz, envoyExtAuthzGrpc: {service: ${host}, port: ${authorizerPort}}}]\n`,
      )
      service.write(
        'authz.yaml',
        `apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: authz, namespace: shop}\nspec: {hosts: [${host}], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: ${authorizerPort}, name: grpc}], endpoints: [{address: 127.0.0.1, ports: {grpc: ${authorizer.port}}}]}\n`,
      )
      service.write(
        'services.yaml',
        `apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: server, namespace: shop}
spec:
  hosts: [server.shop.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: ${ports.http}, name: http}, {number: ${ports.tcp}, name: tcp}]
  endpoints: [{address: ${serverAddress}, ports: {http: ${ports.inbound}, tcp: ${ports.inboundTcp}}, labels: {app: server}, serviceAccount: server}]
---
apiVersion: networking.mesh.io/v1
kind: Sidecar
metadata: {name: server, namespace: shop}
spec:
  workloadSelector: {labels: {app: server}}
  ingress:
  - {port: {number: ${ports.inbound}, protocol: HTTP, name: http}, bind: ${serverAddress}, captureMode: NONE, defaultEndpoint: '127.0.0.1:${backend.port}'}
  - {port: {number: ${ports.inboundTcp}, protocol: TCP, name: tcp}, bind: ${serverAddress}, captureMode: NONE, defaultEndpoint: '127.0.0.1:${tcp.port}'}
  - {port: {number: ${ports.inboundAny}, protocol: '', name: any}, bind: ${serverAddress}, captureMode: NONE, defaultEndpoint: '127.0.0.1:${backend.port}'}
  egress: [{hosts: ['./*']}]
---
apiVersion: networking.mesh.io/v1
kind: Sidecar
metadata: {name: client, namespace: shop}
spec:
  workloadSelector: {labels: {app: client}}
  egress:
  - {port: {number: ${ports.http}, protocol: HTTP, name: http}, bind: ${clientAddress}, captureMode: NONE, hosts: ['./*']}
  - {port: {number: ${ports.tcp}, protocol: TCP, name: tcp}, bind: ${clientAddress}, captureMode: NONE, hosts: ['./*']}
`,
      )
      await service.start()
      const byAgent = from === 'an agent'
      if (byAgent) agents = [await secretServer(certificates.server, authority.root), await secretServer(certificates.client, authority.root)]
      const envoy = (name: string, address: string, metadata: object, agent: { port: number } | undefined) =>
        new Envoy({
          binary,
          delta: version === '1.40',
          grpcPort: service.grpcPort,
          ...(agent ? { secretsAt: agent.port } : {}),
          nodeId: `sidecar~${address}~${name}.shop~shop.svc.cluster.local`,
          metadata: { NAMESPACE: 'shop', LABELS: { app: name }, INTERCEPTION_MODE: 'NONE', ...(agent ? { PROXY_CONFIG: {} } : metadata) },
        })
      server = envoy('server', serverAddress, files('SERVER', certificates.server), agents[0])
      client = envoy('client', clientAddress, files('CLIENT', certificates.client), agents[1])
      await Promise.all([server.start(), client.start()])
      await until('calls to arrive', async () => (await viaClient().catch(() => ({ status: 0 }))).status === 200)
    })
    after(async () => {
      expect(await service.rejections()).to.deep.equal([])
      for (const envoy of [server, client]) expect(await envoy.rejected()).to.equal(0)
      await Promise.all([server.dispose(), client.dispose(), service.dispose(), backend.stop(), tcp.stop(), authorizer.stop()])
      for (const agent of agents) agent.stop()
      authority.dispose()
      stranger.dispose()
    })
    const viaClient = () => call(clientAddress, ports.http, '/', { host: 'server.shop.svc.cluster.local' })

    it("auto mTLS: HTTP and TCP calls succeed, and the workload sees the caller's identity", async () => {
      await inForce()
      expect((await viaClient()).status).to.equal(200)
      expect(backend.seen.at(-1)?.headers['x-forwarded-client-cert']).to.include('URI=spiffe://cluster.local/ns/shop/sa/client')
      expect(await readTcp(clientAddress, ports.tcp)).to.equal('tcp-workload')
      expect(await client.stat('.ssl.handshake')).to.be.above(0)
    })

    it('PERMISSIVE accepts plaintext and mutual TLS, and refuses certificates of another root or trust domain', async () => {
      await inForce(peer('PERMISSIVE'))
      expect([await direct(), await direct(certificates.other), await direct(certificates.alias)]).to.deep.equal([200, 200, 200])
      expect([await direct(certificates.forged), await direct(certificates.foreign)]).to.deep.equal([0, 0])
    })

    it("PERMISSIVE and DISABLE pass the application's own TLS and non-HTTP bytes through, which STRICT refuses", async () => {
      const hello = await clientHello()
      for (const mode of ['PERMISSIVE', 'DISABLE']) {
        await inForce(peer(mode))
        expect(await readTcp(serverAddress, ports.inboundTcp, undefined, undefined, hello), `TLS to a TCP port, ${mode}`).to.equal('tcp-workload')
        // The HTTP workload itself answers 400, so the bytes reached the workload.
        for (const bytes of [hello, Buffer.from('\0\x01\0\r\n\r\n')])
          expect(await readTcp(serverAddress, ports.inboundAny, undefined, undefined, bytes), mode).to.match(/^HTTP\/1.1 400 (?!.*envoy)/s)
        const answer = await call(serverAddress, ports.inboundAny, '/', { host: 'server' })
        expect([answer.status, answer.headers.server], mode).to.deep.equal([200, 'istio-envoy'])
      }
      await inForce(peer('STRICT'))
      expect(await readTcp(serverAddress, ports.inboundAny, undefined, undefined, '\0\r\n\r\n'), 'STRICT').to.equal('')
    })

    it('STRICT accepts mutual TLS only', async () => {
      await inForce(peer('STRICT'))
      expect([await direct(), await direct(certificates.other)]).to.deep.equal([0, 200])
      await until('callers to use mutual TLS', async () => (await viaClient()).status === 200)
      await until('callers to use it for TCP', async () => (await readTcp(clientAddress, ports.tcp)) === 'tcp-workload')
      expect(await readTcp(serverAddress, ports.inboundTcp)).to.equal('')
    })

    it('DISABLE accepts plaintext only, and sidecars of callers switch to plaintext', async () => {
      await inForce(peer('DISABLE'))
      expect([await direct(), await direct(certificates.other)]).to.deep.equal([200, 0])
      await until('callers to speak plainly', async () => {
        const { status } = await viaClient().catch(() => ({ status: 0 }))
        return status === 200 && backend.seen.at(-1)?.headers['x-forwarded-client-cert'] === undefined
      })
    })

    it('PeerAuthentication of port, workload, namespace and mesh apply in this order, and UNSET inherits', async () => {
      const mesh = policy('PeerAuthentication', 'mesh', '{mtls: {mode: STRICT}}', 'mesh-system')
      await inForce(mesh)
      expect(await direct()).to.equal(0)
      await inForce(mesh, policy('PeerAuthentication', 'namespace', '{mtls: {mode: PERMISSIVE}}'))
      expect(await direct()).to.equal(200)
      await inForce(mesh, policy('PeerAuthentication', 'namespace', '{mtls: {mode: PERMISSIVE}}'), peer('STRICT'))
      expect(await direct()).to.equal(0)
      await inForce(mesh, policy('PeerAuthentication', 'namespace', '{mtls: {mode: PERMISSIVE}}'), peer('UNSET'))
      expect(await direct()).to.equal(200)
      const port = policy(
        'PeerAuthentication',
        'peers',
        `{selector: {matchLabels: {app: server}}, mtls: {mode: STRICT}, portLevelMtls: {${ports.inbound}: {mode: DISABLE}}}`,
      )
      await inForce(mesh, port)
      expect(await direct()).to.equal(200)
      expect(await readTcp(serverAddress, ports.inboundTcp)).to.equal('')
      await until('callers to follow on each port', async () => (await viaClient().catch(() => ({ status: 0 }))).status === 200)
      await until('callers to follow for TCP', async () => (await readTcp(clientAddress, ports.tcp)) === 'tcp-workload')
    })

    it('a PeerAuthentication with a selector in the root namespace selects no workload of another namespace', async () => {
      await inForce(policy('PeerAuthentication', 'mesh', '{selector: {matchLabels: {app: server}}, mtls: {mode: STRICT}}', 'mesh-system'))
      expect(await direct()).to.equal(200)
    })

    const authorization = (action: string, rule: string) =>
      policy('AuthorizationPolicy', 'who', `{selector: {matchLabels: {app: server}}, action: ${action}, rules: [${rule}]}`)
    const principals: Partial<Record<keyof typeof certificates, string>> = {
      client: 'cluster.local/ns/shop/sa/client',
      other: 'cluster.local/ns/elsewhere/sa/other.dotted',
      alias: 'old.domain/ns/shop/sa/client',
      foreign: 'foreign.domain/ns/shop/sa/client',
    }
    const explanation = (name: keyof typeof certificates | undefined, protocol = 'http', port = 0) => {
      const query = new URLSearchParams({ proxyID: 'server.shop', protocol, port: String(port), principal: (name && principals[name]) ?? '' })
      return service.debug<{ status: number; decidedBy: string; policy?: string; reason: string }>(`authz?${query}`)
    }
    const explained = async (name: keyof typeof certificates | undefined, protocol = 'http') => (await explanation(name, protocol)).status

    it('connections that a mode of mutual TLS closes are explained, with the PeerAuthentication that sets it', async () => {
      const byPort = `{selector: {matchLabels: {app: server}}, mtls: {mode: STRICT}, portLevelMtls: {${ports.inbound}: {mode: DISABLE}}}`
      const modes: readonly (readonly [string, ...string[]])[] = [
        ['none'],
        ['STRICT', peer('STRICT')],
        ['PERMISSIVE', peer('PERMISSIVE')],
        ['DISABLE', peer('DISABLE')],
        ['by port', policy('PeerAuthentication', 'peers', byPort)],
        ['of the mesh', policy('PeerAuthentication', 'mesh', '{mtls: {mode: STRICT}}', 'mesh-system')],
      ]
      const taken = async (name: keyof typeof certificates | undefined, protocol: 'http' | 'tcp') => {
        const certificate = name && certificates[name]
        if (protocol === 'http') return (await direct(certificate)) === 200
        return (await readTcp(serverAddress, ports.inboundTcp, certificate)) === 'tcp-workload'
      }
      for (const [mode, ...documents] of modes) {
        await inForce(...documents)
        for (const name of [undefined, 'client', 'alias', 'foreign'] as const)
          for (const protocol of ['http', 'tcp'] as const) {
            const port = protocol === 'http' ? ports.inbound : ports.inboundTcp
            const { status, reason } = await explanation(name, protocol, port)
            expect(status === 200, `${mode}, ${name}, ${protocol}: ${reason}`).to.equal(await taken(name, protocol))
          }
      }
      const { decidedBy, policy: deciding, reason } = await explanation(undefined)
      expect([decidedBy, deciding, reason]).to.deep.equal([
        ...['PeerAuthentication', 'mesh-system/mesh'],
        'mutual TLS is STRICT, and the request has no principal: a connection in plain text is closed (a caller of the mesh has one: name it)',
      ])
      await inForce(policy('PeerAuthentication', 'peers', byPort))
      expect((await explanation(undefined)).reason).to.match(new RegExp(`; modes of their own have the ports ${ports.inbound}: name the port$`))
    })

    /** Name, action, rule, and for each caller whether HTTP and TCP pass; the empty name is a caller in plaintext. */
    const matrix: [string, string, string, Record<string, boolean>][] = [
      [
        'ALLOW for a principal',
        'ALLOW',
        '{from: [{source: {principals: [cluster.local/ns/shop/sa/client]}}]}',
        { '': false, client: true, alias: true, other: false },
      ],
      [
        'a principal by prefix',
        'ALLOW',
        "{from: [{source: {principals: ['cluster.local/ns/shop/*']}}]}",
        { '': false, client: true, alias: true, other: false },
      ],
      ['a principal by suffix', 'ALLOW', "{from: [{source: {principals: ['*/sa/client']}}]}", { '': false, client: true, alias: true, other: false }],
      ['any principal', 'ALLOW', "{from: [{source: {principals: ['*']}}]}", { '': false, client: true, alias: true, other: true }],
      ['a namespace', 'ALLOW', '{from: [{source: {namespaces: [elsewhere]}}]}', { '': false, client: false, other: true }],
      ['a namespace by prefix', 'ALLOW', "{when: [{key: source.namespace, values: ['else*']}]}", { '': false, client: false, other: true }],
      ['dots are dots', 'ALLOW', "{from: [{source: {principals: ['*/other.dotted', '*/clie.t']}}]}", { '': false, client: false, other: true }],
      [
        'DENY a principal by suffix',
        'DENY',
        "{from: [{source: {principals: ['*/client']}}]}",
        { '': true, client: false, alias: false, other: true },
      ],
      ['DENY a namespace', 'DENY', '{from: [{source: {namespaces: [shop]}}]}', { '': true, client: false, other: true }],
      [
        'a service account of the namespace of the policy',
        'ALLOW',
        '{from: [{source: {serviceAccounts: [client]}}]}',
        { '': false, client: true, alias: true, other: false },
      ],
      [
        'a service account of a namespace',
        'ALLOW',
        '{from: [{source: {serviceAccounts: [elsewhere/other.dotted, shop/clien]}}]}',
        { '': false, client: false, other: true },
      ],
      [
        'a service account is not a pattern',
        'ALLOW',
        '{from: [{source: {serviceAccounts: [elsewhere/other-dotted, op/client]}}]}',
        { client: false, other: false },
      ],
      [
        'DENY a service account',
        'DENY',
        '{when: [{key: source.serviceAccount, values: [client]}]}',
        { '': true, client: false, alias: false, other: true },
      ],
      [
        'DENY whoever is not of a service account',
        'DENY',
        '{from: [{source: {notServiceAccounts: [shop/client]}}]}',
        { '': false, client: true, other: false },
      ],
      [
        'a trust domain counts with its aliases',
        'ALLOW',
        '{from: [{source: {trustDomains: [old.domain]}}]}',
        { '': false, client: true, alias: true },
      ],
      ['a trust domain by prefix', 'ALLOW', "{from: [{source: {trustDomains: ['old*']}}]}", { '': false, client: false, alias: true }],
      ['a trust domain by suffix', 'ALLOW', "{from: [{source: {trustDomains: ['*.domain']}}]}", { '': false, client: false, alias: true }],
      ['any trust domain', 'ALLOW', "{from: [{source: {trustDomains: ['*']}}]}", { '': false, client: true, alias: true }],
      [
        'DENY a trust domain by prefix',
        'DENY',
        "{when: [{key: source.trustDomain, values: ['cluster*']}]}",
        { '': true, client: false, alias: true },
      ],
      [
        'DENY whoever is not of a trust domain',
        'DENY',
        "{from: [{source: {notTrustDomains: ['*.local']}}]}",
        { '': false, client: true, alias: false },
      ],
      [
        'DENY for all but a principal',
        'DENY',
        '{from: [{source: {notPrincipals: [cluster.local/ns/shop/sa/client]}}]}',
        { '': false, client: true, alias: true, other: false },
      ],
      ['ALLOW for all outside a namespace', 'ALLOW', '{from: [{source: {notNamespaces: [shop]}}]}', { '': true, client: false, other: true }],
    ]
    for (const [name, action, rule, expected] of matrix) {
      it(`${name}: HTTP, TCP and /debug/authz agree`, async () => {
        await inForce(authorization(action, rule))
        const seen: Record<string, unknown> = {}
        const fromPage: Record<string, unknown> = {}
        for (const caller of Object.keys(expected)) {
          const certificate = certificates[caller as 'client'] as Certificate | undefined
          const http = await direct(certificate)
          const bytes = await readTcp(serverAddress, ports.inboundTcp, certificate)
          seen[caller] = [http === 200, bytes === 'tcp-workload']
          fromPage[caller] = [
            (await explained(caller === '' ? undefined : (caller as 'client'))) === 200,
            (await explained(caller === '' ? undefined : (caller as 'client'), 'tcp')) === 200,
          ]
        }
        const wanted = Object.fromEntries(Object.entries(expected).map(([caller, passes]) => [caller, [passes, passes]]))
        expect(seen, 'Envoy').to.deep.equal(wanted)
        expect(fromPage, 'explained').to.deep.equal(wanted)
      })
    }

    it('a condition on connection.sni: HTTP, TCP and /debug/authz agree, case-insensitively', async () => {
      await inForce(authorization('ALLOW', "{when: [{key: connection.sni, values: ['*.good.example']}]}"))
      const by = async (servername: string) => [
        await send(serverAddress, ports.inbound, { tls: { ...Authority.read(certificates.other), servername } }),
        await readTcp(serverAddress, ports.inboundTcp, certificates.other, servername),
      ]
      expect(await by('a.good.example')).to.deep.equal([200, 'tcp-workload'])
      expect(await by('A.Good.Example')).to.deep.equal([200, 'tcp-workload'])
      expect(await by('a.bad.example')).to.deep.equal([403, ''])
      for (const [sni, status] of [
        ['A.Good.Example', 200],
        ['a.bad.example', 403],
      ] as const)
        expect((await service.debug<{ status: number }>(`authz?proxyID=server.shop&sni=${sni}`)).status).to.equal(status)
    })

    it('CUSTOM asks the authorizer for each TCP connection of its port, and enforces the answer', async () => {
      await inForce(
        policy(
          'AuthorizationPolicy',
          'ask',
          `{selector: {matchLabels: {app: server}}, action: CUSTOM, provider: {name: authz}, rules: [{to: [{operation: {ports: ['${ports.inboundTcp}']}}]}]}`,
        ),
      )
      authorizer.asked.length = 0
      expect(await readTcp(serverAddress, ports.inboundTcp, certificates.client)).to.equal('tcp-workload')
      expect(await readTcp(serverAddress, ports.inboundTcp, certificates.other)).to.equal('')
      expect(authorizer.asked).to.have.length(2)
      expect(await direct()).to.equal(200)
    })

    it('a PeerAuthentication that was never valid applies as STRICT', async () => {
      await inForce(peer('PERMISSIVE'))
      expect(await direct()).to.equal(200)
      await inForce(peer('SOMETIMES').replace('name: peers', 'name: bad'))
      expect([await direct(), await direct(certificates.other)]).to.deep.equal([0, 200])
    })

    it('HTTP fields in rules for TCP: ALLOW rules with them match nothing, and DENY rules ignore them', async () => {
      await inForce(authorization('ALLOW', "{to: [{operation: {paths: ['/']}}]}"))
      expect([await direct(), await readTcp(serverAddress, ports.inboundTcp)]).to.deep.equal([200, ''])
      await inForce(authorization('DENY', `{to: [{operation: {methods: [POST], ports: ['${ports.inboundTcp}']}}]}`))
      expect([await direct(), await readTcp(serverAddress, ports.inboundTcp)]).to.deep.equal([200, ''])
      await inForce(authorization('DENY', `{to: [{operation: {methods: [POST], ports: ['1']}}]}`))
      expect([await direct(), await readTcp(serverAddress, ports.inboundTcp)]).to.deep.equal([200, 'tcp-workload'])
    })
  })
}

/** Returns the ClientHello of a TLS client outside of the mesh. */
function clientHello(): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => {
      socket.once('data', (bytes) => {
        socket.destroy()
        server.close(() => resolve(bytes))
      })
    })
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      connectTls({ host: '127.0.0.1', port, servername: 'elsewhere.example', ALPNProtocols: ['http/1.1'] }).on('error', () => undefined)
    })
    server.on('error', reject)
  })
}

/** Returns the answer of a TCP workload to a greeting, in plaintext or with a certificate; empty if the connection is refused. */
function readTcp(
  address: string,
  port: number,
  certificate?: Certificate,
  servername?: string,
  greeting: string | Buffer = 'hello',
): Promise<string> {
  return new Promise((resolve) => {
    const options = { host: address, port, ...(servername ? { servername } : {}) }
    const socket = certificate
      ? connectTls({ ...options, ...Authority.read(certificate), rejectUnauthorized: false, ALPNProtocols: ['istio'] }, () => socket.write(greeting))
      : connect(options, () => socket.write(greeting))
    let text = ''
    socket.on('data', (bytes) => (text += bytes))
    socket.on('error', () => resolve(text))
    socket.on('close', () => resolve(text))
  })
}
