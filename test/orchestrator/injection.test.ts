/**
 * Injection in a real cluster: discovery as `manifests/` deploys it, a namespace with a label, and Deployments that know nothing of the mesh. Their
 * pods get redirect rules, an agent and a stock Envoy, and answer each other over mutual TLS.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { parse, parseAllDocuments } from 'yaml'
import { type MergedFields, podFields } from '../../src/inject/pod-merge-keys.ts'
import { TestCluster } from '../harness/cluster.ts'
import { manifest, programImages, settled } from '../harness/cluster-mesh.ts'
import { discoveryScript } from '../harness/commands.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { until } from '../harness/until.ts'

const envoy = envoyBinaries().at(-1)?.path ?? ''
const strict = `apiVersion: security.mesh.io/v1
kind: PeerAuthentication
metadata: {name: strict, namespace: mesh-system}
spec: {mtls: {mode: STRICT}}
`
const workload = (name: string, container: object, metadata: object = {}) => [
  JSON.stringify({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace: 'shop' } }),
  JSON.stringify({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: 'shop' },
    spec: {
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name }, ...metadata },
        spec: { serviceAccountName: name, terminationGracePeriodSeconds: 1, containers: [{ name: 'application', ...container }] },
      },
    },
  }),
]
const pod = (name: string, metadata: object = {}) => ({
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'shop', ...metadata } },
  spec: { containers: [{ name: 'application', image: 'idle' }] },
})

interface StoredPod {
  readonly metadata: { readonly labels: Record<string, string>; readonly annotations: Record<string, string> }
  readonly spec: { readonly initContainers?: StoredContainer[]; readonly containers: StoredContainer[] }
}
interface StoredContainer {
  readonly name: string
  readonly restartPolicy?: string
  readonly securityContext?: object
  readonly readinessProbe?: object
}

/** A type in the description of the API. */
interface Definition {
  readonly properties?: Readonly<
    Record<
      string,
      {
        readonly type?: string
        readonly $ref?: string
        readonly items?: { readonly $ref?: string }
        readonly 'x-kubernetes-patch-strategy'?: string
        readonly 'x-kubernetes-patch-merge-key'?: string
      }
    >
  >
}

