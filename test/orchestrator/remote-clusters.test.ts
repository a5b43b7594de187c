/** Another real cluster joins the mesh by a remote secret, changes, fails and leaves (docs/operation.md, J1 to J7). */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fromBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { parse, stringify } from 'yaml'
import { ClusterLoadAssignmentSchema } from '../../protocols/gen/envoy/config/endpoint/v3/endpoint_pb.js'
import { clusterType, endpointType, routeType } from '../../src/xds/type-urls.ts'
import { TestCluster } from '../harness/cluster.ts'
import { HostileRelay } from '../harness/hostile-relay.ts'
import { OwnTime } from '../harness/own-time.ts'
import { SecuredDiscovery } from '../harness/secured-discovery.ts'
import { keys } from '../harness/signing-requests.ts'
import { SlowRelay } from '../harness/slow-relay.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const shop = [
  'apiVersion: v1\nkind: Namespace\nmetadata: {name: mesh-system}',
  'apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}',
  'apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: cart, namespace: shop}',
]
const service = (name: string) => `apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: shop}
spec: {ports: [{name: http, port: 80, targetPort: 8080}]}`
/** Endpoints that need no pods. */
const slice = (name: string, ...addresses: readonly string[]) => `apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}, namespace: shop, labels: {kubernetes.io/service-name: ${name}}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [${addresses.map((address) => `{addresses: ["${address}"]}`)}]`

interface ClusterRow {
  readonly name: string
  readonly server?: string
  readonly isComplete: boolean
  readonly actor: string
  readonly secret?: string
  readonly trouble?: string
}

