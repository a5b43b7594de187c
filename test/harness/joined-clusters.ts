/** Real clusters that are one mesh: discovery runs in the first, which follows the others, and the pods of all have stock Envoys. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { stringify } from 'yaml'
import { defaultValues } from '../../src/inject/default-template.ts'
import { joinByCable } from './cable.ts'
import type { TestCluster } from './cluster.ts'
import { deployDiscovery, manifest, programImages, settled } from './cluster-mesh.ts'
import { runCommand } from './service.ts'
import { until } from './until.ts'

/** The clusters of a mesh by the ids by which discovery knows them, that of discovery first. */
export type JoinedClusters = Readonly<Record<string, TestCluster>>

const namespace = (name: string) => JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })

/** A Deployment in `shop` with a service account of its own. */
function workload(name: string, image: string): string[] {
  const container = { name: 'application', image }
  const template = {
    metadata: { labels: { app: name } },
    spec: { serviceAccountName: name, terminationGracePeriodSeconds: 1, containers: [container] },
  }
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: 'shop' } },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace: 'shop' },
      spec: { selector: { matchLabels: { app: name } }, template },
    },
  ].map((document) => JSON.stringify(document))
}
/** A Service in `shop`. A caller is of the locality of its own service. */
const service = (name: string, app = name) =>
  `{apiVersion: v1, kind: Service, metadata: {name: ${name}, namespace: shop}, spec: {selector: {app: ${app}}, ports: [{name: http, port: 80, targetPort: 8080}]}}`

/** Joins clusters to one flat network and one mesh. `documents`: what the first has besides. */
export async function joinMesh(members: JoinedClusters, envoy: string, ...documents: readonly string[]): Promise<void> {
  const [[id = '', first], ...others] = Object.entries(members) as [[string, TestCluster], ...[string, TestCluster][]]
  const all = Object.values(members)
  for (const [index, one] of all.entries()) for (const other of all.slice(index + 1)) joinByCable(one, other)
  for (const cluster of all) programImages(cluster, envoy)
  first.kubectl(['apply', '-f', fileURLToPath(new URL('../../manifests/crds', import.meta.url))])
  first.apply(manifest('access.yaml'), namespace('shop'))
  const data: Record<string, string> = {}
  for (const [name, cluster] of others) {
    cluster.apply(namespace('shop'))
    data[name] = Buffer.from(readFileSync(cluster.roleConfig(cluster.nodeServer))).toString('base64')
  }
  const metadata = { name: 'remotes', namespace: 'mesh-system', labels: { 'mesh/multiCluster': 'true' } }
  first.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata, data }), ...documents)
  deployDiscovery(first, { CLUSTER_ID: id, PILOT_DEBOUNCE_AFTER: '10ms' })
  // The other clusters reach discovery, and trust it.
  const at = first.kubectl(['get', 'pods', '-n', 'mesh-system', '-l', 'app=meshd', '-o', 'jsonpath={.items[0].status.podIP}'])
  let roots = ''
  await until('the roots', () => {
    const path = 'jsonpath={.data.root-cert\\.pem}'
    return (roots = first.kubectl(['get', 'configmap', '-n', 'shop', 'mesh-ca-root-cert', '-o', path])) !== ''
  })
  const trust = (of: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'mesh-ca-root-cert', namespace: of } })
  for (const [, cluster] of others)
    cluster.apply(
      '{apiVersion: v1, kind: Service, metadata: {name: meshd, namespace: mesh-system}, spec: {ports: [{name: https-dns, port: 15012}]}}',
      `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: meshd, namespace: mesh-system, labels: {kubernetes.io/service-name: meshd}}, addressType: IPv4,
        ports: [{name: https-dns, port: 15012}], endpoints: [{addresses: ["${at}"]}]}`,
      ...['shop', 'mesh-system'].map((of) => JSON.stringify({ ...trust(of), data: { 'root-cert.pem': roots } })),
    )
}

/** Deploys a server `web` and a client `client` with sidecars in each cluster, and waits until they are ready. `names`: further services of `web`. */
export async function deployShop(members: JoinedClusters, ...names: readonly string[]): Promise<void> {
  const services = [...['web', 'client'].map((name) => service(name)), ...names.map((name) => service(name, 'web'))]
  const documents = [...services, ...workload('web', 'echo'), ...workload('client', 'idle')]
  for (const [id, cluster] of Object.entries(members)) cluster.apply(await injected(id, documents))
  for (const cluster of Object.values(members)) for (const name of ['web', 'client']) settled(cluster, 'shop', name)
}

/** Gives the pods of documents the sidecars of a cluster. */
async function injected(id: string, documents: readonly string[]): Promise<string> {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-inject-'))
  const given = defaultValues as { readonly global?: object }
  writeFileSync(join(dir, 'values'), stringify({ ...given, global: { ...given.global, multiCluster: { clusterName: id } } }))
  writeFileSync(join(dir, 'documents'), documents.join('\n---\n'))
  const { code, stdout, stderr } = await runCommand(['inject', '-f', join(dir, 'documents'), '--values', join(dir, 'values')])
  rmSync(dir, { recursive: true, force: true })
  if (code !== 0) throw new Error(stderr)
  return stdout
}

/** The names of the pods of `web` in a cluster. The echo knows its own pod by its name only. */
export const webPods = (cluster: TestCluster): string[] =>
  cluster.kubectl(['get', 'pods', '-n', 'shop', '-l', 'app=web', '-o', 'jsonpath={.items[*].metadata.name}']).split(' ').filter(Boolean)

/** The names of the pods that answer calls of `web` by the client of a cluster. */
export function webAnswers(cluster: TestCluster, calls = 12): Set<string> {
  const exec = ['exec', '-n', 'shop', 'deploy/client', '-c', 'application', '--', 'sh', '-c']
  const text = cluster.kubectl([...exec, `for i in $(seq ${calls}); do curl -s -m 5 http://web.shop/; done`])
  return new Set([...text.matchAll(/"pod":"([^"]+)"/g)].map(([, pod = '']) => pod))
}
