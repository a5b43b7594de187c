/**
 * What the identities of another cluster may do: they are workloads of the mesh, and have the rights of their namespace in their own cluster
 * alone (docs/identity.md, I9 to I11).
 */
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fromBinary } from '@bufbuild/protobuf'
import { expect } from 'chai'
import { SecretSchema } from '../../protocols/gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.js'
import { vouchingCluster } from '../../src/identity/vouched.ts'
import { clusterType, secretType } from '../../src/xds/type-urls.ts'
import { TestCluster } from '../harness/cluster.ts'
import { type Pair, pairValues, SiteCertificates, secretDocument } from '../harness/gateway-secrets.ts'
import { contentOf } from '../harness/secret-client.ts'
import { SecuredDiscovery } from '../harness/secured-discovery.ts'
import { keys } from '../harness/signing-requests.ts'
import { until } from '../harness/until.ts'
import type { XdsClient } from '../harness/xds-client.ts'

const namespace = (name: string) => `apiVersion: v1\nkind: Namespace\nmetadata: {name: ${name}}`
const account = (of: string, name: string) => `apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: ${name}, namespace: ${of}}`
/** Permits an account to list the Secrets of its namespace. */
const reads = (of: string, name: string) => `apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reads-${name}, namespace: ${of}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: secret-reader}
subjects: [{kind: ServiceAccount, name: ${name}, namespace: ${of}}]`
const reader =
  'apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: secret-reader}\nrules: [{apiGroups: [""], resources: [secrets], verbs: [list]}]'

