/**
 * Two real clusters that are one mesh: discovery runs in the first, pods of both have stock Envoys and call a service that both have, over one flat
 * network and through the gateway of a network, by locality.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { stringify } from 'yaml'
import { defaultValues } from '../../src/inject/default-template.ts'
import { joinByCable, narrow } from '../harness/cable.ts'
import { renderChart } from '../harness/charts.ts'
import { TestCluster } from '../harness/cluster.ts'
import { deployDiscovery, manifest, programImages, settled } from '../harness/cluster-mesh.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { runCommand } from '../harness/service.ts'
import { until } from '../harness/until.ts'

const envoy = envoyBinaries().at(-1)?.path ?? ''
const namespace = (name: string, labels: object = {}) => JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } })
const workload = (name: string, image: string) =>
  [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: 'shop' } },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace: 'shop' },
      spec: {
        selector: { matchLabels: { app: name } },
        template: {
          metadata: { labels: { app: name } },
          spec: { serviceAccountName: name, terminationGracePeriodSeconds: 1, containers: [{ name: 'application', image }] },
        },
      },
    },
  ].map((document) => JSON.stringify(document))
/** A caller is of the locality of its own service. */
const service = (name: string) =>
  `{apiVersion: v1, kind: Service, metadata: {name: ${name}, namespace: shop}, spec: {selector: {app: ${name}}, ports: [{name: http, port: 80, targetPort: 8080}]}}`
const strict =
  'apiVersion: security.mesh.io/v1\nkind: PeerAuthentication\nmetadata: {name: strict, namespace: mesh-system}\nspec: {mtls: {mode: STRICT}}'
const byLocality = `apiVersion: networking.mesh.io/v1
kind: DestinationRule
metadata: {name: web, namespace: shop}
spec: {host: web, trafficPolicy: {outlierDetection: {consecutive5xxErrors: 5}}}`

