/**
 * Discovery behind a relay that harms what passes between it and a real API server: it has in the end what a fresh process has, and removes
 * nothing because the server is away (docs/operation.md, C3 to C10).
 */
import { expect } from 'chai'
import type { ClusterStatus, KindStatus } from '../../protocols/messages/orchestrator.ts'
import { endpointType } from '../../src/xds/type-urls.ts'
import { TestCluster } from '../harness/cluster.ts'
import { HostileRelay } from '../harness/hostile-relay.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const namespace = 'apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}'
const workload = (name: string, replicas: number) => `apiVersion: apps/v1
kind: Deployment
metadata: {name: ${name}, namespace: shop}
spec:
  replicas: ${replicas}
  selector: {matchLabels: {app: ${name}}}
  template:
    metadata: {labels: {app: ${name}}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: idle, image: idle}]
---
apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: shop}
spec: {selector: {app: ${name}}, ports: [{name: http, port: 80, targetPort: 8080}]}`

/** A value with the fields of its objects in the order of their names. */
const inOrder = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(inOrder)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, field]) => [name, inOrder(field)]),
  )
}

describe('discovery behind a hostile relay', () => {
  let cluster: TestCluster
  let relay: HostileRelay
  /** The process that all is done to, and a proxy of it. */
  let one: Service
  let client: XdsClient
  const running: Service[] = []
  const clients: XdsClient[] = []

  const discovery = (server: string, env: Record<string, string> = {}): Service => {
    const name = `admin-${running.length}`
    const made = new Service({
      env: { PILOT_DEBOUNCE_AFTER: '10ms', ...env },
      flags: ['--registries', 'Orchestrator', '--orchconfig', cluster.tokenConfig(name, token, server), '--resync', '2s'],
    })
    running.push(made)
    return made
  }
  let token: string
  const connect = async (to: Service): Promise<XdsClient> => {
    const client = new XdsClient(to.grpcPort, sidecarNode('10.99.0.1', `a-${clients.length}`, 'shop'), true)
    clients.push(client.connect())
    return client.ready()
  }
  const kind = async (of: Service, name: string): Promise<KindStatus> => {
    const [status] = await of.debug<ClusterStatus[]>('clusterz')
    return status?.kinds.find((each) => each.kind === name) as KindStatus
  }
  const metric = async (of: Service, series: string) =>
    Number(
      (await of.metrics())
        .split('\n')
        .find((line) => line.startsWith(`${series} `))
        ?.slice(series.length + 1) ?? 0,
    )
  /** All that a process knows of services, endpoints and objects: a text for each, in which the order of fields says nothing. */
  const model = async (of: Service): Promise<string[]> => {
    const text = (value: unknown): string => JSON.stringify(inOrder(value))
    const [services, endpoints, objects] = await Promise.all([
      of.debug<object[]>('registryz'),
      of.debug<{ ep: object[] }[]>('endpointz'),
      of.debug<object[]>('configz'),
    ])
    return [...services, ...endpoints.map((row) => ({ ...row, ep: row.ep.map(text).sort() })), ...objects].map(text).sort()
  }
  /** Waits until a process knows what a fresh one does that is connected to the server itself. */
  const converges = async (one: Service) => {
    const fresh = discovery(cluster.server)
    await fresh.start()
    const models: string[][] = []
    try {
      await until('the model of a fresh process', async () => {
        models.splice(0, 2, await model(one), await model(fresh))
        return models[0]?.join() === models[1]?.join()
      }).catch(() => expect(models[0]).to.deep.equal(models[1]))
    } finally {
      await fresh.stop()
    }
  }
  const scale = (name: string, replicas: number) => cluster.kubectl(['scale', 'deployment', name, '-n', 'shop', '--replicas', `${replicas}`])
  /** Waits until as many pods are ready, so that the slices of the service do not change any more. */
  const settles = (name: string, replicas: number) =>
    until(`${replicas} pods of ${name}`, () => {
      const words = (args: readonly string[]) =>
        cluster
          .kubectl(['get', '-n', 'shop', ...args])
          .split(/\s+/)
          .filter(Boolean)
      const pods = words(['pods', '-l', `app=${name}`, '-o', 'jsonpath={.items[*].status.podIP}'])
      const path = 'jsonpath={range .items[*].endpoints[?(@.conditions.ready==true)]}{.addresses[0]} {end}'
      const endpoints = words(['endpointslices', '-l', `kubernetes.io/service-name=${name}`, '-o', path])
      return pods.length === replicas && JSON.stringify(pods.sort()) === JSON.stringify(endpoints.sort())
    })
  const seen = (client: XdsClient) =>
    [...(client.resources.get(endpointType) ?? [])].map(([name, bytes]) => `${name} ${Buffer.from(bytes).toString('base64')}`)

  before(async () => {
    cluster = await TestCluster.start('n1=region1/zone1,n2=region1/zone2')
    cluster.apply(namespace, workload('web', 3), workload('api', 2), 'apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: pilot, namespace: shop}')
    cluster.kubectl(['create', 'clusterrolebinding', 'pilot', '--clusterrole', 'cluster-admin', '--serviceaccount', 'shop:pilot'])
    token = cluster.kubectl(['create', 'token', '-n', 'shop', 'pilot']).trim()
    relay = await HostileRelay.start(cluster.server, cluster.dir)
    await Promise.all([settles('web', 3), settles('api', 2)])
  })
  after(async () => {
    for (const client of clients) client.close()
    await Promise.all(running.map((each) => each.dispose()))
    relay?.close()
    await cluster?.dispose()
  })
  afterEach(function () {
    relay.harm = 0
    relay.loses = () => false
    relay.withholdsEnds = false
    relay.back()
    if (this.currentTest?.state === 'failed') for (const each of running) console.error(each.output.soFar().slice(-3000))
  })

  it('reads pages where streamed lists are refused, and all in one piece when the store has removed the list under way', async () => {
    relay.refusesStreams = true
    relay.pageLength = 2
    const path = '/api/v1/pods'
    let isCompacted = false
    relay.beforePage = async (of, next) => {
      if (of !== path || next === '' || isCompacted) return
      isCompacted = true
      scale('web', 4)
      await settles('web', 4)
      cluster.compactStore()
      // What it keeps in memory of the list goes with it.
      cluster.signalServer('SIGKILL')
      await until('the API server to be there again', () => cluster.kubectl(['get', '--raw', '/readyz']) === 'ok')
    }
    const paging = discovery(relay.address)
    await paging.start()
    await paging.output.says(/list of pods failed: .*(continue|too old)/)
    // The rest of a list that has expired expires again where the store is compacted often: the next one comes in one piece.
    expect([relay.pages.filter((each) => each === path).length >= 2, relay.whole.includes(path)]).to.deep.equal([true, true])
    const pods = await kind(paging, 'Pod')
    expect([pods.mode, pods.lists, pods.objects >= 6]).to.deep.equal(['watching', 1, true])
    await converges(paging)
    relay.refusesStreams = false
    relay.pageLength = undefined
    await paging.stop()
  })

  it('reads pages where the server accepts a streamed list and does not end it', async () => {
    relay.withholdsEnds = true
    relay.pages.length = 0
    const waiting = discovery(relay.address)
    const started = waiting.start()
    const body = () => fetch(`http://127.0.0.1:${waiting.httpPort}/ready`).then((answer) => answer.text(), String)
    await until('the kinds that it waits for', async () => (await body()).includes('pods have not been listed whole yet (streaming, '))
    await started
    relay.withholdsEnds = false
    // Said of the kind whose silence ends first: one of all namespaces, or the ConfigMap of the mesh, whose name has a blank.
    await waiting.output.says(/watch of .+ failed: nothing came for 10 s; the service is not ready before they are listed/)
    const pods = await kind(waiting, 'Pod')
    expect([pods.mode, pods.lists, relay.pages.includes('/api/v1/pods')]).to.deep.equal(['watching', 1, true])
    await converges(waiting)
    await waiting.stop()
  })

  it('lists again after the store has removed what its watches would go on from, and keeps serving meanwhile', async () => {
    one = discovery(relay.address)
    await one.start()
    client = await connect(one)
    const before = seen(client)
    const lists = (await kind(one, 'Pod')).lists
    relay.away()
    await one.output.says(/failed: .*the last state stays/)
    scale('web', 2)
    await settles('web', 2)
    cluster.compactStore()
    cluster.signalServer('SIGKILL')
    await until('the API server to be there again', () => cluster.kubectl(['get', '--raw', '/readyz']) === 'ok')
    expect(seen(client), 'while the server is away').to.deep.equal(before)
    relay.back()
    await until('another list', async () => (await kind(one, 'Pod')).lists > lists)
    await converges(one)
    expect([client.removed, client.closed]).to.deep.equal([[], undefined])
    expect(seen(client)).not.to.deep.equal(before)
  })

  it('repairs, and counts, what a watch was never told', async () => {
    const repairs = () => metric(one, 'pilot_orch_audit_repairs_total{kind="EndpointSlice"}')
    // A server that was away may have told of a change later than an audit waits.
    const before = await repairs()
    // A label in protobuf: the length stands before the text.
    relay.loses = (event) => event.includes('EndpointSlice') && event.includes('kubernetes.io/service-name\x12\x03api')
    scale('api', 1)
    await settles('api', 1)
    await until('a repair', async () => (await repairs()) > before)
    expect(relay.done.lose).to.be.greaterThan(0)
    await converges(one)
    expect((await kind(one, 'EndpointSlice')).repairs).to.equal(await repairs())
  })

  it('has what a fresh process has after a history of losses, repetitions, disorder, and a server that is away', async () => {
    relay.harm = 0.5
    for (const [web, api] of [
      [4, 3],
      [1, 2],
      [3, 1],
    ] as const) {
      scale('web', web)
      relay.away()
      scale('api', api)
      await settles('web', web)
      relay.back()
      await settles('api', api)
    }
    cluster.kubectl(['delete', 'service', '-n', 'shop', 'api'])
    relay.harm = 0
    await converges(one)
    expect(client.closed).to.equal(undefined)
  })

  it('says which kinds have become stale, and that they no longer are', async () => {
    const quiet = discovery(cluster.server, { PILOT_ORCH_STALE_AFTER: '3s' })
    await quiet.start()
    await quiet.output.says(/cluster Orchestrator: namespaces are stale: the API server has sent nothing about them for 3 s; the last state stays/)
    expect(await metric(quiet, 'pilot_orch_watch_stale{kind="Namespace"}')).to.equal(1)
    expect((await kind(quiet, 'Namespace')).isStale).to.equal(true)
    const ready = await fetch(`http://127.0.0.1:${quiet.httpPort}/ready`)
    expect([ready.status, await ready.text()]).to.satisfy(
      ([status, text]: [number, string]) => status === 200 && text.includes('namespaces are stale'),
    )
    cluster.kubectl(['label', 'namespace', 'shop', 'touched=yes'])
    await quiet.output.says(/namespaces are no longer stale, after \d+ s/)
    await quiet.output.says('namespaces are stale', 1, 1)
    // The namespace of its Leases does not exist: that is said once.
    await quiet.output.says(/lease mesh-system\/mesh-leader: create .* failed/, 1, 1)
    quiet.output.lacks('requests succeed again')
  })
})