describe('identities of another cluster', () => {
  const made = new SiteCertificates()
  const sites: Pair[] = []
  let near: TestCluster
  let far: TestCluster
  let discovery: SecuredDiscovery

  /** The headers of a call by an account of a cluster. */
  const headers = (of: 'near' | 'far', who: string) => {
    const [ns = '', name = ''] = who.split('/')
    const token = (of === 'near' ? near : far).kubectl(['create', 'token', name, '-n', ns, '--audience', 'mesh-ca']).trim()
    return { authorization: `Bearer ${token}`, clusterid: of === 'near' ? 'Orchestrator' : 'far' }
  }
  const router = (cluster: string, ns = 'edge') => ({
    id: `router~10.99.0.2~gateway.${ns}~${ns}.svc.cluster.local`,
    metadata: { NAMESPACE: ns, CLUSTER_ID: cluster },
  })
  /** Subscribes to the Secret once there is configuration. */
  const watching = async (client: XdsClient, name = 'one') => {
    await until('the first configuration', () => client.responses.has(clusterType) || client.closed !== undefined)
    return client.watch(secretType, [`kubernetes://${name}`])
  }
  /** Which site's Secret a client has. */
  const site = (client: XdsClient, name = 'one') => {
    const bytes = client.resources.get(secretType)?.get(`kubernetes://${name}`)
    const key = bytes && contentOf(fromBinary(SecretSchema, bytes)).key
    return key === undefined ? undefined : sites.findIndex((each) => each.key === key)
  }
  const status = async (client: XdsClient) => {
    await until('an answer', () => client.responses.has(clusterType) || client.closed !== undefined)
    return client.closed ? `${client.closed.code} ${client.closed.details}` : 'served'
  }

  before(async () => {
    ;[near, far] = await Promise.all([TestCluster.start(), TestCluster.start()])
    const root = made.authority('sites')
    for (const name of ['near', 'far', 'moved']) sites.push(made.issue(`${name}.example`, root))
    const accounts = [account('edge', 'gateway'), account('edge', 'visitor'), account('mesh-system', 'admin')]
    for (const cluster of [near, far]) {
      cluster.stopControllers()
      cluster.apply(...['mesh-system', 'edge'].map(namespace), ...accounts, reader)
    }
    near.apply(reads('edge', 'gateway'), reads('edge', 'visitor'))
    far.apply(reads('edge', 'gateway'))
    near.apply(secretDocument('edge/one', pairValues(sites[0] as Pair), undefined, null))
    far.apply(secretDocument('edge/one', pairValues(sites[1] as Pair), undefined, null))
    discovery = await SecuredDiscovery.start(near.roleConfig(), { PILOT_DEBOUNCE_AFTER: '10ms', PILOT_REMOTE_CLUSTER_MAX_OBJECTS: '60' })
    const data = { far: Buffer.from(readFileSync(far.roleConfig(), 'utf8')).toString('base64') }
    const metadata = { name: 'remotes', namespace: 'mesh-system', labels: { 'mesh/multiCluster': 'true' } }
    near.kubectl(['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata, data }))
    await discovery.service.output.says('the objects of cluster far')
  })
  after(async () => {
    await discovery?.dispose()
    await Promise.all([near?.dispose(), far?.dispose()])
    made.dispose()
  })

  it('read the Secrets of their own cluster, if its server permits it, and no others', async () => {
    const [ours, theirs] = await Promise.all([
      watching(discovery.open(headers('near', 'edge/gateway'), undefined, router('Orchestrator'))),
      watching(discovery.open(headers('far', 'edge/gateway'), undefined, router('far'))),
    ])
    await until('the Secret of the own cluster', () => site(ours) === 0)
    await until('the Secret of the other cluster', () => site(theirs) === 1)
    // The account of this name may list in the own cluster, and not in the other one.
    const visitor = await watching(discovery.open(headers('far', 'edge/visitor'), undefined, router('far')))
    await discovery.service.output.says('Secret/edge/one of cluster far is not given to gateways of the service account visitor')
    far.apply(secretDocument('edge/one', pairValues(sites[2] as Pair), undefined, null))
    await until('the changed Secret', () => site(theirs) === 2)
    expect([site(ours), site(visitor)]).to.deep.equal([0, undefined])
  })

  it('keep their cluster in their certificates, and in those that they are renewed with', async () => {
    const token = await discovery.certify(keys.p256, headers('far', 'edge/gateway'))
    const renewed = await discovery.certify(keys.p256, {}, token)
    for (const { cert } of [token, renewed]) expect(vouchingCluster(new X509Certificate(cert).raw)).to.equal('far')
    const ours = await discovery.certify(keys.p256, headers('near', 'edge/gateway'))
    expect(vouchingCluster(new X509Certificate(ours.cert).raw)).to.equal(undefined)
    const theirs = await watching(discovery.open({}, renewed, router('far')))
    await until('the Secret of the other cluster', () => site(theirs) === 2)
    const own = await watching(discovery.open({}, ours, router('Orchestrator')))
    await until('the Secret of the own cluster', () => site(own) === 0)
    expect(await status(discovery.open({}, renewed, router('Orchestrator')))).to.equal(
      '7 the node names the cluster "Orchestrator" (metadata CLUSTER_ID), the cluster "far" vouches for its identity',
    )
  })

  it('are served as nodes of their own cluster only', async () => {
    expect(await status(discovery.open(headers('far', 'edge/gateway'), undefined, router('far')))).to.equal('served')
    expect(await status(discovery.open(headers('far', 'edge/gateway'), undefined, router('Orchestrator')))).to.equal(
      '7 the node names the cluster "Orchestrator" (metadata CLUSTER_ID), the cluster "far" vouches for its identity',
    )
    expect(await status(discovery.open(headers('near', 'edge/gateway'), undefined, router('far')))).to.contain('7 the node names the cluster "far"')
  })

  it('are no operators, in whatever namespace they are', async () => {
    const page = (of: 'near' | 'far') => discovery.page('/debug/clusterz', headers(of, 'mesh-system/admin'))
    expect(await page('near')).to.equal(200)
    expect(await page('far')).to.equal(403)
  })

  it('are of a cluster of which a limited number of objects is kept: the others are told, and what is known stays', async () => {
    const service = (name: string) =>
      `apiVersion: v1\nkind: Service\nmetadata: {name: ${name}, namespace: edge}\nspec: {ports: [{name: http, port: 80}]}`
    const known = async () => {
      const services = await discovery.service.debug<{ hostname: string }[]>('registryz?cluster=far')
      return services.filter(({ hostname }) => hostname.includes('.edge.')).map(({ hostname }) => hostname.split('.')[0])
    }
    far.apply(service('early'))
    await until('the first service', async () => (await known()).includes('early'))
    far.apply(...Array.from({ length: 80 }, (_, at) => service(`many-${at}`)))
    await discovery.service.output.says(
      /cluster far: Service edge\/many-\d+ and others are left out: more than 60 objects of the cluster are not kept/,
    )
    expect((await known()).length).to.be.within(2, 60)
    expect(await known()).to.include('early')
    const ready = await fetch(`http://127.0.0.1:${discovery.service.httpPort}/ready`)
    expect(await ready.text()).to.contain('PILOT_REMOTE_CLUSTER_MAX_OBJECTS')
    // What is known goes on to change.
    far.kubectl(['delete', 'service', '-n', 'edge', 'early'])
    await until('the removed service', async () => !(await known()).includes('early'))
  })
})