describe('two clusters of one mesh', () => {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-two-'))
  let near: TestCluster
  let far: TestCluster

  /** Applies documents whose pods get sidecars of a cluster. */
  const applyInjected = async (cluster: TestCluster, id: string, ...documents: readonly string[]) => {
    const given = defaultValues as { readonly global?: object }
    writeFileSync(join(dir, 'values'), stringify({ ...given, global: { ...given.global, multiCluster: { clusterName: id } } }))
    writeFileSync(join(dir, 'documents'), documents.join('\n---\n'))
    const { code, stdout, stderr } = await runCommand(['inject', '-f', join(dir, 'documents'), '--values', join(dir, 'values')])
    if (code !== 0) throw new Error(stderr)
    cluster.apply(stdout)
  }
  /** Who answers a call of a pod. */
  const call = (cluster: TestCluster) => {
    const exec = ['exec', '-n', 'shop', 'deploy/client', '-c', 'application', '--', 'curl', '-s', '-m', '5', 'http://web.shop/']
    const { from, headers } = JSON.parse(cluster.kubectl(exec)) as { from: string; headers: Record<string, string[]> }
    return { from, identity: headers['X-Forwarded-Client-Cert']?.join() ?? '' }
  }
  /** The clusters whose pods answer a number of calls. The echo knows its own pod by its name only, which begins with that of the Deployment. */
  const answering = (cluster: TestCluster, calls = 12) => {
    const names = new Map([near, far].flatMap((each, index) => podsOf(each).map((pod) => [pod, index === 0 ? 'near' : 'far'])))
    const exec = ['exec', '-n', 'shop', 'deploy/client', '-c', 'application', '--', 'sh', '-c']
    const text = cluster.kubectl([...exec, `for i in $(seq ${calls}); do curl -s -m 5 http://web.shop/; done`])
    return [...new Set([...text.matchAll(/"pod":"([^"]+)"/g)].map(([, pod = '']) => names.get(pod) ?? pod))].sort().join()
  }
  const podsOf = (cluster: TestCluster) =>
    cluster.kubectl(['get', 'pods', '-n', 'shop', '-l', 'app=web', '-o', 'jsonpath={.items[*].metadata.name}']).split(' ').filter(Boolean)
  const answers = (cluster: TestCluster, by: string) => {
    let seen = ''
    return until(`answers by ${by}`, () => (seen = answering(cluster)) === by).catch((error: Error) => {
      throw new Error(`${error.message}; they come from ${seen}`)
    })
  }

  before(async function () {
    if (envoy === '') this.skip()
    near = await TestCluster.start('n1=region1/zone1')
    far = await TestCluster.start('n1=region2/zone1')
    joinByCable(near, far)
    for (const cluster of [near, far]) programImages(cluster, envoy)
    near.kubectl(['apply', '-f', fileURLToPath(new URL('../../manifests/crds', import.meta.url))])
    near.apply(manifest('access.yaml'), namespace('shop'))
    far.apply(namespace('shop'))
    const config = Buffer.from(readFileSync(far.roleConfig(far.nodeServer))).toString('base64')
    const metadata = { name: 'remotes', namespace: 'mesh-system', labels: { 'mesh/multiCluster': 'true' } }
    near.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata, data: { far: config } }), strict)
    deployDiscovery(near, { CLUSTER_ID: 'near', PILOT_DEBOUNCE_AFTER: '10ms' })
    // The other cluster reaches discovery, and trusts it.
    const at = near.kubectl(['get', 'pods', '-n', 'mesh-system', '-l', 'app=meshd', '-o', 'jsonpath={.items[0].status.podIP}'])
    far.apply(
      '{apiVersion: v1, kind: Service, metadata: {name: meshd, namespace: mesh-system}, spec: {ports: [{name: https-dns, port: 15012}]}}',
      `{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: meshd, namespace: mesh-system, labels: {kubernetes.io/service-name: meshd}}, addressType: IPv4,
        ports: [{name: https-dns, port: 15012}], endpoints: [{addresses: ["${at}"]}]}`,
    )
    let roots = ''
    await until('the roots', () => {
      const path = 'jsonpath={.data.root-cert\\.pem}'
      return (roots = near.kubectl(['get', 'configmap', '-n', 'shop', 'mesh-ca-root-cert', '-o', path])) !== ''
    })
    const trust = (of: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'mesh-ca-root-cert', namespace: of } })
    far.apply(...['shop', 'mesh-system'].map((of) => JSON.stringify({ ...trust(of), data: { 'root-cert.pem': roots } })))
    const both = [...['web', 'client'].map(service), ...workload('web', 'echo'), ...workload('client', 'idle')]
    await applyInjected(near, 'near', ...both)
    await applyInjected(far, 'far', ...both)
    for (const cluster of [near, far]) for (const name of ['web', 'client']) settled(cluster, 'shop', name)
  })
  after(async () => {
    rmSync(dir, { recursive: true, force: true })
    await Promise.all([near?.dispose(), far?.dispose()])
  })

  it('carries calls of pods of both to the pods of both, over mutual TLS', async () => {
    for (const cluster of [near, far]) await answers(cluster, 'far,near')
    expect(call(far).identity).to.match(/By=spiffe:\/\/cluster.local\/ns\/shop\/sa\/web;.*URI=spiffe:\/\/cluster.local\/ns\/shop\/sa\/client/)
  })

  it('prefers the pods of the own region, and fails over to the other cluster when they go', async () => {
    near.apply(byLocality)
    await answers(near, 'near')
    await answers(far, 'far')
    near.kubectl(['scale', 'deployment', '-n', 'shop', 'web', '--replicas', '0'])
    await answers(near, 'far')
    near.kubectl(['scale', 'deployment', '-n', 'shop', 'web', '--replicas', '1'])
    await answers(near, 'near')
  })

  it('reaches pods of another network through the gateway of that network alone', async () => {
    const values = {
      ...{ env: { MESH_META_CLUSTER_ID: 'far' }, podDisruptionBudget: { enabled: false } },
      service: { type: 'ClusterIP', ports: [{ name: 'tls', port: 15443, targetPort: 15443 }] },
    }
    far.apply(renderChart('gateway', { release: 'mesh-eastwest', values }))
    settled(far, 'mesh-system', 'mesh-eastwest')
    const gateway = 'mesh-eastwest.mesh-system.svc.cluster.local'
    const networks = { networks: { far: { gateways: [{ registryServiceName: gateway, port: 15443 }] } } }
    near.apply(
      JSON.stringify({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'mesh', namespace: 'mesh-system' },
        data: { meshNetworks: stringify(networks) },
      }),
      `apiVersion: networking.mesh.io/v1
kind: Gateway
metadata: {name: eastwest, namespace: mesh-system}
spec: {selector: {mesh: eastwest}, servers: [{port: {number: 15443, name: tls, protocol: TLS}, hosts: ["*.local"], tls: {mode: AUTO_PASSTHROUGH}}]}`,
    )
    for (const [cluster, network] of [
      [near, 'near'],
      [far, 'far'],
    ] as const)
      cluster.kubectl(['label', 'namespace', 'mesh-system', `topology.mesh.io/network=${network}`])
    const at = far.kubectl(['get', 'pods', '-n', 'mesh-system', '-l', 'mesh=eastwest', '-o', 'jsonpath={.items[0].status.podIP}'])
    narrow(near, far, at)
    near.kubectl(['scale', 'deployment', '-n', 'shop', 'web', '--replicas', '0'])
    await answers(near, 'far')
    expect(call(near).identity).to.match(/URI=spiffe:\/\/cluster.local\/ns\/shop\/sa\/client/)
  })
})
