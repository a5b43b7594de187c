/** Where `explain` says that the sidecar of a pod sends a request is where its Envoy sends it: generated requests to generated kinds of services. */
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import fc from 'fast-check'
import { AdminClient } from '../../src/cli/admin-client.ts'
import { Authority } from '../harness/certificates.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { type MeshPod, meshDocument, PodMesh } from '../harness/pod-mesh.ts'
import { runs, seed } from '../harness/seed.ts'
import { until } from '../harness/until.ts'

const entry = (name: string, spec: string) => meshDocument('networking', 'ServiceEntry', name, spec)

/** An address outside of the mesh that names without an address of their own stand for, and the address of all endpoints. */
const [stranger, endpoint] = ['10.90.0.1', '10.77.0.1']
const ports = { http: 8000, tcp: 8001, tls: 8002, unknown: 8003 } as const
const onPort = (name: keyof typeof ports) => `ports: [{number: ${ports[name]}, name: ${name}}]`
const at = `resolution: STATIC, endpoints: [{address: ${endpoint}}]`

const services = [
  entry('web', `{hosts: [web.shop.svc.cluster.local], ${onPort('http')}, ${at}}`),
  entry('vip', `{hosts: [vip.example], addresses: [10.96.0.10], ${onPort('http')}, ${at}}`),
  entry('wild', `{hosts: ['*.wild.example'], ${onPort('http')}, ${at}}`),
  entry('direct', `{hosts: [direct.example], ${onPort('http')}, resolution: NONE}`),
  entry('empty', `{hosts: [empty.example], ${onPort('http')}, resolution: STATIC}`),
  entry('one', `{hosts: [one.example], addresses: [10.96.0.11], ${onPort('tcp')}, ${at}}`),
  entry('two', `{hosts: [two.example], addresses: [10.96.0.12], ${onPort('tcp')}, ${at}}`),
  entry('bytes', `{hosts: [bytes.example], ${onPort('tcp')}, ${at}}`),
  entry('secure', `{hosts: [secure.example], ${onPort('tls')}, ${at}}`),
  entry('named', `{hosts: ['*.named.example'], ${onPort('tls')}, ${at}}`),
  entry('keyed', `{hosts: [keyed.example], addresses: [10.96.0.13], ${onPort('tls')}, ${at}}`),
]
/** The addresses behind hosts, besides those that the pod's resolver knows. */
const addresses: Readonly<Record<string, string>> = {
  ...{ 'vip.example': '10.96.0.10', 'one.example': '10.96.0.11', 'two.example': '10.96.0.12', 'keyed.example': '10.96.0.13' },
}
const hosts = [
  ...[
    'web.shop.svc.cluster.local',
    'web',
    'web.shop',
    'vip.example',
    'a.wild.example',
    'direct.example',
    'empty.example',
    'one.example',
    'two.example',
  ],
  ...['bytes.example', 'secure.example', 'a.named.example', 'keyed.example', 'nobody.example', '10.96.0.10', '10.96.0.11', endpoint, stranger],
]

/** Settings of the sidecar, by name; a listener of its own is at the port of HTTP. */
const sidecars = {
  open: "{egress: [{hosts: ['*/*']}], outboundTrafficPolicy: {mode: ALLOW_ANY}}",
  closed: "{egress: [{hosts: ['*/*']}], outboundTrafficPolicy: {mode: REGISTRY_ONLY}}",
  narrow: "{egress: [{hosts: ['*/vip.example', '*/one.example', '*/secure.example']}]}",
  own: `{egress: [{port: {number: ${ports.http}, name: http, protocol: HTTP}, hosts: ['*/web.shop.svc.cluster.local']}, {hosts: ['*/*']}]}`,
  bound: `{egress: [{port: {number: ${ports.http}, name: http, protocol: HTTP}, bind: 127.0.0.1, hosts: ['*/*']}, {hosts: ['*/*']}]}`,
  local: `{egress: [{port: {number: ${ports.http}, name: http, protocol: HTTP}, bind: 127.0.0.2, captureMode: NONE, hosts: ['*/*']}]}`,
}

const { version, path } = envoyBinaries().at(-1) ?? { version: 'none', path: '' }

