/** Elections on the Leases of a real API server (docs/operation.md, L1 to L4). */
import { expect } from 'chai'
import { ClusterApi } from '../../actors/discovery/cluster/cluster-api.ts'
import { ClusterConnection } from '../../actors/discovery/cluster/cluster-connection.ts'
import { Elections } from '../../actors/discovery/leader/elections.ts'
import { type Leadership, NotLeading } from '../../actors/discovery/leader/leadership.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import { restartPolicy } from '../../actors/runtime/restarts.ts'
import { freePort } from '../../bench/ports.ts'
import { TestCluster } from '../harness/cluster.ts'
import { LocalDiscovery } from '../harness/discovery.ts'
import { OwnTime } from '../harness/own-time.ts'
import { Service } from '../harness/service.ts'
import { patienceMs, until } from '../harness/until.ts'

describe('elections on real Leases', () => {
  let cluster: TestCluster
  const open: Elections[] = []
  const apis: ClusterApi[] = []
  const said: string[] = []
  const log = () => {
    const say = (line: string) => void said.push(line)
    return { debug: say, info: say, warn: say, error: say }
  }
  const elections = (path: string, revision = ''): Elections => {
    const connection = new ClusterConnection({ from: 'file', path })
    const settings = { perSecond: 100, burst: 100, userAgent: 'test' }
    const api = new ClusterApi(connection, settings)
    apis.push(api)
    const made = new Elections({ connection, settings, api, namespace: 'mesh-system', revision, log, metrics: new MetricRegistry() })
    open.push(made)
    made.stand()
    return made
  }
  const leads = (leadership: Leadership) => until('a term', () => leadership.term > 0)
  const lease = (name: string) =>
    JSON.parse(cluster.kubectl(['get', 'lease', '-n', 'mesh-system', name, '-o', 'json'])) as {
      spec: { holderIdentity?: string; leaseDurationSeconds: number; leaseTransitions: number; acquireTime: string; renewTime: string }
      metadata: { labels?: Record<string, string> }
    }
  const write = (leadership: Leadership, term: number, name: string) =>
    leadership.inTerm(term).call(
      { verb: 'create', resource: 'configmaps', object: `default/${name}` },
      (library) => library.CoreV1Api,
      (core) => core.createNamespacedConfigMap({ namespace: 'default', body: { metadata: { name } } }),
    )
  const isThere = (name: string) => cluster.kubectl(['get', 'configmap', name, '--ignore-not-found', '-o', 'name']).trim() !== ''

  before(async () => {
    cluster = await TestCluster.start('n1=region1/zone1')
    cluster.apply(
      'apiVersion: v1\nkind: Namespace\nmetadata: {name: mesh-system}',
      'apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: poor, namespace: default}',
      // What the test writes in a term, which discovery does not.
      'apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: writes, namespace: default}\nrules: [{apiGroups: [""], resources: [configmaps], verbs: [create]}]',
      'apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: writes, namespace: default}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: writes}\nsubjects: [{kind: ServiceAccount, name: meshd, namespace: mesh-system}]',
    )
  })
  after(async () => {
    for (const each of open) await each.close()
    for (const each of apis) each.close()
    await cluster?.dispose()
  })

  it('one of two replicas leads; when it ends, it writes nothing more and the other takes the Lease at once', async () => {
    const [one, other] = [elections(cluster.kubeconfig), elections(cluster.kubeconfig)]
    const first = one.of('status')
    await leads(first)
    const { spec } = lease('mesh-status-leader')
    expect(spec.leaseDurationSeconds).to.equal(30)
    cluster.kubectl(['label', 'lease', '-n', 'mesh-system', 'mesh-status-leader', 'team=x'])
    await write(first, first.term, 'by-first')
    const { term } = first
    const standing = new OwnTime()
    const second = other.of('status')
    await until('the other one to have read the Lease', () => said.filter((line) => /GET [^?]*mesh-status-leader: 200/.test(line)).length > 0)
    await one.close()
    const failure = await write(first, term, 'late').catch((error: Error) => error)
    expect(failure).to.be.instanceOf(NotLeading)
    expect(await second.changed(0, AbortSignal.timeout(patienceMs))).to.equal(1)
    // It would read the Lease again after 7.5 s.
    expect(standing.ms()).to.be.below(7400)
    expect(lease('mesh-status-leader').spec.holderIdentity ?? '').not.to.equal(spec.holderIdentity)
    await write(second, 1, 'by-second')
    expect(lease('mesh-status-leader')).to.deep.include({ metadata: { ...lease('mesh-status-leader').metadata, labels: { team: 'x' } } })
    expect([isThere('by-first'), isThere('late'), isThere('by-second')]).to.deep.equal([true, false, true])
    await other.close()
  })

  it('a replica that withdraws writes nothing more, not even when it leads again, and the other one takes the Lease at once', async () => {
    const [one, other] = [elections(cluster.kubeconfig), elections(cluster.kubeconfig)]
    const first = one.of('analysis')
    await leads(first)
    const second = other.of('analysis')
    await until('the other one to have read the Lease', () => said.some((line) => /GET [^?]*mesh-analyze-leader: 200/.test(line)))
    const { term } = first
    const decided = first.inTerm(term)
    await one.withdraw('it is not ready')
    expect(said).to.include('lease mesh-system/mesh-analyze-leader: this replica leads no more (analysis): it is not ready')
    expect(await write(first, term, 'withdrawn').catch((error: Error) => error)).to.be.instanceOf(NotLeading)
    expect(await second.changed(0, AbortSignal.timeout(patienceMs))).to.equal(1)
    await write(second, 1, 'by-other')
    one.stand()
    await other.withdraw('it is not ready either')
    await until('the first one to lead again', () => first.term === 2)
    const late = decided.call(
      { verb: 'create', resource: 'configmaps', object: 'default/decided-before' },
      (library) => library.CoreV1Api,
      (core) => core.createNamespacedConfigMap({ namespace: 'default', body: { metadata: { name: 'decided-before' } } }),
    )
    expect(await late.catch((error: Error) => error)).to.be.instanceOf(NotLeading)
    await write(first, 2, 'by-first-again')
    expect(['withdrawn', 'by-other', 'decided-before', 'by-first-again'].map(isThere)).to.deep.equal([false, true, false, true])
    await Promise.all([one.close(), other.close()])
  })

  it('each revision has a leader of its own; a write of another term is refused', async () => {
    const canary = elections(cluster.kubeconfig, 'canary')
    const leadership = canary.of('ingress')
    expect((await write(leadership, 0, 'none').catch((error: Error) => error)) instanceof NotLeading).to.equal(true)
    await leads(leadership)
    expect(lease('mesh-leader-canary').spec.leaseTransitions).to.equal(0)
    expect((await write(leadership, 7, 'none').catch((error: Error) => error)) instanceof NotLeading).to.equal(true)
    expect(isThere('none')).to.equal(false)
  })

  it('a Lease that may not be used is told with verb and resource', async () => {
    const poor = elections(cluster.tokenConfig('poor', cluster.kubectl(['create', 'token', 'poor']).trim()))
    poor.of('ingress')
    await until('the error', () =>
      said.some((line) =>
        line.startsWith('lease mesh-system/mesh-leader: the role of this service account does not permit "get" of "leases.coordination.k8s.io"'),
      ),
    )
  })
})

