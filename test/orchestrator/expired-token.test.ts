/**
 * Credentials of discovery and of agents that end. Those that are renewed in time cost nothing; while a file stays as it is the last state is served,
 * and everything goes on with the credential that the file has later (docs/operation.md, C2, C4; docs/identity.md, T9; docs/certificates.md, N4).
 */
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import { endpointType } from '../../src/xds/type-urls.ts'
import { Agent } from '../harness/agent.ts'
import { call, HttpBackend } from '../harness/backend.ts'
import { TestCluster } from '../harness/cluster.ts'
import { EndingToken } from '../harness/ending-tokens.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { Service } from '../harness/service.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const service = `apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {ports: [{name: http, port: 80}]}`
const slice = (...addresses: string[]) => `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [${addresses.map((address) => `{addresses: [${address}], conditions: {ready: true}}`).join(', ')}]`

/** The configuration of a workload that calls a service at 127.0.0.13, without redirection. */
const mesh = (ports: { readonly http: number; readonly backend: number }) => `apiVersion: networking.mesh.io/v1
kind: ServiceEntry
metadata: {name: stock, namespace: shop}
spec:
  hosts: [stock.shop.svc.cluster.local]
  location: MESH_INTERNAL
  resolution: STATIC
  ports: [{number: ${ports.http}, name: http}]
  endpoints: [{address: 127.0.0.1, ports: {http: ${ports.backend}}}]
---
apiVersion: networking.mesh.io/v1
kind: Sidecar
metadata: {name: caller, namespace: shop}
spec:
  workloadSelector: {labels: {app: caller}}
  egress:
  - {port: {number: ${ports.http}, protocol: HTTP, name: http}, bind: 127.0.0.13, captureMode: NONE, hosts: [./*]}
  - {hosts: [./*]}`

/** The life of tokens and how often they are renewed, in seconds. Discovery uses a file's token for ten seconds before it reads it again. */
const times = { life: 15, every: 3, certificate: 40 }

