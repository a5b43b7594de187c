/** A mesh in a real cluster: what the charts install, or what is made from them (`manifests/`). */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseAllDocuments } from 'yaml'
import { askHelm, type Chart, chartFolder, type Rendering } from './charts.ts'
import type { TestCluster } from './cluster.ts'
import { agentScript, discoveryScript } from './commands.ts'
import { patienceMs } from './until.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The text of a file of `manifests/`. */
export const manifest = (name: string): string => readFileSync(join(root, 'manifests', name), 'utf8')

/** The images of the programs under test: `mesh/pilot-discovery` and `mesh/pilot-agent`, as manifests name them. */
export function programImages(cluster: TestCluster, envoy: string): void {
  cluster.image('mesh/pilot-discovery', [process.execPath, discoveryScript])
  cluster.image('mesh/pilot-agent', [process.execPath, agentScript], envoy === '' ? {} : { '/usr/local/bin/envoy': envoy })
}

/** Installs a chart in `mesh-system`, or another namespace, which is made, and waits until its pods are ready. */
export function installChart(cluster: TestCluster, chart: Chart, { release = chart, namespace = 'mesh-system', values = {} }: Rendering = {}): void {
  const args = [
    'install',
    release,
    chartFolder(chart),
    '--namespace',
    namespace,
    '--create-namespace',
    '--values',
    '-',
    '--wait',
    '--timeout',
    `${patienceMs}ms`,
  ]
  const { status, stderr } = askHelm(args, JSON.stringify(values), cluster.adminConfig)
  if (status !== 0) throw new Error(`helm ${args.join(' ')}: ${stderr}`)
}

/**
 * Deploys discovery as `manifests/` does, with more variables in its environment, and waits until it is ready. `documents`: what the cluster needs
 * besides.
 */
export function deployDiscovery(cluster: TestCluster, env: Readonly<Record<string, string>>, ...documents: readonly string[]): void {
  const [service, deployment] = parseAllDocuments(manifest('discovery.yaml')).map((document) => document.toJSON())
  for (const [name, value] of Object.entries(env)) deployment.spec.template.spec.containers[0].env.push({ name, value })
  cluster.apply(manifest('access.yaml'), ...documents, ...[service, deployment].map((document) => JSON.stringify(document)))
  settled(cluster, 'mesh-system', 'meshd')
}

/** Waits until the pods of a Deployment are those of its newest template, as many as it should have, all available. Older ones may be ending. */
export function rolledOut(cluster: TestCluster, namespace: string, name: string): void {
  cluster.kubectl(['rollout', 'status', 'deployment', '-n', namespace, name, '--timeout', `${patienceMs}ms`])
}

interface Pod {
  readonly metadata: { readonly deletionTimestamp?: string }
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] }
}

/** Whether a pod is ready and not ending. */
const isReady = ({ metadata, status }: Pod) =>
  metadata.deletionTimestamp === undefined &&
  status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') === true

/**
 * Waits until a Deployment is rolled out, all its pods are ready and its older ones gone. The pods themselves are looked at: the status of the Deployment
 * does not tell of a pod that has just been deleted.
 */
export function settled(cluster: TestCluster, namespace: string, name: string): void {
  const deadline = performance.now() + patienceMs
  const get = (...what: readonly string[]) => cluster.kubectl(['get', '-n', namespace, ...what])
  const isSettled = () => {
    rolledOut(cluster, namespace, name)
    const replicas = Number(get('deployment', name, '-o', 'jsonpath={.spec.replicas}'))
    const { items } = JSON.parse(get('pods', '-l', `app=${name}`, '-o', 'json')) as { items: Pod[] }
    return items.length === replicas && items.every(isReady)
  }
  while (!isSettled()) {
    if (performance.now() > deadline) throw new Error(`waited ${patienceMs} ms for the pods of ${namespace}/${name}`)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
  }
}

/** A Deployment of the namespace `shop` with one container, named `application`, in each pod. */
export const shopDeployment = (name: string, replicas: number, container: object) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name, namespace: 'shop' },
  spec: {
    replicas,
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'application', ...container }] } },
  },
})
