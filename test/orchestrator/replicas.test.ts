/**
 * Three replicas of discovery behind their Service in a real cluster, installed by the chart (docs/operation.md, "Several replicas: who serves which
 * proxy"), while pods of injected workloads call each other without retries: configuration changes all the time, replicas are replaced one after
 * another, and the one that leads is killed.
 */
import { fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { V1Lease } from '@kubernetes/client-node'
import { expect } from 'chai'
import { TestCluster } from '../harness/cluster.ts'
import { installChart, rolledOut, settled, shopDeployment } from '../harness/cluster-mesh.ts'
import { dockerImages } from '../harness/docker-images.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { numberedRoute, type SteadyChanges } from '../harness/steady-changes.ts'
import type { CallCounts, FailedCall } from '../harness/steady-client.ts'
import { until } from '../harness/until.ts'

const envoy = envoyBinaries().at(-1)?.path ?? ''
const changesPerSecond = 50
const changing = fileURLToPath(new URL('../harness/steady-changes.ts', import.meta.url))
const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', namespace: 'shop' } }
const route = { apiVersion: 'networking.mesh.io/v1', kind: 'VirtualService', metadata: { name: 'web', namespace: 'shop' }, spec: numberedRoute(0) }

describe('three replicas of discovery', function () {
  // A Lease that nobody renews belongs to its holder for 30 s.
  this.timeout(400_000)
  let cluster: TestCluster
  /** The number of the last change. */
  let number = 0

  const calls = (): { failures: FailedCall[]; counts: CallCounts | undefined } => {
    const all = cluster
      .kubectl(['logs', '-n', 'shop', 'deploy/client', '-c', 'application'])
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as { failed?: string; counts?: CallCounts[] })
    return { failures: all.filter(({ failed }) => failed !== undefined) as FailedCall[], counts: all.findLast(({ counts }) => counts)?.counts?.[0] }
  }
  const last = () => (calls().counts?.last as { headers?: Record<string, string[]> } | undefined)?.headers?.['X-Number']?.[0]
  const hasLast = () => until(`calls with the number ${number}`, () => last() === `${number}`)
  const pods = (app: string, namespace: string) =>
    (
      JSON.parse(cluster.kubectl(['get', 'pods', '-n', namespace, '-l', `app=${app}`, '-o', 'json'])) as {
        items: { metadata: { name: string; deletionTimestamp?: string } }[]
      }
    ).items.flatMap(({ metadata }) => (metadata.deletionTimestamp === undefined ? [metadata.name] : []))
  const discovery = () => pods('meshd', 'mesh-system')
  /** The proxies that each replica serves. */
  const served = () =>
    discovery().map((pod) => {
      const page = ['pilot-discovery', 'request', 'GET', '/debug/syncz?replicas=own']
      const text = cluster.kubectl(['exec', '-n', 'mesh-system', pod, '--', ...page])
      return [...pods('web', 'shop'), ...pods('client', 'shop')].filter((name) => text.includes(name))
    })
  const allServed = () => until('each proxy at one replica', () => served().flat().length === 5)
  /** What the Envoys have taken since they started, by pod. */
  const taken = () =>
    [...pods('web', 'shop'), ...pods('client', 'shop')].map((pod) => {
      const kinds = '(cluster_manager.cluster_(added|modified|removed)|listener_manager.listener_(added|modified|removed)|rds.*config_reload)'
      const args = [
        'exec',
        '-n',
        'shop',
        pod,
        '-c',
        'mesh-proxy',
        '--',
        'pilot-agent',
        'request',
        'GET',
        `/stats?filter=${encodeURIComponent(kinds)}`,
      ]
      return `${pod}\n${cluster.kubectl(args)}`
    })

  before(async function () {
    if (envoy === '') this.skip()
    cluster = await TestCluster.start()
    dockerImages(cluster, envoy)
    cluster.image('steady', [process.execPath, fileURLToPath(new URL('../harness/steady-client.ts', import.meta.url))])
    installChart(cluster, 'base')
    installChart(cluster, 'meshd', { values: { replicaCount: 3 } })
    const bundle = '{.webhooks[*].clientConfig.caBundle}'
    await until(
      'the webhooks to have the CA bundle',
      () => cluster.kubectl(['get', 'mutatingwebhookconfiguration', 'mesh-sidecar-injector', '-o', `jsonpath=${bundle}`]) !== '',
    )
    cluster.apply(
      '{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {mesh-injection: enabled}}}',
      JSON.stringify({ ...service, spec: { selector: { app: 'web' }, ports: [{ name: 'http', port: 80, targetPort: 8080 }] } }),
      JSON.stringify(route),
    )
    const readinessProbe = { httpGet: { path: '/', port: 8080 }, periodSeconds: 1 }
    cluster.apply(
      ...[
        shopDeployment('web', 4, { image: 'echo', readinessProbe }),
        shopDeployment('client', 1, { image: 'steady', args: ['http://web.shop/'] }),
      ].map((each) => JSON.stringify(each)),
    )
    for (const name of ['web', 'client']) settled(cluster, 'shop', name)
    await until('calls', () => (calls().counts?.succeeded ?? 0) > 0)
    await allServed()
  })
  after(async () => {
    await cluster?.dispose()
  })

  it('are replaced one after another, and proxies that come to another one are sent nothing that they have', async () => {
    const before = taken()
    cluster.kubectl(['rollout', 'restart', 'deployment', '-n', 'mesh-system', 'meshd'])
    settled(cluster, 'mesh-system', 'meshd')
    await allServed()
    expect(taken()).to.deep.equal(before)
    expect(calls().failures).to.deep.equal([])
  })

  it(`are replaced under ${changesPerSecond} changes a second: no call fails, and no change is lost`, async () => {
    const changes = fork(changing, [cluster.adminConfig, `${changesPerSecond}`])
    const result = new Promise<SteadyChanges>((resolve, reject) => {
      changes.once('message', resolve)
      changes.once('exit', (code) => reject(new Error(`the process of the changes ended with ${code}`)))
    })
    try {
      cluster.kubectl(['rollout', 'restart', 'deployment', '-n', 'mesh-system', 'meshd'])
      rolledOut(cluster, 'mesh-system', 'meshd')
    } finally {
      changes.send('stop')
    }
    const made = await result
    number = made.last
    settled(cluster, 'mesh-system', 'meshd')
    expect(made.written, `changes; others: ${made.refusals.slice(0, 3).join('; ')}`).to.be.above(5 * changesPerSecond)
    await allServed()
    await hasLast()
    expect(calls().failures).to.deep.equal([])
  })

  it('have another leader when theirs is killed', async () => {
    const lease = ['get', 'lease', '-n', 'mesh-system', 'mesh-namespace-controller-election', '-o', 'jsonpath={.spec.holderIdentity}']
    const leads = (holder: string) => discovery().find((name) => holder.startsWith(name))
    const holder = cluster.kubectl(lease)
    const pod = leads(holder)
    expect(pod, holder).not.to.equal(undefined)
    const leases = () =>
      (JSON.parse(cluster.kubectl(['get', 'leases', '-n', 'mesh-system', '-o', 'json'])) as { items: V1Lease[] }).items.filter(({ metadata }) =>
        metadata?.name?.startsWith(`mesh-replica-${pod}`),
      )
    const uid = cluster.kubectl(['get', 'pod', '-n', 'mesh-system', pod as string, '-o', 'jsonpath={.metadata.uid}'])
    expect(leases().flatMap(({ metadata }) => metadata?.ownerReferences)).to.deep.equal([{ apiVersion: 'v1', kind: 'Pod', name: pod, uid }])
    cluster.kubectl(['delete', 'pod', '-n', 'mesh-system', pod as string, '--grace-period', '0', '--force'])
    cluster.apply('{apiVersion: v1, kind: Namespace, metadata: {name: later}}')
    await until('the roots in a new namespace', () => {
      const names = cluster.kubectl(['get', 'configmap', '-n', 'later', '-o', 'jsonpath={.items[*].metadata.name}'])
      return names.includes('mesh-ca-root-cert')
    })
    const next = cluster.kubectl(lease)
    expect(next).not.to.equal(holder)
    expect(leads(next), next).not.to.equal(undefined)
    cluster.apply(JSON.stringify({ ...route, spec: numberedRoute(++number) }))
    await allServed()
    await hasLast()
    expect(calls().failures).to.deep.equal([])
    // Its Lease went with its pod, so that nobody misses its proxies, which are at others.
    await until('the Lease to be gone', () => leases().length === 0)
    const [asked] = discovery()
    await until('an answer of all', () => {
      const page = cluster.kubectl(['exec', '-n', 'mesh-system', asked as string, '--', 'pilot-discovery', 'request', 'GET', '/debug/syncz'])
      return !page.includes('"answered": false') && pods('web', 'shop').every((name) => page.includes(name))
    })
  })
})