describe('tokens that end by time', () => {
  let cluster: TestCluster
  let discovery: Service
  let agent: Agent
  let backend: HttpBackend
  const tokens: EndingToken[] = []
  const ports = { http: 0, secure: 0, backend: 0 }
  /** What came of the calls of the workload. */
  const statuses: Record<number, number> = {}
  let isOver = false
  let calling: Promise<void> | undefined

  const calls = async () => {
    while (!isOver) {
      const answer = await call('127.0.0.13', ports.http, '/', { host: 'stock.shop.svc.cluster.local' }).catch(() => undefined)
      const status = answer?.status ?? 0
      statuses[status] = (statuses[status] ?? 0) + 1
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
  /** The endpoints that the proxy of the workload has. */
  const endpoints = async () =>
    (await agent.admin('/clusters')).match(/^outbound\|80\|\|web\.shop\S*?::10\.1\.0\.\d+:8080::health_flags/gm)?.length ?? 0
  /** The stream of the agent, as discovery knows it. */
  const stream = async () => (await discovery.debug<{ clients: { connectionId: string }[] }>('adsz')).clients[0]?.connectionId
  const certificates = () => agent.output.match(/certificate of spiffe:\/\/cluster\.local\/ns\/shop\/sa\/caller, valid/g)?.length ?? 0
  const restingOn = async (count: number) => {
    cluster.apply(slice(...Array.from({ length: count }, (_, index) => `10.1.0.${index + 1}`)))
    await until(`${count} endpoints`, async () => (await endpoints()) === count)
  }

  before(async function () {
    const binary = envoyBinaries().at(-1)?.path
    if (binary === undefined) this.skip()
    for (const name of ['http', 'secure'] as const) ports[name] = await freePort()
    backend = await new HttpBackend('stock').start()
    ports.backend = backend.port
    cluster = await TestCluster.start()
    cluster.apply(
      'apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}',
      ...['pilot', 'caller'].map((name) => `apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: ${name}, namespace: shop}`),
      ...[service, slice('10.1.0.1')],
    )
    cluster.kubectl(['create', 'clusterrolebinding', 'pilot', '--clusterrole', 'cluster-admin', '--serviceaccount', 'shop:pilot'])
    discovery = new Service({
      env: { PILOT_DEBOUNCE_AFTER: '10ms', PILOT_XDS_CREDENTIAL_GRACE: '1s' },
      flags: ['--registries', 'Orchestrator', '--orchconfig', cluster.userConfig('short', '{tokenFile: short.token}'), '--resync', '1s'],
    })
    const made = new ServingCertificates(discovery.dir)
    made.authority('ca')
    made.issue('server', 'ca', 1, 'subjectAltName=DNS:meshd.mesh-system.svc\n')
    discovery.flags.push('--secureGRPCAddr', `127.0.0.1:${ports.secure}`, ...made.servingFlags())
    discovery.write('mesh.yaml', mesh(ports))
    agent = new Agent({
      binary,
      env: {
        ...{ POD_NAME: 'caller', POD_NAMESPACE: 'shop', SERVICE_ACCOUNT: 'caller', INSTANCE_IP: '127.0.0.13', MESH_META_INTERCEPTION_MODE: 'NONE' },
        ...{ SECRET_TTL: `${times.certificate}s`, TERMINATION_DRAIN_DURATION_SECONDS: '0' },
      },
      proxyConfig: { discoveryAddress: `localhost:${ports.secure}` },
    })
    agent.write('var/run/secrets/mesh/root-cert.pem', made.text('ca.pem'))
    agent.write('etc/mesh/pod/labels', 'app="caller"')
    tokens.push(
      new EndingToken(cluster, join(cluster.dir, 'short.token'), 'shop/pilot', times.life),
      new EndingToken(cluster, join(agent.dir, 'var/run/secrets/tokens/mesh-token'), 'shop/caller', times.life, 'mesh-ca'),
    )
    for (const token of tokens) await token.renewEvery(times.every)
    await discovery.start()
    await agent.start()
    await until('the first call', async () => (await call('127.0.0.13', ports.http, '/', { host: 'stock.shop.svc.cluster.local' })).status === 200)
    await restingOn(1)
    calling = calls()
  })
  after(async () => {
    isOver = true
    for (const token of tokens) token.stop()
    await calling
    await agent?.dispose()
    await discovery?.dispose()
    await backend?.stop()
    await cluster?.dispose()
  })

  it('are replaced under way by agents and discovery: no call is lost, and changes arrive', async () => {
    for (const count of [2, 3]) {
      const before = await stream()
      await until('another stream, since the token of the last one has ended', async () => ![undefined, before].includes(await stream()))
      await restingOn(count)
    }
    expect(statuses[200]).to.be.greaterThan(100)
    expect(Object.keys(statuses)).to.deep.equal(['200'])
    discovery.output.lacks(/Unauthorized/)
    expect(agent.output).not.to.match(/authentication failure/)
  })

  it('and are not renewed remove nothing; certificates are renewed without them, and all goes on with new ones', async () => {
    for (const token of tokens) token.stop()
    await discovery.output.says(/list of \S+ failed: .*Unauthorized/)
    await until('the refusal of the agent', () => agent.output.includes('authentication failure'))
    const known = certificates()
    cluster.apply(slice('10.1.0.1', '10.1.0.2', '10.1.0.3', '10.1.0.4'))
    await until('another certificate', () => certificates() > known)
    expect(await endpoints()).to.equal(3)
    expect((await fetch(`http://127.0.0.1:${discovery.httpPort}/ready`)).status).to.equal(200)
    for (const token of tokens) await token.renewEvery(times.every)
    await until('the change', async () => (await endpoints()) === 4)
    expect(Object.keys(statuses)).to.deep.equal(['200'])
  })
})

describe('a token of discovery that ends', () => {
  let cluster: TestCluster
  let discovery: Service
  let client: XdsClient

  /** A token that ends with the Secret of this name. */
  const tokenOf = (secret: string): string => {
    cluster.kubectl(['create', 'secret', 'generic', '-n', 'shop', secret])
    return cluster.kubectl(['create', 'token', '-n', 'shop', 'pilot', '--bound-object-kind', 'Secret', '--bound-object-name', secret]).trim()
  }
  const write = (token: string) => {
    const path = join(cluster.dir, 'ending.token')
    writeFileSync(`${path}.new`, token)
    renameSync(`${path}.new`, path)
  }
  const endpoints = () => client.resources.get(endpointType)?.get('outbound|80||web.shop.svc.cluster.local')?.toString('latin1') ?? ''

  before(async () => {
    cluster = await TestCluster.start()
    cluster.apply('apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}')
    cluster.apply('apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: pilot, namespace: shop}', service, slice('10.1.0.1'))
    cluster.kubectl(['create', 'clusterrolebinding', 'pilot', '--clusterrole', 'cluster-admin', '--serviceaccount', 'shop:pilot'])
    write(tokenOf('first'))
    const config = cluster.userConfig('ending', '{tokenFile: ending.token}')
    discovery = new Service({
      env: { PILOT_DEBOUNCE_AFTER: '10ms' },
      flags: ['--registries', 'Orchestrator', '--orchconfig', config, '--resync', '1s'],
    })
    await discovery.start()
    client = await new XdsClient(discovery.grpcPort, sidecarNode('10.99.0.1', 'a', 'shop'), true).connect().ready()
    await until('the endpoint', () => endpoints().includes('10.1.0.1'))
  })
  after(async () => {
    client?.close()
    await discovery?.dispose()
    await cluster?.dispose()
  })

  it('costs no endpoint while the server refuses it, and is replaced by the one that its file has later', async () => {
    const second = tokenOf('second')
    cluster.kubectl(['delete', 'secret', '-n', 'shop', 'first'])
    // The comparisons with lists are refused first; watches that go on were authorized before, and end with the server.
    await discovery.output.says(/list of \S+ failed: .*Unauthorized/)
    cluster.signalServer('SIGKILL')
    await discovery.output.says(/watch of endpointslices\.discovery\.k8s\.io failed: .*Unauthorized.*the last state stays/)
    await until('the server', () => {
      try {
        cluster.apply(slice('10.1.0.1', '10.1.0.2'))
        return true
      } catch {
        return false
      }
    })
    expect(endpoints()).to.include('10.1.0.1').and.not.include('10.1.0.2')
    expect((await fetch(`http://127.0.0.1:${discovery.httpPort}/ready`)).status).to.equal(200)
    write(second)
    await until('what changed meanwhile', () => endpoints().includes('10.1.0.2'))
    expect(endpoints()).to.include('10.1.0.1')
    expect(client.closed).to.equal(undefined)
    await discovery.output.says(/endpointslices\.discovery\.k8s\.io\b.* are followed again/)
  })
})