describe('another cluster of the mesh', () => {
  let near: TestCluster
  let far: TestCluster
  let discovery: SecuredDiscovery
  let local: XdsClient
  let remote: XdsClient
  let relay: HostileRelay
  const slowRelays: SlowRelay[] = []
  const clients: XdsClient[] = []

  /** Writes the remote secret: the texts of its keys. */
  const write = (texts: Readonly<Record<string, string>>, label = 'mesh/multiCluster') => {
    const data = Object.fromEntries(Object.entries(texts).map(([id, text]) => [id, Buffer.from(text).toString('base64')]))
    const metadata = { name: 'remotes', namespace: 'mesh-system', labels: { [label]: 'true' } }
    near.kubectl(['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata, data }))
  }
  const configOf = (server = far.server) => readFileSync(far.roleConfig(server), 'utf8')
  const connect = async (name: string, cluster: string) => {
    const client = new XdsClient(discovery.service.grpcPort, sidecarNode('10.99.0.1', name, 'shop', { CLUSTER_ID: cluster }), false)
    clients.push(client.connect())
    return client.ready()
  }
  const seen = (client: XdsClient, name: string): string[] | undefined => {
    const cluster = `outbound|80||${name}.shop.svc.cluster.local`
    const bytes = client.resources.get(endpointType)?.get(cluster)
    if (!client.resources.get(clusterType)?.has(cluster) || !bytes) return undefined
    return fromBinary(ClusterLoadAssignmentSchema, bytes)
      .endpoints.flatMap(({ lbEndpoints }) =>
        lbEndpoints.map(({ hostIdentifier }) => {
          const at = hostIdentifier.case === 'endpoint' ? hostIdentifier.value.address?.address : undefined
          return at?.case === 'socketAddress' ? at.value.address : ''
        }),
      )
      .sort()
  }
  const has = (client: XdsClient, name: string, addresses: readonly string[] | undefined) =>
    until(`${name} at ${addresses?.join()}`, () => JSON.stringify(seen(client, name)) === JSON.stringify(addresses))
  const readiness = async () => (await fetch(`http://127.0.0.1:${discovery.service.httpPort}/ready`)).text()
  const rows = () => discovery.service.debug<ClusterRow[]>('clusterz')

  before(async () => {
    ;[near, far] = await Promise.all([TestCluster.start(), TestCluster.start()])
    for (const cluster of [near, far]) {
      cluster.stopControllers()
      cluster.apply(...shop, ...['web', 'probe'].map(service))
    }
    near.apply(slice('web', '10.1.0.1'), slice('probe', '10.1.0.7'))
    far.apply(service('only-far'), slice('web', '10.2.0.1'), slice('only-far', '10.2.0.2'))
    discovery = await SecuredDiscovery.start(near.roleConfig(), { PILOT_DEBOUNCE_AFTER: '10ms', PILOT_REMOTE_CLUSTER_TIMEOUT: '3s' })
    local = await connect('local', 'Orchestrator')
    remote = await connect('remote', 'far')
  })
  after(async () => {
    far?.signalServer('SIGCONT')
    for (const client of clients) client.close()
    relay?.close()
    for (const each of slowRelays) each.close()
    await discovery?.dispose()
    await Promise.all([near?.dispose(), far?.dispose()])
  })

  it('joins by a remote secret: services of one name are one, each proxy has the addresses of its own cluster', async () => {
    expect(seen(local, 'web')).to.deep.equal(['10.1.0.1'])
    write({ far: configOf() })
    for (const client of [local, remote]) {
      await has(client, 'web', ['10.1.0.1', '10.2.0.1'])
      await has(client, 'only-far', ['10.2.0.2'])
    }
    const [ofNear, ofFar] = [near, far].map((cluster) => cluster.kubectl(['get', 'service', '-n', 'shop', 'web', '-o', 'jsonpath={.spec.clusterIP}']))
    const routes = (client: XdsClient) => client.resources.get(routeType)?.get('80')?.toString('latin1') ?? ''
    await until('the addresses of each cluster', () => routes(local).includes(ofNear as string) && routes(remote).includes(ofFar as string))
    expect([routes(local).includes(ofFar as string), routes(remote).includes(ofNear as string)]).to.deep.equal([false, false])
    const services = await discovery.service.debug<{ hostname: string }[]>('registryz?cluster=far')
    expect(services.map(({ hostname }) => hostname)).to.include.members(['web.shop.svc.cluster.local', 'only-far.shop.svc.cluster.local'])
    expect(await discovery.service.metrics()).to.contain('pilot_orch_watch_age_seconds{kind="Pod of far"}')
    expect((await rows()).map(({ name, isComplete }) => [name, isComplete])).to.deep.equal([
      ['Orchestrator', true],
      ['far', true],
    ])
  })

  it('is followed once where a second id leads to it, which is named, and followed once the first is gone', async () => {
    const said = (id: string, of: string) =>
      `Secret mesh-system/remotes, cluster ${id}: it is the cluster ${of}, by the uid of its namespace kube-system; it is not followed by a second id`
    const followed = (...names: readonly string[]) =>
      until(`${names.join()} to be followed`, async () => {
        const list = (await rows()).filter(({ actor }) => actor !== '')
        return list.map(({ name }) => name).join() === names.join() && list.every(({ isComplete }) => isComplete)
      })
    const both = ['10.1.0.1', '10.2.0.1']
    write({ far: configOf(), twin: configOf(), own: readFileSync(near.roleConfig(), 'utf8') })
    for (const [id, of] of [
      ['twin', 'far'],
      ['own', 'Orchestrator'],
    ] as const) {
      await discovery.service.output.says(said(id, of))
      await until(`${id} in the readiness`, async () => (await readiness()).includes(said(id, of)))
    }
    await followed('Orchestrator', 'far')
    const secret = 'mesh-system/remotes'
    const why = (of: string) => `it is the cluster ${of}, by the uid of its namespace kube-system; it is not followed by a second id`
    expect((await rows()).slice(1).map(({ name, actor, secret, trouble }) => ({ name, actor, secret, trouble }))).to.have.deep.members([
      { name: 'far', actor: 'source/orchestrator/far', secret, trouble: '' },
      { name: 'twin', actor: '', secret, trouble: why('far') },
      { name: 'own', actor: '', secret, trouble: why('Orchestrator') },
    ])
    await has(local, 'web', both)
    write({ twin: configOf() })
    await followed('Orchestrator', 'twin')
    await has(local, 'web', both)
    write({ far: configOf() })
    await followed('Orchestrator', 'far')
    await has(local, 'web', both)
  })

  it('is on the page of clusters where its key is refused, with the field that is the reason, and goes on as it was', async () => {
    const runs = parse(configOf()) as { users: [{ name: string; user: object }] }
    runs.users[0].user = { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'sh' } }
    const trouble = async (name: string) => {
      const row = (await rows()).find((each) => each.name === name)
      return row && `${row.secret} ${row.actor === '' ? 'not followed' : 'followed'}: ${row.trouble}`
    }
    write({ far: stringify(runs), runs: stringify(runs), text: 'no configuration' })
    await until('the refused keys', async () => (await trouble('runs')) !== undefined)
    expect(await trouble('runs')).to.match(/^mesh-system\/remotes not followed: field users\[0\]\.user\.exec: .*; it is not followed$/)
    expect(await trouble('text')).to.match(/^mesh-system\/remotes not followed: .*; it is not followed$/)
    expect(await trouble('far')).to.match(/^mesh-system\/remotes followed: field users\[0\]\.user\.exec: .*; its last good state stays$/)
    write({ far: configOf() })
    await until('no trouble', async () => (await trouble('far')) === 'mesh-system/remotes followed: ' && (await rows()).length === 2)
  })

  it('reviews the tokens of its own pods, and no tokens of others', async () => {
    const token = (cluster: TestCluster) => cluster.kubectl(['create', 'token', 'cart', '-n', 'shop', '--audience', 'mesh-ca']).trim()
    const refused = '16 authentication failure'
    expect(await discovery.stream(token(far), { clusterid: 'far' })).to.equal('served')
    expect(await discovery.stream(token(near), { clusterid: 'Orchestrator' })).to.equal('served')
    expect(await discovery.stream(token(far)), 'at the wrong server').to.equal(refused)
    expect(await discovery.stream(token(near), { clusterid: 'far' }), 'at the wrong server').to.equal(refused)
    expect(await discovery.stream(token(far), { clusterid: 'nowhere' })).to.equal(refused)
    await discovery.service.output.says('the call is for the cluster "nowhere" (metadata clusterid): no remote secret that can be read names it')
  })

  it('stays as it is while its configuration is refused, whose field is named, and runs no program', async () => {
    const marker = join(near.dir, 'was-run')
    const text = configOf().replace(
      /user: \{token: [^}]*\}/,
      `user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: touch, args: ["${marker}"]}}`,
    )
    write({ far: text, other: 'current-context: [secret-text]' })
    await discovery.service.output.says('Secret mesh-system/remotes, cluster far: field users[0].user.exec: programs are not run')
    expect(await readiness())
      .to.contain('cluster far: field users[0].user.exec')
      .and.contain('its last good state stays')
      .and.contain('Secret mesh-system/remotes, cluster other: field current-context')
      .and.not.contain('secret-text')
    far.apply(slice('web', '10.2.0.1', '10.2.0.3'))
    await has(local, 'web', ['10.1.0.1', '10.2.0.1', '10.2.0.3'])
    expect(existsSync(marker)).to.equal(false)
  })

  it('is read again where its secret says that it is reached otherwise, and loses nothing meanwhile', async () => {
    relay = await HostileRelay.start(far.server, far.dir)
    let lost = 0
    const watch = setInterval(() => (lost += seen(local, 'only-far') === undefined ? 1 : 0), 5)
    write({ far: configOf(relay.address) })
    await until('the other address', async () =>
      (await rows()).some(({ name, server, isComplete }) => name === 'far' && server === relay.address && isComplete),
    )
    far.apply(slice('web', '10.2.0.4'))
    await has(local, 'web', ['10.1.0.1', '10.2.0.4'])
    clearInterval(watch)
    expect(lost).to.equal(0)
  })

  it('keeps what is known of it, and delays nobody, while its API server is away or hangs', async () => {
    relay.away()
    near.apply(slice('probe', '10.1.0.8'))
    await has(local, 'probe', ['10.1.0.8'])
    expect(seen(local, 'only-far')).to.deep.equal(['10.2.0.2'])
    relay.back()
    write({ far: configOf() })
    await until('the server itself', async () =>
      (await rows()).some(({ name, server, isComplete }) => name === 'far' && server === far.server && isComplete),
    )
    far.signalServer('SIGSTOP')
    near.apply(slice('probe', '10.1.0.9'))
    await has(local, 'probe', ['10.1.0.9'])
    expect(seen(local, 'only-far')).to.deep.equal(['10.2.0.2'])
    // It is pinged every 15 s.
    const said = /^nothing has been heard of its API server since \S+Z \(\d+ s\); its last state stays \(\d+ objects\)/
    await until('its silence in its row', async () => (await rows()).some(({ name, trouble = '' }) => name === 'far' && said.test(trouble)))
    expect((await rows()).filter(({ name }) => name !== 'far').map(({ trouble }) => trouble)).to.deep.equal([''])
    const failures = (kind: string) => async () => (await discovery.service.metrics()).includes(`pilot_orch_watch_failures_total{kind="${kind}"}`)
    await until('its failures in the metrics', failures('Pod of far'))
    expect(await failures('Pod')(), 'of the own cluster').to.equal(false)
  })

  it('is waited for at a start, for a bounded time', async () => {
    await discovery.service.stop()
    await discovery.service.start()
    expect(await discovery.service.metrics()).to.match(/^remote_cluster_sync_timeouts_total 1$/m)
    expect(await readiness()).to.contain('cluster far has not been read whole yet (Secret mesh-system/remotes); the service goes on without it')
    local = await connect('again', 'Orchestrator')
    expect([seen(local, 'only-far'), seen(local, 'web')]).to.deep.equal([undefined, ['10.1.0.1']])
    far.signalServer('SIGCONT')
    await has(local, 'only-far', ['10.2.0.2'])
    await discovery.service.stop()
    discovery.service.env.PILOT_REMOTE_CLUSTER_TIMEOUT = '80s'
    await discovery.service.start()
    local = await connect('late', 'Orchestrator')
    expect(seen(local, 'only-far'), 'the first push has all').to.deep.equal(['10.2.0.2'])
    expect(await discovery.service.metrics()).to.match(/^remote_cluster_sync_timeouts_total 0$/m)
  })

  it('keeps its endpoints while its API server is killed and starts again, and the changes of the other cluster arrive meanwhile', async () => {
    await has(local, 'only-far', ['10.2.0.2'])
    let lost = 0
    const watch = setInterval(() => (lost += seen(local, 'only-far') === undefined ? 1 : 0), 5)
    try {
      far.signalServer('SIGKILL')
      near.apply(slice('probe', '10.1.0.10'))
      await has(local, 'probe', ['10.1.0.10'])
      await until('the API server', () => {
        try {
          far.apply(slice('web', '10.2.0.5'))
          return true
        } catch {
          return false
        }
      })
      await has(local, 'web', ['10.1.0.1', '10.2.0.5'])
      near.apply(slice('probe', '10.1.0.11'))
      await has(local, 'probe', ['10.1.0.11'])
    } finally {
      clearInterval(watch)
    }
    expect(lost).to.equal(0)
  })

  it('is read, and the service is ready in time, beside one that answers a byte a second and one that answers nothing', async () => {
    for (const byteMs of [1000, undefined]) slowRelays.push(await SlowRelay.start(far.server, byteMs))
    const [slow, silent] = slowRelays as [SlowRelay, SlowRelay]
    write({ far: configOf(), slow: configOf(slow.address), silent: configOf(silent.address) })
    await discovery.service.stop()
    discovery.service.env.PILOT_REMOTE_CLUSTER_TIMEOUT = '10s'
    const starting = new OwnTime()
    await discovery.service.start()
    // The rest is the start of the process.
    expect(starting.ms()).to.be.lessThan(60_000)
    for (const name of ['slow', 'silent'])
      expect(await readiness()).to.contain(`cluster ${name} has not been read whole yet (Secret mesh-system/remotes); the service goes on without it`)
    for (const { name, trouble, secret } of await rows())
      if (name === 'slow' || name === 'silent')
        expect(`${secret} ${trouble}`).to.match(/^mesh-system\/remotes it has not been read whole yet; the service goes on without it(; .+)?$/)
    expect(await discovery.service.metrics()).to.match(/^remote_cluster_sync_timeouts_total 2$/m)
    local = await connect('beside', 'Orchestrator')
    expect(seen(local, 'only-far'), 'the first push has the one that answers').to.deep.equal(['10.2.0.2'])
    near.apply(slice('probe', '10.1.0.12'))
    await has(local, 'probe', ['10.1.0.12'])
    far.apply(slice('web', '10.2.0.6'))
    await has(local, 'web', ['10.1.0.1', '10.2.0.6'])
    // Neither is asked without a pause.
    for (const { connections } of slowRelays) expect(connections).to.be.within(1, 50)
    write({ far: configOf() })
    await until('their end', async () => (await rows()).length === 2)
  })

  it('that its id does not lead to any more loses its streams, whose tokens the other one does not know, and the change is no error', async () => {
    const other = await TestCluster.start()
    try {
      other.stopControllers()
      other.apply(...shop, service('web'), service('elsewhere'), slice('elsewhere', '10.3.0.1'))
      const headersOf = (cluster: TestCluster) => {
        const token = cluster.kubectl(['create', 'token', 'cart', '-n', 'shop', '--audience', 'mesh-ca']).trim()
        return { authorization: `Bearer ${token}`, clusterid: 'far' }
      }
      const former = headersOf(far)
      const stream = discovery.open(former)
      await until('clusters', () => stream.responses.has(clusterType))
      write({ far: readFileSync(other.roleConfig(), 'utf8') })
      await until('the end of the stream', () => stream.closed !== undefined)
      expect(stream.closed?.details).to.equal('the cluster that vouches for the caller is none of the mesh any more')
      await discovery.service.output.says(
        /warn\s+.*the cluster far is another one than before: the uid of its namespace kube-system is \S+, it was \S+;/,
      )
      const again = discovery.open(former)
      await until('a refusal', () => again.closed !== undefined)
      expect(again.closed?.details).to.equal('authentication failure')
      await has(local, 'elsewhere', ['10.3.0.1'])
      await has(local, 'only-far', undefined)
      const its = discovery.open(headersOf(other))
      await until('clusters of a proxy of the other one', () => its.responses.has(clusterType))
      discovery.service.output.lacks(/error\s.*actor source.* ended, starts again/)
      its.close()
    } finally {
      write({ far: configOf() })
      await until('the cluster', async () =>
        (await rows()).some(({ name, server, isComplete }) => name === 'far' && server === far.server && isComplete),
      )
      await other.dispose()
    }
  })

  it('leaves with its secret alone, with all that it had, and its proxies have no streams and no certificates any more', async () => {
    await has(local, 'only-far', ['10.2.0.2'])
    const token = far.kubectl(['create', 'token', 'cart', '-n', 'shop', '--audience', 'mesh-ca']).trim()
    const headers = { authorization: `Bearer ${token}`, clusterid: 'far' }
    const certified = await discovery.certify(keys.p256, headers)
    const renewed = await discovery.certify(keys.p256, {}, certified)
    const streams = [discovery.open(headers), discovery.open({}, renewed)]
    for (const stream of streams) await until('clusters', () => stream.responses.has(clusterType))
    near.kubectl(['delete', 'secret', '-n', 'mesh-system', 'remotes'])
    for (const stream of streams) await until('its end', () => stream.closed !== undefined)
    const gone = '16 the cluster that vouches for the caller is none of the mesh any more'
    expect(streams.map(({ closed }) => `${closed?.code} ${closed?.details}`)).to.deep.equal([gone, gone])
    const again = discovery.open({}, renewed)
    await until('a refusal', () => again.closed !== undefined)
    expect(again.closed?.details).to.equal('authentication failure')
    const refusal = await discovery.certify(keys.p256, {}, renewed).catch((error: Error) => error.message)
    expect(refusal).to.equal('16 request authenticate failure')
    await has(local, 'only-far', undefined)
    await has(local, 'web', ['10.1.0.1'])
    expect((await rows()).map(({ name }) => name)).to.deep.equal(['Orchestrator'])
    await until('the end of its series', async () => !/\bfar"/.test(await discovery.service.metrics()))
    write({ far: configOf() }, 'istio/multiCluster')
    await has(local, 'only-far', ['10.2.0.2'])
  })

  it('is missed by a process whose role does not permit to read Secrets when it starts, which says so, and joins when it does', async () => {
    near.forbid('secrets')
    near.forbid('secrets', 'Role')
    try {
      await discovery.service.stop()
      await discovery.service.start()
      const said =
        /remote secrets of the namespace mesh-system cannot be read: the role of this service account does not permit "(list|watch)" of "secrets" in the namespace mesh-system: .*; until it does, the service has none of the services and endpoints of other clusters, and refuses their proxies/
      expect(await readiness()).to.match(said)
      await discovery.service.output.says(said)
      expect((await rows()).map(({ name, trouble }) => [name, said.test(trouble ?? '')])).to.deep.equal([
        ['Orchestrator', false],
        ['', true],
      ])
      local = await connect('without', 'Orchestrator')
      expect([seen(local, 'only-far'), seen(local, 'web')]).to.deep.equal([undefined, ['10.1.0.1']])
    } finally {
      near.roleConfig()
    }
    await has(local, 'only-far', ['10.2.0.2'])
    await until('no trouble', async () => !(await readiness()).includes('remote secrets'))
  })

  it('is named in the namespace of --clusterRegistriesNamespace alone, which is told while it does not exist', async () => {
    await discovery.service.stop()
    discovery.service.flags.push('--clusterRegistriesNamespace', 'registries')
    await discovery.service.start()
    const missing =
      'the namespace registries, which --clusterRegistriesNamespace names, does not exist: no other cluster is followed until it has remote secrets'
    await discovery.service.output.says(missing)
    expect((await readiness()).split('\n')).to.include(missing)
    expect((await rows()).map(({ name, trouble = '' }) => [name, trouble])).to.deep.equal([
      ['Orchestrator', ''],
      ['', missing],
    ])
    near.apply(
      'apiVersion: v1\nkind: Namespace\nmetadata: {name: registries}',
      JSON.stringify({
        ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'others', namespace: 'registries', labels: { 'mesh/multiCluster': 'true' } } },
        stringData: { elsewhere: configOf() },
      }),
    )
    await discovery.service.output.says('the namespace registries, which --clusterRegistriesNamespace names, is there')
    expect(await readiness()).not.to.contain('clusterRegistriesNamespace')
    local = await connect('elsewhere', 'Orchestrator')
    await has(local, 'only-far', ['10.2.0.2'])
    expect((await rows()).map(({ name, secret = '' }) => [name, secret])).to.deep.equal([
      ['Orchestrator', ''],
      ['elsewhere', 'registries/others'],
    ])
  })
})