describe(`explained requests of a pod, Envoy ${version}`, () => {
  const authority = new Authority()
  let mesh: PodMesh
  let pod: MeshPod
  let client: AdminClient

  before(async () => {
    mesh = new PodMesh(path)
    mesh.configure('protocolDetectionTimeout: 200ms\n')
    mesh.write('services.yaml', ...services)
    await mesh.startDiscovery()
    for (const address of [stranger, ...Object.values(addresses)]) mesh.network.node.system('ip', 'addr', 'add', `${address}/32`, 'dev', 'bridge')
    const { chain, key } = authority.issue('server', 'spiffe://cluster.local/ns/shop/sa/server')
    const pair = { cert: readFileSync(chain, 'utf8'), key: readFileSync(key, 'utf8') }
    for (const name of ['http', 'tcp', 'unknown'] as const) await mesh.node.do('serve', { port: ports[name], host: '0.0.0.0', name })
    await mesh.node.do('listenTls', { port: ports.tls, host: '0.0.0.0', name: 'tls', ...pair })
    pod = await mesh.pod('client', { redirect: ['--redirect-dns'] })
    await pod.start()
    client = new AdminClient({ socket: mesh.places.MESHD_ADMIN_SOCKET as string })
  })
  after(async () => {
    await mesh?.dispose()
    authority.dispose()
  })

  /** The connections and requests of each cluster. */
  async function counts(): Promise<Map<string, number>> {
    const { cluster_statuses: clusters } = JSON.parse(await pod.admin('/clusters?format=json')) as {
      cluster_statuses: { name: string; host_statuses?: { stats?: { name: string; value?: string }[] }[] }[]
    }
    return new Map(
      clusters.map(({ name, host_statuses: all = [] }) => {
        const stats = all.flatMap(({ stats: each = [] }) => each).filter((each) => /^(cx|rq)_total$/.test(each.name))
        return [name, stats.reduce((sum, { value = '0' }) => sum + Number(value), 0)]
      }),
    )
  }

  /** What Envoy does with a request: the status, where it reads requests, and the clusters that something was sent to. */
  async function seen(scheme: string, host: string, port: number, address: string) {
    const before = await counts()
    const status =
      scheme === 'http'
        ? (await pod.app.do('call', { url: `http://${address}:${port}/`, headers: { host: `${host}:${port}` } })).status
        : (await pod.app.do('dialTls', { host: address, port, servername: /^[\d.]+$/.test(host) ? '' : host })) === 'tls'
          ? 200
          : 0
    const after = await counts()
    return { status, clusters: [...after].filter(([name, count]) => count > (before.get(name) ?? 0)).map(([name]) => name) }
  }

  async function said(scheme: string, host: string, port: number) {
    const answer = await client.askedAgain(() => client.rpcs.routeRequest({ proxy: 'client', scheme, host: `${host}:${port}`, port, path: '/' }))
    return { ...answer, clusters: answer.routing?.clusters.map(({ name }) => name) ?? [] }
  }

  const request = fc.record({
    scheme: fc.constantFrom('http', 'http', 'https'),
    host: fc.constantFrom(...hosts),
    port: fc.constantFrom(...Object.values(ports)),
  })

  for (const [name, spec] of Object.entries(sidecars))
    it(`take the way that is said of them: Sidecar ${name}`, async () => {
      mesh.write('sidecar.yaml', meshDocument('networking', 'Sidecar', name, spec))
      let updates = ''
      await until('the Sidecar', async () => {
        const { proxies } = await client.asked(client.rpcs.listProxies({ proxy: 'client' }))
        const { sidecar } = await client.asked(client.rpcs.getProxyConfig({ proxy: 'client', sidecar: true, names: ['none'] }))
        const before = updates
        updates = await pod.admin('/stats?filter=update_success')
        const isInForce = JSON.stringify(sidecar).includes(`"${name}"`) && proxies.every(({ types }) => types.every(({ current }) => current))
        return isInForce && updates === before
      })
      const wrong: string[] = []
      for (const { scheme, host, port } of fc.sample(request, { numRuns: runs(250), seed })) {
        const isOwn = port === ports.http && name === 'local'
        const [resolved = ''] = await pod.app.do('resolve', { name: `${host}.` })
        const address = isOwn ? '127.0.0.2' : /^[\d.]+$/.test(host) ? host : (addresses[host] ?? (/^\d/.test(resolved) ? resolved : stranger))
        const says = await said(scheme, host, port)
        // What is at an address that is no service's, and what it reads, is known to nobody. At addresses that the pod's DNS made up there is nobody.
        const isPassedOn = says.decidedBy === 'cluster' && says.status === 200
        const isSame = ({ status, clusters }: Awaited<ReturnType<typeof seen>>) =>
          (isPassedOn ? clusters.length > 0 || address.startsWith('240.240.') : status === says.status) &&
          clusters.every((each) => says.clusters.includes(each))
        let is = await seen(scheme, host, port, address)
        // Envoy forgets a host of PassthroughCluster seconds after its last connection, with what it counted of it: meanwhile the number may be what it was before.
        if (!isSame(is)) is = await seen(scheme, host, port, address)
        if (!isSame(is))
          wrong.push(
            `${scheme}://${host}:${port} at ${address}: Envoy ${is.status} ${is.clusters}; said ${says.status} ${says.clusters} (${says.reason})`,
          )
      }
      expect(wrong).to.deep.equal([])
    })
})
