/**
 * The whole life of pods in a real cluster: Helm installs the charts, a namespace gets a label, and Deployments that know nothing of the mesh are created.
 * The webhook injects their pods, the kubelet runs them from the files of the images, and they call each other by service name over mutual TLS,
 * under policy and without retries, while everything that may go comes and goes.
 */
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { TestCluster } from '../harness/cluster.ts'
import { installChart, settled } from '../harness/cluster-mesh.ts'
import { dockerImages } from '../harness/docker-images.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import type { CallCounts, FailedCall } from '../harness/steady-client.ts'
import { until } from '../harness/until.ts'

const envoy = envoyBinaries().at(-1)?.path ?? ''
const urls = ['http://web.shop/', 'http://api.shop/']
/** A Deployment as its owner writes it, with its account, and a readiness probe where it answers HTTP. */
const workload = (name: string, replicas: number, container: { readonly image: string; readonly args?: readonly string[] }, isProbed: boolean) => {
  const readinessProbe = { httpGet: { path: '/', port: 8080 }, periodSeconds: 1, timeoutSeconds: 2 }
  const application = {
    ...{ name: 'application', ...container, ...(isProbed ? { readinessProbe } : {}) },
    // It takes calls until the others have been told that its pod ends, also those whose agents have just lost discovery (docs/injection.md).
    lifecycle: { preStop: { sleep: { seconds: 15 } } },
  }
  const spec = { serviceAccountName: name, terminationGracePeriodSeconds: 30, containers: [application] }
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: 'shop' } },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace: 'shop' },
      spec: { replicas, selector: { matchLabels: { app: name } }, template: { metadata: { labels: { app: name } }, spec } },
    },
  ].map((document) => JSON.stringify(document))
}
const service = (name: string) =>
  `{apiVersion: v1, kind: Service, metadata: {name: ${name}, namespace: shop}, spec: {selector: {app: ${name}}, ports: [{name: http, port: 80, targetPort: 8080}]}}`
/** Without retries each request that a proxy sends in vain is a failed call. The headers show that the rules are in force. */
const rules = (host: string) => [
  `apiVersion: networking.mesh.io/v1
kind: VirtualService
metadata: {name: ${host}, namespace: shop}
spec:
  hosts: [${host}]
  http: [{retries: {attempts: 0}, headers: {request: {set: {x-rule: ${host}}}}, route: [{destination: {host: ${host}, subset: all}}]}]`,
  `apiVersion: networking.mesh.io/v1
kind: DestinationRule
metadata: {name: ${host}, namespace: shop}
spec: {host: ${host}, trafficPolicy: {tls: {mode: MESH_MUTUAL}}, subsets: [{name: all, labels: {app: ${host}}}]}`,
]
const policies = [
  `apiVersion: security.mesh.io/v1
kind: PeerAuthentication
metadata: {name: strict, namespace: mesh-system}
spec: {mtls: {mode: STRICT}}`,
  `apiVersion: security.mesh.io/v1
kind: AuthorizationPolicy
metadata: {name: callers, namespace: shop}
spec: {selector: {matchLabels: {app: api}}, rules: [{from: [{source: {principals: [cluster.local/ns/shop/sa/client]}}]}]}`,
]

