/** Answers about the proxies of three replicas of discovery in a real cluster (docs/operation.md, A1 to A6). */
import { type ChildProcess, spawn } from 'node:child_process'
import { fromBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { ClientConfigSchema, ClientStatusResponseSchema } from '../../protocols/gen/envoy/service/status/v3/csds_pb.js'
import type { ReplicaState } from '../../protocols/messages/replicas.ts'
import { TestCluster } from '../harness/cluster.ts'
import { manifest } from '../harness/cluster-mesh.ts'
import { discoveryScript } from '../harness/commands.ts'
import { grpcCall } from '../harness/grpc-call.ts'
import { establish, meshDefinitions } from '../harness/mesh-definitions.ts'
import { Output } from '../harness/output.ts'
import { OwnTime } from '../harness/own-time.ts'
import { runCommand, Service } from '../harness/service.ts'
import { namesOf, nodesOf, Watcher } from '../harness/status-watcher.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

interface Row extends Partial<ReplicaState> {
  readonly proxy?: string
  readonly replica?: string
}

const route = (timeout: string) =>
  `apiVersion: networking.mesh.io/v1\nkind: VirtualService\nmetadata: {name: a, namespace: shop}\nspec: {hosts: [a.test], http: [{timeout: ${timeout}, route: [{destination: {host: a.test}}]}]}`
const entry =
  'apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: a, namespace: shop}\nspec: {hosts: [a.test], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, endpoints: [{address: 10.9.0.1}]}'

const filter = (mark: string) =>
  `apiVersion: networking.mesh.io/v1alpha3\nkind: EnvoyFilter\nmetadata: {name: extra, namespace: shop}\nspec: {configPatches: [{applyTo: LISTENER, match: {context: SIDECAR_INBOUND}, patch: {operation: MERGE, value: {stat_prefix: marked-${mark}}}}]}`

describe('answers about the proxies of all replicas', function () {
  this.timeout(400_000)
  let cluster: TestCluster
  const services: Service[] = []
  const clients: XdsClient[] = []
  const watchers: Watcher[] = []
  const commands: ChildProcess[] = []
  let stopped = 0

  const discovery = async (kubeconfig: string): Promise<Service> => {
    const flags = ['--registries', 'Orchestrator', '--orchconfig', kubeconfig, '--configDir', '', '--writers', '1']
    const env = {
      ENABLE_DEBUG_ON_LOOPBACK: 'true',
      MESHD_CA_STATE_DIR: '',
      MESHD_REPLICA_ADDRESS: '127.0.0.1:0',
      PILOT_ENABLE_STATUS: 'true',
      POD_NAME: `replica-${services.length}`,
    }
    const made = new Service({ env, flags })
    services.push(made)
    await made.start()
    return made
  }
  const watch = (of: Service) => {
    const watcher = new Watcher(of.grpcPort)
    watchers.push(watcher)
    return watcher
  }
  const clientStatus = async (of: Service) => {
    const { messages } = await grpcCall(
      `http://127.0.0.1:${of.grpcPort}`,
      '/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus',
      new Uint8Array(),
    )
    return fromBinary(ClientStatusResponseSchema, messages[0] as Buffer).config
  }
  const rows = (of: Service, page: string) => of.debug<Row[]>(page)
  const proxies = async (of: Service, page = 'syncz') => (await rows(of, page)).flatMap(({ proxy }) => proxy ?? []).sort()
  const silent = (list: readonly Row[]) => list.filter(({ answered }) => answered === false)
  const number = (replica: string | undefined) => /^replica-(\d)-/.exec(replica ?? '')?.[1]

  before(async () => {
    cluster = await TestCluster.start()
    cluster.apply('apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}')
    const definitions = meshDefinitions()
    establish(cluster, ...['serviceentries', 'virtualservices', 'envoyfilters'].map((plural) => definitions.get(plural) as string))
    cluster.apply(entry, route('1s'))
    const kubeconfig = cluster.roleConfig()
    cluster.apply(manifest('optional/status.yaml'))
    for (let each = 0; each < 3; each++) {
      const service = await discovery(kubeconfig)
      const node = sidecarNode(`10.1.0.${each + 1}`, `pod${each}`, 'shop')
      clients.push(await new XdsClient(service.grpcPort, node, each % 2 === 0).connect().ready())
    }
  })
  after(async () => {
    for (const command of commands) command.kill()
    for (const client of [...clients, ...watchers]) client.close()
    // One that stands still does not end.
    if (stopped !== 0) process.kill(stopped, 'SIGCONT')
    for (const each of services) await each.dispose()
    await cluster?.dispose()
  })

  it('have them at whichever replica is asked, once each, and its own alone if that is asked for', async () => {
    const all = ['pod0.shop', 'pod1.shop', 'pod2.shop']
    for (const service of services) await until('the proxies of all', async () => (await proxies(service)).join() === all.join())
    for (const [index, service] of services.entries()) {
      const list = await rows(service, 'syncz')
      expect(silent(list)).to.deep.equal([])
      expect(list.map(({ proxy, replica }) => `${proxy} ${number(replica)}`).sort()).to.deep.equal(all.map((name, at) => `${name} ${at}`))
      expect(await proxies(service, 'syncz?replicas=own')).to.deep.equal([`pod${index}.shop`])
    }
  })

  const says = async (text: RegExp, of = ['virtualservices.networking.mesh.io', 'a']) => {
    let last = ''
    await until(`the status ${text}`, () => {
      const own = '{.status.observedGeneration} {.status.conditions[0].status} {.status.conditions[0].message}'
      last = cluster.kubectl(['get', '-n', 'shop', ...of, '-o', `jsonpath=${own}`])
      return text.test(last)
    }).catch((error: Error) => expect.fail(`${error.message}; it was "${last}"`))
  }
  const leaderOf = async () => {
    const leading = await Promise.all(services.map((each) => each.metrics()))
    return leading.findIndex((text) => text.includes('pilot_leader_election_leading{lease="mesh-status-leader"} 1'))
  }

  it('refuse patches in the status that the leader writes, whichever replica they are at and whenever they connect', async () => {
    const extra = ['envoyfilters.networking.mesh.io', 'extra']
    const other = ((await leaderOf()) + 1) % 3
    const [service, client] = [services[other], clients[other]] as [Service, XdsClient]
    const refuseWith = { text: 'marked-', message: 'Error adding/updating listener(s) virtualInbound: not today' }
    client.refuseWith = refuseWith
    cluster.apply(filter('first'))
    await says(/^1 False 2\/3 proxies up to date\. 1 refuse it, and have their configuration without what they refuse: .*not today$/, extra)
    client.refuseWith = undefined
    cluster.apply(filter('second'))
    await says(/^2 True 3\/3 proxies up to date\.$/, extra)
    const late = new XdsClient(service.grpcPort, sidecarNode('10.1.0.9', 'late', 'shop'), false)
    late.refuseWith = refuseWith
    await late.connect().ready()
    await says(/^2 False 3\/4 proxies up to date\. 1 refuse it, and have their configuration without what they refuse: .*not today$/, extra)
    late.close()
    await says(/^2 True 3\/3 proxies up to date\.$/, extra)
  })

  it('count in the status that the leader writes, which names a replica that stands still', async () => {
    cluster.apply(route('2s'))
    await says(/^2 True 3\/3 proxies up to date\.$/)
    const still = ((await leaderOf()) + 1) % 3
    stopped = services[still]?.pid ?? 0
    process.kill(stopped, 'SIGSTOP')
    cluster.apply(route('3s'))
    await says(new RegExp(`^3 False 2/2 proxies up to date\\. Not counted, since there is no answer of the replica: replica-${still}-`))
    process.kill(stopped, 'SIGCONT')
    stopped = 0
    await says(/^3 True 3\/3 proxies up to date\.$/)
  })

  it('count the generation that each proxy has, and show the configuration of a proxy elsewhere', async () => {
    const [one] = services as [Service]
    cluster.apply(route('4s'))
    const page = 'config_distribution?resource=VirtualService/shop/a'
    await until('the generation at all proxies', async () => {
      const list = (await rows(one, page)) as (Row & { route_acked?: string })[]
      return list.length === 3 && list.every(({ route_acked }) => route_acked === '4')
    })
    const counts = await one.debug<{ proxies: number; replicas: ReplicaState[] }>(`${page}&count=1`)
    expect(counts.proxies).to.equal(3)
    expect(counts.replicas.map(({ answered }) => answered)).to.deep.equal([true, true, true])
    const dump = JSON.stringify(await one.debug('config_dump?proxyID=pod2.shop'))
    expect(dump).to.contain('a.test')
    const explanation = `explain?proxyID=pod1.shop&type=cds&name=${encodeURIComponent('outbound|80||a.test')}`
    // On a busy machine the thread that explains may take longer to start than a replica is waited for (A4).
    const isExplained = async () => (await one.debug<{ exists: boolean }>(explanation).catch(() => undefined))?.exists === true
    await until('an explanation of the other replica', isExplained)
    await runCommand(['request', 'POST', '/debug/force_disconnect', 'proxyID=pod2.shop'], one.env)
    await until('the end of the stream', () => clients[2]?.closed !== undefined)
  })

  it('tell those who watch of the proxies of all; a replica that stands still is named, ends their streams, and is told of when it goes on', async () => {
    const [one, two] = services as [Service, Service]
    const types = ['mesh.io/disconnect', 'mesh.io/nack', 'mesh.io/connect'] as const
    const first = watch(one)
    for (const type of types) first.ask(type)
    const told = (watcher: Watcher, type: (typeof types)[number]) => watcher.of(type).flatMap(namesOf)
    // One that has much to do may not answer in time at first, and then is told of later.
    await until('the proxies of all', () => ['pod0.shop', 'pod1.shop'].every((name) => told(first, 'mesh.io/connect').includes(name)))
    const late = new XdsClient(two.grpcPort, sidecarNode('10.1.0.9', 'late', 'shop'), true)
    late.refuseNext = 'not this one'
    clients.push(late.connect())
    await until('the proxy at the other replica', () => told(first, 'mesh.io/connect').includes('late.shop'))
    await until('its refusal', () => first.of('mesh.io/nack').length > 0)
    late.close()
    await until('its end', () => told(first, 'mesh.io/disconnect').includes('late.shop'))
    process.kill(two.pid, 'SIGSTOP')
    stopped = two.pid
    await until('the end of the stream', () => first.ended !== undefined)
    expect(first.ended?.details).to.match(/replicas do not answer any more: replica-1-/)
    const second = watch(one)
    const nodes = nodesOf(await second.ask('mesh.io/connect').answered('mesh.io/connect'))
    const named = nodes.find(({ id }) => number(id) === '1')
    expect(named?.metadata).to.deep.include({ ANSWERED: false })
    expect(nodes.map(({ id }) => id.split('~')[2]))
      .to.include('pod0.shop')
      .and.not.to.include('pod1.shop')
    const state = await watch(one).ask('mesh.io/debug/syncz').answered('mesh.io/debug/syncz')
    const rows = state.resources.map(({ value }) => fromBinary(ClientConfigSchema, value))
    expect(rows.find(({ node }) => node?.id === named?.id)).to.deep.include({ xdsConfig: [], genericXdsConfigs: [] })
    expect((await clientStatus(one)).map(({ node }) => node?.id)).to.include(named?.id)
    process.kill(two.pid, 'SIGCONT')
    stopped = 0
    await until('its proxies', () => told(second, 'mesh.io/connect').includes('pod1.shop'))
    expect(second.ended).to.equal(undefined)
    await until('an answer of all', async () => (await clientStatus(one)).every(({ node }) => number(node?.id) === undefined))
  })

  it('name a replica that stands still, within the bound, and one that was killed until its Lease is gone', async () => {
    const [one, two, three] = services as [Service, Service, Service]
    const pushes = new Output()
    const watching = spawn(process.execPath, [discoveryScript, 'push', 'watch', '--json', '--past'], { env: { ...process.env, ...one.env } })
    commands.push(watching)
    pushes.follow(watching)
    await pushes.says(/"replica":"replica-1-/)
    process.kill(two.pid, 'SIGSTOP')
    stopped = two.pid
    const asking = new OwnTime()
    const list = await rows(one, 'syncz')
    expect(asking.ms()).to.be.below(5000)
    expect(silent(list).map(({ name }) => number(name))).to.deep.equal(['1'])
    const missing = await one.debug('config_dump?proxyID=pod1.shop').catch((error: Error) => error.message)
    expect(missing).to.match(/503 .*of these replicas it is not known: replica-1-/)
    await pushes.says(/replica-1-\S+ has not answered/)
    expect((await runCommand(['proxy-status'], one.env)).stderr).to.match(/replica-1-\S+ has not answered/)
    process.kill(two.pid, 'SIGCONT')
    stopped = 0
    await until('an answer of the replica that goes on', async () => silent(await rows(one, 'syncz')).length === 0)
    await three.stop('SIGKILL')
    await until(
      'the killed one to be named',
      async () =>
        silent(await rows(one, 'syncz'))
          .map(({ name }) => number(name))
          .join() === '2',
    )
    expect((await clientStatus(one)).flatMap(({ node }) => number(node?.id) ?? [])).to.deep.equal(['2'])
    const nodes = nodesOf(await watch(one).ask('mesh.io/connect').answered('mesh.io/connect'))
    expect(nodes.flatMap(({ id }) => number(id) ?? [])).to.deep.equal(['2'])
    await two.stop()
    await until('the one that ended to be gone', async () => !JSON.stringify(await rows(one, 'syncz')).includes('replica-1-'))
  })
})
