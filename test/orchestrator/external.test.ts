/**
 * One control plane for several clusters (docs/operation.md, J10): what it writes in another cluster, and the authority that it takes from a
 * Secret while its state is in a directory (docs/certificates.md, A6).
 */
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { fingerprintOf } from '../../src/identity/pem.ts'
import { rootOf } from '../harness/authorities.ts'
import { TestCluster } from '../harness/cluster.ts'
import { SecuredDiscovery } from '../harness/secured-discovery.ts'
import { until } from '../harness/until.ts'

const webhooks = JSON.stringify({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'MutatingWebhookConfiguration',
  metadata: { name: 'mesh-sidecar-injector' },
  webhooks: [
    {
      name: 'namespace.sidecar-injector.mesh.io',
      clientConfig: { url: 'https://discovery.example:15017/inject' },
      ...{ admissionReviewVersions: ['v1'], sideEffects: 'None', failurePolicy: 'Ignore' },
      rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
      namespaceSelector: { matchLabels: { nobody: 'has-it' } },
    },
  ],
})

describe('a control plane of several clusters', () => {
  let near: TestCluster
  let far: TestCluster
  let discovery: SecuredDiscovery

  /** The fingerprints of the roots that namespaces of a cluster have. */
  const roots = (cluster: TestCluster): Record<string, string> => {
    const text = cluster.kubectl(['get', 'configmaps', '-A', '--field-selector', 'metadata.name=mesh-ca-root-cert', '-o', 'json'])
    const { items } = JSON.parse(text) as { items: { metadata: { namespace: string }; data?: Record<string, string> }[] }
    return Object.fromEntries(items.map(({ metadata, data }) => [metadata.namespace, fingerprintOf(data?.['root-cert.pem'] ?? '')]))
  }
  const haveAll = (cluster: TestCluster, root: string) => {
    const namespaces = cluster.kubectl(['get', 'namespaces', '-o', 'jsonpath={.items[*].metadata.name}']).split(' ')
    const found = roots(cluster)
    return namespaces.every((namespace) => found[namespace] === root)
  }
  const plugged = rootOf('first')

  before(async () => {
    ;[near, far] = await Promise.all([TestCluster.start(), TestCluster.start()])
    for (const cluster of [near, far]) {
      cluster.stopControllers()
      cluster.apply('apiVersion: v1\nkind: Namespace\nmetadata: {name: mesh-system}', webhooks)
    }
    const stringData = {
      'ca-cert.pem': plugged.record.root,
      'ca-key.pem': plugged.key.export({ type: 'pkcs8', format: 'pem' }),
      'root-cert.pem': plugged.record.root,
    }
    near.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'cacerts', namespace: 'mesh-system' }, stringData }))
    discovery = await SecuredDiscovery.start(near.roleConfig(), { EXTERNAL_MESHD: 'true', USE_REMOTE_CERTS: 'true' })
  })
  after(async () => {
    far?.signalServer('SIGCONT')
    await discovery?.dispose()
    await Promise.all([near?.dispose(), far?.dispose()])
  })

  it('signs with the authority in the Secret of its cluster, while its state is in a directory', async () => {
    const root = fingerprintOf(plugged.record.root)
    await until('the roots of the Secret in the own namespaces', () => haveAll(near, root))
    expect((await discovery.service.debug<{ source: string }>('ca')).source).to.equal('plugged-in')
    expect(Object.keys(roots(far)), 'before a remote secret names it').to.deep.equal([])
  })

  it('writes the roots into the namespaces of another cluster, and the certificates that verify it into its injection webhooks', async () => {
    const data = { far: Buffer.from(readFileSync(far.roleConfig(), 'utf8')).toString('base64') }
    const metadata = { name: 'remotes', namespace: 'mesh-system', labels: { 'mesh/multiCluster': 'true' } }
    near.kubectl(['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata, data }))
    const root = fingerprintOf(plugged.record.root)
    await until('the roots in all namespaces', () => haveAll(far, root))
    far.kubectl(['create', 'namespace', 'late'])
    await until('the roots in a new namespace', () => roots(far).late === root)
    far.kubectl(['delete', 'configmap', '-n', 'late', 'mesh-ca-root-cert'])
    await until('the removed ConfigMap', () => roots(far).late === root)
    const bundle = (cluster: TestCluster) =>
      cluster.kubectl(['get', 'mutatingwebhookconfiguration', 'mesh-sidecar-injector', '-o', 'jsonpath={.webhooks[0].clientConfig.caBundle}'])
    await until('the bundle', () => bundle(far) !== '')
    expect(bundle(far)).to.equal(bundle(near))
    // Pods there would be given the cluster of the values of injection.
    const config = 'MutatingWebhookConfiguration mesh-sidecar-injector of the cluster far'
    await discovery.service.output.says(
      new RegExp(`warn\\s+.*${config}: the path "/inject" does not name this cluster, .*; the path /inject/cluster/far names it`),
    )
    discovery.service.output.lacks(/MutatingWebhookConfiguration mesh-sidecar-injector: the path/)
    expect(Buffer.from(bundle(far), 'base64').toString()).to.equal(discovery.made.text('ca.pem'))
  })

  it('delays nothing in its own cluster while the server of another one hangs', async () => {
    far.signalServer('SIGSTOP')
    near.kubectl(['create', 'namespace', 'meanwhile'])
    await until('the roots in the own cluster', () => roots(near).meanwhile !== undefined)
    far.signalServer('SIGCONT')
    far.kubectl(['create', 'namespace', 'afterwards'])
    await until('the roots in the other cluster', () => roots(far).afterwards !== undefined)
  })
})