describe('two discovery processes', function () {
  // A lease that nobody renews belongs to its holder for 30 s.
  this.timeout(400_000)
  let cluster: TestCluster
  let kubeconfig: string
  const services: Service[] = []
  const lease = 'mesh-namespace-controller-election'

  const made = async (): Promise<Service> => {
    const flags = ['--registries', 'Orchestrator', '--orchconfig', kubeconfig, '--writers', '1', '--namespace', 'control']
    const env = { POD_NAME: `replica-${services.length}` }
    const service = new Service({ env, flags: [...flags, '--secureGRPCAddr', `127.0.0.1:${await freePort()}`] })
    services.push(service)
    return service
  }
  const discovery = async (): Promise<Service> => {
    const service = await made()
    await service.start()
    return service
  }
  const leads = async (service: Service) => (await service.metrics()).includes(`pilot_leader_election_leading{lease="${lease}"} 1`)
  const held = () =>
    JSON.parse(cluster.kubectl(['get', 'lease', '-n', 'control', lease, '-o', 'json'])).spec as { acquireTime: string; holderIdentity?: string }
  const heldSince = () => Date.parse(held().acquireTime)
  const holder = () => held().holderIdentity ?? ''

  before(async () => {
    cluster = await TestCluster.start('n1=region1/zone1')
    kubeconfig = cluster.roleConfig(undefined, 'control')
  })
  after(async () => {
    for (const each of services) await each.dispose()
    await cluster?.dispose()
  })

  it('do not stand for election before they are ready', async () => {
    const mesh = (text: string) =>
      JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'mesh', namespace: 'control' }, data: { mesh: text } })
    cluster.apply(mesh('trustDomain: [1]'))
    const unready = await made()
    const starting = unready.start()
    const body = () => fetch(`http://127.0.0.1:${unready.httpPort}/ready`).then((answer) => answer.text(), String)
    await until('the reason', async () => (await body()).includes('mesh configuration'))
    await until('the duty', async () => (await unready.metrics()).includes(`pilot_leader_election_leading{lease="${lease}"} 0`))
    // Whoever stands makes the Lease at once.
    const connection = new ClusterConnection({ from: 'file', path: kubeconfig })
    const settings = { perSecond: 100, burst: 100, userAgent: 'test' }
    const api = new ClusterApi(connection, settings)
    const nothing = () => undefined
    const log = () => ({ debug: nothing, info: nothing, warn: nothing, error: nothing })
    const ready = new Elections({ connection, settings, api, namespace: 'control', revision: '', log, metrics: new MetricRegistry() })
    ready.stand()
    const leadership = ready.of('namespaces')
    await until('the ready one to lead', () => leadership.term === 1)
    cluster.apply(mesh('trustDomain: other'))
    await starting
    await until('it to have seen the leader', async () => (await unready.metrics()).includes(`pilot_leader_election_leading{lease="${lease}"} 0`))
    await ready.close()
    api.close()
    await until('it to lead', () => leads(unready))
    expect(holder()).to.match(/^replica-\d+_[-0-9a-f]{36}$/)
    await unready.stop()
    cluster.kubectl(['delete', 'configmap', '-n', 'control', 'mesh'])
  })

  it('do not lead while they are not ready: the lease is given back, nothing is written, and they lead again when they are', async () => {
    const policy = { ...restartPolicy, firstMs: 500, longestMs: 500, window: 8000 }
    const local = new LocalDiscovery({ policy, unreadyTimes: { longestMs: 2000, everyMs: 50 } })
    const connected = { registries: ['Orchestrator'], orchconfig: kubeconfig, namespace: 'control', writers: 1 }
    try {
      const { supervisor } = await local.start({ ...connected, secureGRPCAddr: `127.0.0.1:${await freePort()}` })
      await local.service.ready()
      const root = (namespace: string) =>
        cluster.kubectl([
          'get',
          'configmap',
          '-n',
          namespace,
          'mesh-ca-root-cert',
          '--ignore-not-found',
          '-o',
          'jsonpath={.metadata.creationTimestamp}',
        ])
      await until('it to lead', () => holder() !== '')
      const former = heldSince()
      // One restart is no reason.
      supervisor.kill('push-queue')
      await until('the push queue', () => local.state('push-queue').state === 'running')
      expect(heldSince()).to.equal(former)
      await until('it to be not ready', async () => {
        supervisor.kill('push-queue')
        return (await local.ready()).status === 503
      })
      await until('the lease to be given back', () => holder() === '')
      expect(local.log()).to.match(/leads no more \(namespaces\): this replica has not been ready for 2 s/)
      cluster.apply('apiVersion: v1\nkind: Namespace\nmetadata: {name: late}')
      await until('readiness', async () => (await local.ready()).status === 200)
      await until('the root of the namespace', () => root('late') !== '')
      expect(heldSince()).to.be.greaterThan(former)
      // Times of creation are whole seconds.
      expect(Date.parse(root('late')) + 1000, 'it was written by the next term').to.be.greaterThan(heldSince())
    } finally {
      await local.dispose()
    }
  })

  it('have one leader; when it ends in order another leads at once, and when it is killed within the time of its lease', async () => {
    const one = await discovery()
    await until('a leader', () => leads(one))
    const other = await discovery()
    expect(await leads(other)).to.equal(false)
    const ended = Date.now()
    await one.stop()
    await until('the other one to lead', () => leads(other))
    // It does not wait for the end of the lease.
    expect(heldSince() - ended).to.be.below(29_000)

    await one.start()
    await until('the first one to have seen the lease', async () =>
      (await one.metrics()).includes(`pilot_leader_election_leading{lease="${lease}"} 0`),
    )
    const killed = Date.now()
    await other.stop('SIGKILL')
    await until('the first one to lead', () => leads(one))
    expect(heldSince() - killed).to.be.at.least(20_000)
  })
})