describe('injection in a cluster', () => {
  let cluster: TestCluster
  const names = (containers: readonly StoredContainer[] = []) => containers.map(({ name }) => name)
  const podOf = (app: string) => {
    const { items } = JSON.parse(cluster.kubectl(['get', 'pods', '-n', 'shop', '-l', `app=${app}`, '-o', 'json'])) as { items: StoredPod[] }
    return items[0] as StoredPod
  }
  /** What the API server would store, after its webhooks. */
  const stored = (object: object) =>
    JSON.parse(cluster.kubectl(['create', '--dry-run=server', '-o', 'json', '-f', '-'], JSON.stringify(object))) as StoredPod
  const bundles = () => {
    const [, configuration] = parseAllDocuments(manifest('injection.yaml')).map((document) => document.toJSON())
    const path = `{.webhooks[*].clientConfig.caBundle}`
    const text = cluster.kubectl(['get', 'mutatingwebhookconfiguration', configuration.metadata.name, '-o', `jsonpath=${path}`])
    return { text, isWhole: text.split(' ').filter(Boolean).length === configuration.webhooks.length }
  }
  /** Answers of a page of discovery. */
  const page = (path: string) =>
    cluster.kubectl(['exec', '-n', 'mesh-system', 'deploy/meshd', '--', process.execPath, discoveryScript, 'request', 'GET', path])

  before(async function () {
    if (envoy === '') this.skip()
    cluster = await TestCluster.start()
    programImages(cluster, envoy)
    cluster.kubectl(['apply', '-f', fileURLToPath(new URL('../../manifests/crds', import.meta.url))])
    cluster.apply(
      ...['access.yaml', 'discovery.yaml', 'injection.yaml'].map(manifest),
      '{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {mesh-injection: enabled}}}',
      '{apiVersion: v1, kind: Namespace, metadata: {name: plain}}',
      '{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}]}}',
      strict,
    )
    settled(cluster, 'mesh-system', 'meshd')
    await until('the webhooks to have the CA bundle', () => bundles().isWhole)
    cluster.apply(
      ...workload('web', {
        image: 'echo',
        ports: [{ containerPort: 8080 }],
        readinessProbe: { httpGet: { path: '/', port: 8080 }, periodSeconds: 1 },
      }),
      ...workload('client', { image: 'idle' }),
    )
    for (const name of ['web', 'client']) settled(cluster, 'shop', name)
  })
  after(async () => {
    await cluster?.dispose()
  })

  it('gives the pods of a namespace a sidecar, and its container no privilege', () => {
    const { metadata, spec } = podOf('web')
    // The API server has native sidecar containers.
    expect([names(spec.initContainers), names(spec.containers)]).to.deep.equal([['mesh-init', 'mesh-proxy'], ['application']])
    const [init, agent] = spec.initContainers as [StoredContainer, StoredContainer]
    expect(agent.restartPolicy).to.equal('Always')
    expect(agent.securityContext).to.deep.equal({
      ...{ allowPrivilegeEscalation: false, privileged: false, readOnlyRootFilesystem: true, runAsUser: 1337, runAsGroup: 1337 },
      ...{ runAsNonRoot: true, capabilities: { drop: ['ALL'] }, seccompProfile: { type: 'RuntimeDefault' } },
    })
    expect(init.securityContext).to.deep.include({ capabilities: { add: ['NET_ADMIN', 'NET_RAW'], drop: ['ALL'] }, privileged: false })
    expect(metadata.labels['security.mesh.io/tlsMode']).to.equal('mesh')
    expect(spec.containers[0]?.readinessProbe).to.deep.include({ periodSeconds: 1 })
    expect(JSON.stringify(spec.containers[0]?.readinessProbe)).to.contain('/app-health/application/readyz')
  })

  it('lets them call each other over mutual TLS, and nobody else', async () => {
    const call = () =>
      cluster.kubectl(['exec', '-n', 'shop', 'deploy/client', '-c', 'application', '--', 'curl', '-s', '-m', '10', 'http://web.shop/'])
    let answer = ''
    await until('a call to succeed', () => {
      answer = call()
      return answer.includes('X-Forwarded-Client-Cert')
    })
    expect(answer).to.match(/By=spiffe:\/\/cluster.local\/ns\/shop\/sa\/web;.*URI=spiffe:\/\/cluster.local\/ns\/shop\/sa\/client/)
    cluster.apply(JSON.stringify({ ...pod('outside'), metadata: { name: 'outside', namespace: 'plain' } }))
    cluster.waitFor('condition=Ready', '-n', 'plain', 'pod/outside')
    expect(() => cluster.kubectl(['exec', '-n', 'plain', 'outside', '--', 'curl', '-s', '-m', '10', 'http://web.shop/'])).to.throw('exit code 56')
  })

  it('follows labels of namespaces and pods, in both spellings', () => {
    const isInjected = (object: object) => names(stored(object).spec.initContainers).includes('mesh-proxy')
    expect(isInjected(pod('a'))).to.equal(true)
    for (const domain of ['mesh.io', 'istio.io']) {
      expect(isInjected(pod('b', { labels: { [`sidecar.${domain}/inject`]: 'false' } })), domain).to.equal(false)
      expect(isInjected(pod('c', { annotations: { [`sidecar.${domain}/inject`]: 'false' } })), domain).to.equal(false)
      expect(isInjected({ ...pod('d'), metadata: { name: 'd', namespace: 'plain', labels: { [`sidecar.${domain}/inject`]: 'true' } } })).to.equal(
        true,
      )
      expect(isInjected({ ...pod('e'), metadata: { name: 'e', namespace: 'plain', labels: { [`${domain}/rev`]: 'default' } } })).to.equal(true)
      expect(isInjected({ ...pod('f'), metadata: { name: 'f', namespace: 'plain', labels: { [`${domain}/rev`]: 'canary' } } })).to.equal(false)
    }
    expect(isInjected({ ...pod('g'), metadata: { name: 'g', namespace: 'plain' } })).to.equal(false)
    for (const [index, label] of ['istio-injection=enabled', 'istio.io/rev=default', 'mesh.io/rev=default'].entries()) {
      cluster.kubectl(['create', 'namespace', `labelled-${index}`])
      cluster.kubectl(['label', 'namespace', `labelled-${index}`, label])
      expect(isInjected({ ...pod('h'), metadata: { name: 'h', namespace: `labelled-${index}` } }), label).to.equal(true)
    }
  })

  it('merges lists by the keys that the API server publishes', () => {
    const { definitions } = JSON.parse(cluster.kubectl(['get', '--raw', '/openapi/v2'])) as { definitions: Record<string, Definition> }
    const found: string[] = []
    const list = (name: string, path: string, within: readonly string[]): void => {
      for (const [field, property] of Object.entries(definitions[name]?.properties ?? {})) {
        const isMerged = property.type === 'array' && (property['x-kubernetes-patch-strategy'] ?? '').split(',').includes('merge')
        if (isMerged) found.push(`${path}${field} ${property['x-kubernetes-patch-merge-key'] ?? ''}`)
        // Within a list that is replaced nothing is merged.
        const inner = (property.$ref ?? (isMerged ? property.items?.$ref : undefined))?.replace('#/definitions/', '')
        if (inner && !within.includes(inner)) list(inner, `${path}${field}.`, [...within, inner])
      }
    }
    list('io.k8s.api.core.v1.Pod', '', [])
    expect(found.length).to.be.greaterThan(15)
    const own: string[] = []
    const add = (fields: MergedFields, path: string): void => {
      for (const [field, { key, isMerged, fields: inner }] of fields) {
        if (key !== undefined || isMerged) own.push(`${path}${field} ${key ?? ''}`)
        if (inner) add(inner, `${path}${field}.`)
      }
    }
    add(podFields, '')
    // The table may know fields of newer servers; of those that this one has, none is missing or different.
    const fieldsOf = (lines: readonly string[]) => new Map(lines.map((line) => line.split(' ') as [string, string]))
    const [published, ours] = [fieldsOf(found), fieldsOf(own)]
    expect([...published].filter(([field, key]) => ours.get(field) !== key)).to.deep.equal([])
  })

  it('refuses a pod whose annotation is malformed, and says why', () => {
    const malformed = pod('wrong', { annotations: { 'traffic.sidecar.istio.io/includeInboundPorts': 'http' } })
    expect(() => stored(malformed)).to.throw(/injection failed: annotation traffic.sidecar.istio.io\/includeInboundPorts: "http": is not a port/)
  })

  it('keeps the CA bundle of the webhooks', async () => {
    const { text } = bundles()
    cluster.kubectl([
      ...['patch', 'mutatingwebhookconfiguration', 'mesh-sidecar-injector', '--type=json', '-p'],
      '[{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]',
    ])
    await until('the bundle to be written again', () => bundles().text === text)
  })

  it('follows its ConfigMap, and keeps the last good one', async () => {
    const change = (policy: string) => {
      const config = JSON.parse(cluster.kubectl(['get', 'configmap', '-n', 'mesh-system', 'mesh-sidecar-injector', '-o', 'json'])) as {
        data: { config: string }
      }
      const data = { ...config.data, config: config.data.config.replace(/^policy: .*$/m, policy) }
      cluster.apply(JSON.stringify({ ...config, data }))
    }
    const state = () => JSON.parse(page('/debug/inject')) as { place: string; fault: string; config: string }
    const isInjected = () => names(stored(pod('i')).spec.initContainers).includes('mesh-proxy')
    expect(state()).to.deep.include({ place: 'ConfigMap mesh-system/mesh-sidecar-injector', fault: '', revision: 'default', nativeSidecars: true })
    change('policy: disabled')
    await until('no pod to be injected', () => !isInjected())
    change('policy: [')
    await until('the fault to be told', () => state().fault !== '')
    expect(state().fault).to.match(/^ConfigMap mesh-system\/mesh-sidecar-injector: config: not YAML/)
    expect(isInjected()).to.equal(false)
    change('policy: enabled')
    await until('pods to be injected again', isInjected)
    expect(state().fault).to.equal('')
  })

  it('is the same with the command, and is counted', () => {
    const object = pod('j', { labels: { app: 'j' } })
    const args = [discoveryScript, 'inject', '-f', '-', '--orchconfig', cluster.adminConfig, '--nativeSidecars']
    const { stdout, stderr, status } = spawnSync(process.execPath, args, { input: JSON.stringify(object), encoding: 'utf8' })
    expect([status, stderr]).to.deep.equal([0, ''])
    const made = parse(stdout) as StoredPod
    const asked = stored(object)
    expect(names(made.spec.initContainers)).to.deep.equal(names(asked.spec.initContainers))
    expect(made.metadata.labels).to.deep.equal(asked.metadata.labels)
    expect(made.metadata.annotations).to.deep.equal(asked.metadata.annotations)
    // What was injected before is injected again without a change: the result of the command may be applied where the webhook is.
    expect(stored(made as object).metadata).to.deep.include({ labels: asked.metadata.labels, annotations: asked.metadata.annotations })
    const metrics = page('/metrics')
    for (const name of ['requests', 'success', 'skip', 'failure'])
      expect(metrics, name).to.match(new RegExp(`^sidecar_injection_${name}_total [1-9]`, 'm'))
  })
})
