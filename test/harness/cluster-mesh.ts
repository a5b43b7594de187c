/** A mesh in a real cluster: discovery as manifests/ deploys it, and Deployments whose pods have redirect rules, an agent and a proxy. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseAllDocuments } from 'yaml'
import type { TestCluster } from './cluster.ts'
import { agentScript, discoveryScript } from './commands.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** The text of a file of `manifests/`. */
export const manifest = (name: string): string => readFileSync(join(root, 'manifests', name), 'utf8')

/** A Deployment of the mesh: its service account has the same name. */
export interface MeshWorkload {
  readonly name: string
  readonly replicas: number
  /** The image of the application and its arguments. */
  readonly image: string
  readonly args?: readonly string[]
  /** Whether the application answers HTTP on port 8080, which the kubelet probes: through the agent, since its own calls have no certificate. */
  readonly isProbed?: boolean
}

/** The images of the programs under test: `mesh/pilot-discovery` and `mesh/pilot-agent`, as manifests name them. */
export function programImages(cluster: TestCluster, envoy: string): void {
  cluster.image('mesh/pilot-discovery', [process.execPath, discoveryScript])
  cluster.image('mesh/pilot-agent', [process.execPath, agentScript], envoy === '' ? {} : { '/usr/local/bin/envoy': envoy })
}

const field = (fieldPath: string) => ({ valueFrom: { fieldRef: { fieldPath } } })

/** The container of an agent and its proxy. */
function agentContainer(args: readonly string[], env: Readonly<Record<string, string>>): object {
  return {
    name: 'agent',
    image: 'mesh/pilot-agent',
    args: ['proxy', ...args, '--concurrency', '1'],
    workingDir: '/',
    env: [
      { name: 'POD_NAME', ...field('metadata.name') },
      { name: 'POD_NAMESPACE', ...field('metadata.namespace') },
      { name: 'INSTANCE_IP', ...field('status.podIP') },
      { name: 'SERVICE_ACCOUNT', ...field('spec.serviceAccountName') },
      { name: 'HOST_IP', ...field('status.hostIP') },
      ...Object.entries(env).map(([name, value]) => ({ name, value })),
      { name: 'PROXY_CONFIG', value: JSON.stringify({ binaryPath: '/usr/local/bin/envoy', discoveryAddress: 'meshd.mesh-system.svc:15012' }) },
    ],
    readinessProbe: { httpGet: { path: '/healthz/ready', port: 15021 }, periodSeconds: 1, failureThreshold: 30 },
    securityContext: {
      ...{ runAsUser: 1337, runAsGroup: 1337, runAsNonRoot: true, allowPrivilegeEscalation: false, readOnlyRootFilesystem: true },
      capabilities: { drop: ['ALL'] },
    },
    volumeMounts: [
      { name: 'proxy', mountPath: '/etc/mesh/proxy' },
      { name: 'state', mountPath: '/var/lib/mesh/data' },
      { name: 'pod', mountPath: '/etc/mesh/pod' },
      { name: 'token', mountPath: '/var/run/secrets/tokens' },
      { name: 'roots', mountPath: '/var/run/secrets/mesh' },
    ],
  }
}

/** What the container of an agent needs of its pod. */
const agentVolumes = {
  securityContext: { fsGroup: 1337 },
  volumes: [
    { name: 'proxy', emptyDir: { medium: 'Memory' } },
    { name: 'state', emptyDir: {} },
    {
      name: 'pod',
      downwardAPI: {
        items: [
          { path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } },
          { path: 'annotations', fieldRef: { fieldPath: 'metadata.annotations' } },
        ],
      },
    },
    { name: 'token', projected: { sources: [{ serviceAccountToken: { path: 'mesh-token', audience: 'mesh-ca', expirationSeconds: 3600 } }] } },
    { name: 'roots', configMap: { name: 'mesh-ca-root-cert' } },
  ],
}

/** The pod of a workload as injection would make it, by hand. */
export function meshPod({ name, image, args = [], isProbed = false }: MeshWorkload): object {
  const readinessProbe = { httpGet: { path: '/app-health/application/readyz', port: 15020 }, periodSeconds: 1, timeoutSeconds: 2 }
  const redirect = ['-p', '15001', '-z', '15006', '-u', '1337', '-m', 'REDIRECT', '-i', '*', '-x', '', '-b', '*', '-d', '15090,15021,15020']
  return {
    serviceAccountName: name,
    terminationGracePeriodSeconds: 20,
    initContainers: [
      {
        name: 'redirect',
        image: 'mesh/pilot-agent',
        args: ['mesh-iptables', ...redirect],
        securityContext: { runAsUser: 0, capabilities: { drop: ['ALL'], add: ['NET_ADMIN', 'NET_RAW'] } },
      },
    ],
    containers: [
      agentContainer(['sidecar', '--serviceCluster', `${name}.shop`], {
        MESH_ORCH_APP_PROBERS: JSON.stringify({ '/app-health/application/readyz': { httpGet: { path: '/', port: 8080 } } }),
        MESH_META_INTERCEPTION_MODE: 'REDIRECT',
      }),
      // An application that takes calls until the others have been told that its pod ends.
      { name: 'application', image, args, lifecycle: { preStop: { sleep: { seconds: 5 } } }, ...(isProbed ? { readinessProbe } : {}) },
    ],
    ...agentVolumes,
  }
}

/** The documents of a gateway of the mesh in a namespace: its account and Deployment, whose pods have these labels and need no rights of root. */
export function meshGateway(namespace: string, name: string, labels: Readonly<Record<string, string>>): string[] {
  const spec = {
    serviceAccountName: name,
    containers: [agentContainer(['router', '--serviceCluster', `${name}.${namespace}`], { MESH_META_UNPRIVILEGED_POD: 'true' })],
    ...agentVolumes,
  }
  const all = { app: name, ...labels }
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace },
      spec: { replicas: 1, selector: { matchLabels: { app: name } }, template: { metadata: { labels: all }, spec } },
    },
  ].map((document) => JSON.stringify(document))
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

/** The documents of a workload: its account and Deployment. */
export function meshWorkload(workload: MeshWorkload): string[] {
  const { name, replicas } = workload
  const labels = { app: name }
  // As injection does: its callers use mutual TLS.
  const injected = { ...labels, 'security.mesh.io/tlsMode': 'mesh' }
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: 'shop' } },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace: 'shop' },
      spec: { replicas, selector: { matchLabels: labels }, template: { metadata: { labels: injected }, spec: meshPod(workload) } },
    },
  ].map((document) => JSON.stringify(document))
}

/** Waits until the pods of a Deployment are those of its newest template, as many as it should have, all available, and the others are gone. */
export function settled(cluster: TestCluster, namespace: string, name: string): void {
  cluster.kubectl(['rollout', 'status', 'deployment', '-n', namespace, name, '--timeout', '90s'])
  const { items } = JSON.parse(cluster.kubectl(['get', 'pods', '-n', namespace, '-l', `app=${name}`, '-o', 'json'])) as {
    items: { metadata: { name: string; deletionTimestamp?: string } }[]
  }
  const ending = items.filter(({ metadata }) => metadata.deletionTimestamp !== undefined).map(({ metadata }) => `pod/${metadata.name}`)
  if (ending.length > 0) cluster.kubectl(['wait', '-n', namespace, '--for=delete', '--timeout', '90s', ...ending])
}