describe('the life of pods of a mesh', () => {
  let cluster: TestCluster
  const application = (name: string, ...command: readonly string[]) =>
    cluster.kubectl(['exec', '-n', 'shop', `deploy/${name}`, '-c', 'application', '--', ...command])

  /** What the client has logged: the failed calls, and the counts at the end. */
  const calls = (): { failures: FailedCall[]; counts: CallCounts[] } => {
    const lines = cluster.kubectl(['logs', '-n', 'shop', 'deploy/client', '-c', 'application']).split('\n').filter(Boolean)
    const all = lines.map((line) => JSON.parse(line) as { failed?: string; counts?: CallCounts[] })
    return { failures: all.filter((line) => line.failed !== undefined) as FailedCall[], counts: all.findLast((line) => line.counts)?.counts ?? [] }
  }
  /** What discovery says of the proxies that are connected. */
  const proxies = () => cluster.kubectl(['exec', '-n', 'mesh-system', 'deploy/meshd', '--', 'pilot-discovery', 'request', 'GET', '/debug/syncz'])
  /** Waits until more calls of each URL have succeeded. */
  const goOn = async (more = 20) => {
    const before = calls().counts
    await until('more calls to succeed', () => {
      const { counts } = calls()
      return counts.length === urls.length && counts.every(({ succeeded }, index) => succeeded >= (before[index]?.succeeded ?? 0) + more)
    })
  }

  /** Whether each injection webhook has the CA bundle, without which no pod can be made. */
  const areTrusted = () => {
    const path = '{range .webhooks[*]}{.clientConfig.caBundle}{"\\n"}{end}'
    const text = cluster.kubectl(['get', 'mutatingwebhookconfiguration', 'mesh-sidecar-injector', '-o', `jsonpath=${path}`])
    return text
      .trim()
      .split('\n')
      .every((line) => line !== '')
  }

  before(async function () {
    if (envoy === '') this.skip()
    cluster = await TestCluster.start()
    dockerImages(cluster, envoy)
    cluster.image('steady', [process.execPath, fileURLToPath(new URL('../harness/steady-client.ts', import.meta.url))])
    installChart(cluster, 'base')
    installChart(cluster, 'meshd')
    await until('the webhooks to have the CA bundle', areTrusted)
    cluster.apply(
      '{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {mesh-injection: enabled}}}',
      ...[...policies, ...rules('web'), ...rules('api')],
      ...['web', 'api'].map(service),
    )
    cluster.apply(
      ...workload('web', 2, { image: 'echo' }, true),
      ...workload('api', 1, { image: 'echo' }, true),
      ...workload('client', 1, { image: 'steady', args: urls }, false),
      `{apiVersion: v1, kind: Pod, metadata: {name: outside, namespace: shop, labels: {sidecar.mesh.io/inject: "false"}},
        spec: {containers: [{name: idle, image: idle}]}}`,
    )
    for (const name of ['web', 'api', 'client']) settled(cluster, 'shop', name)
  })
  after(async () => {
    await cluster?.dispose()
  })

  it('carries calls by service name over mutual TLS, with the identity of the caller', async () => {
    await goOn()
    for (const { url, last } of calls().counts) {
      const { headers } = last as { headers: Record<string, string[]> }
      const name = new URL(url).hostname.split('.')[0]
      expect(headers['X-Rule'], 'a custom resource').to.deep.equal([name])
      expect(headers['X-Forwarded-Client-Cert']?.join()).to.match(
        new RegExp(`By=spiffe://cluster.local/ns/shop/sa/${name};.*URI=spiffe://cluster.local/ns/shop/sa/client`),
      )
    }
  })

  it('refuses callers without a certificate, and those whom a policy does not allow', () => {
    const status = ['curl', '-s', '-m', '10', '-o', '/dev/null', '-w', '%{http_code}']
    expect(() => cluster.kubectl(['exec', '-n', 'shop', 'outside', '--', ...status, 'http://web.shop/'])).to.throw('exit code 56')
    expect([application('web', ...status, urls[0] as string), application('web', ...status, urls[1] as string)]).to.deep.equal(['200', '403'])
  })

  it('loses no call while pods come and go, and while discovery and the API server restart', async () => {
    const steps: string[] = []
    const step = async (what: string, action: () => void) => {
      steps.push(`${new Date().toISOString()} ${what}`)
      action()
      await goOn()
    }
    /** A pod of a Deployment that is not ending. */
    const podOf = (name: string, namespace = 'shop') => {
      const { items } = JSON.parse(cluster.kubectl(['get', 'pods', '-n', namespace, '-l', `app=${name}`, '-o', 'json'])) as {
        items: { metadata: { name: string; deletionTimestamp?: string } }[]
      }
      return `pod/${items.find(({ metadata }) => metadata.deletionTimestamp === undefined)?.metadata.name}`
    }
    /** Waits until the pods of a Deployment are ready. Those that end go on ending meanwhile, beside the next step. */
    const isReady = (name: string, namespace = 'shop') =>
      void cluster.kubectl(['rollout', 'status', 'deployment', '-n', namespace, name, '--timeout', '90s'])
    const scale = (replicas: number) => {
      cluster.kubectl(['scale', 'deployment', '-n', 'shop', 'web', '--replicas', `${replicas}`])
      isReady('web')
    }
    const restart = (name: string) => cluster.kubectl(['rollout', 'restart', 'deployment', '-n', 'shop', name])
    const isServing = () => until('the API server', () => cluster.kubectl(['get', '--raw', '/readyz']) === 'ok')
    /** The calls that failed since the last time. */
    let known = 0
    const failed = (): FailedCall[] => {
      const { failures } = calls()
      return failures.slice(known, (known = failures.length))
    }
    /** What tells why a call failed: the steps, and what discovery and the agent of the client have logged of connections. */
    const circumstances = () => {
      const logs = [
        ['-n', 'mesh-system', 'deploy/meshd'],
        ['-n', 'shop', 'deploy/client', '-c', 'mesh-proxy'],
      ].map((of) => cluster.kubectl(['logs', '--tail', '30', ...of]))
      return [...steps, ...logs].join('\n')
    }
    const noneFailed = () => {
      const failures = failed()
      if (failures.length > 0)
        expect(failures.slice(0, 3), `${failures.length} calls until ${failures.at(-1)?.at}\n${circumstances()}`).to.deep.equal([])
    }
    await goOn()
    await step('web is scaled up', () => scale(3))
    await step('web is scaled down', () => scale(1))
    await step('api is rolled out again', () => {
      restart('api')
      isReady('api')
    })
    await step('discovery is deleted', () => {
      cluster.kubectl(['delete', '-n', 'mesh-system', podOf('meshd', 'mesh-system'), '--wait=false'])
      settled(cluster, 'mesh-system', 'meshd')
    })
    await step('web is scaled up by the new discovery, and one of its pods is deleted', () => {
      scale(2)
      cluster.kubectl(['delete', '-n', 'shop', podOf('web'), '--wait=false'])
      isReady('web')
    })
    await step('the API server is killed', () => cluster.signalServer('SIGKILL'))
    await isServing()
    await step('web is scaled after the restart of the API server', () => scale(3))
    await step('all that ended is gone', () => {
      for (const name of ['web', 'api']) settled(cluster, 'shop', name)
    })
    noneFailed()

    // Calls to a pod that is killed may fail; they are counted apart.
    await step('a pod of web is deleted by force', () => {
      cluster.kubectl(['delete', '-n', 'shop', podOf('web'), '--grace-period', '0', '--force'])
      settled(cluster, 'shop', 'web')
    })
    const killed = failed()
    expect(new Set(killed.map((call) => call.failed)).has(urls[1] as string), JSON.stringify(killed)).to.equal(false)

    await step('discovery is deleted and the API server is killed', () => {
      cluster.kubectl(['delete', '-n', 'mesh-system', podOf('meshd', 'mesh-system'), '--wait=false'])
      cluster.signalServer('SIGKILL')
    })
    await isServing()
    settled(cluster, 'mesh-system', 'meshd')
    await step('web and api are rolled out at once', () => {
      for (const name of ['web', 'api']) restart(name)
      for (const name of ['web', 'api']) settled(cluster, 'shop', name)
    })
    noneFailed()
    expect(calls().counts.reduce((sum, { failed: count }) => sum + count, 0)).to.equal(killed.length)
  })

  it('leaves nothing of pods that go: neither calls to them, nor what discovery knew of them', async () => {
    cluster.kubectl(['delete', 'deployment', '-n', 'shop', 'web', '--wait=false'])
    cluster.kubectl(['wait', '-n', 'shop', '--for=delete', '--timeout', '90s', 'pod', '-l', 'app=web'])
    await until('discovery to forget them', () => !proxies().includes('web-') && proxies().includes('api-'))
    const status = application('client', 'curl', '-s', '-m', '10', '-o', '/dev/null', '-w', '%{http_code}', urls[0] as string)
    expect(status).to.equal('503')
  })
})
