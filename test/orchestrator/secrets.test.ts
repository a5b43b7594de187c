/** Gateways are sent Secrets of a real cluster (docs/resources.md, K1 to K12): by namespace, permission, rotation and removal. */
import { fromBinary } from '@bufbuild/protobuf'
import { credentials } from '@grpc/grpc-js'
import { expect } from 'chai'
import { ClusterConnection } from '../../actors/discovery/cluster/cluster-connection.ts'
import { ClusterObjects } from '../../bench/cluster-objects.ts'
import { freePort } from '../../bench/ports.ts'
import { SecretSchema } from '../../protocols/gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.js'
import type { ClusterStatus } from '../../protocols/messages/orchestrator.ts'
import { clusterType, secretType } from '../../src/xds/type-urls.ts'
import { TestCluster } from '../harness/cluster.ts'
import { type Pair, pairValues, SiteCertificates, secretDocument } from '../harness/gateway-secrets.ts'
import { contentOf } from '../harness/secret-client.ts'
import { Service } from '../harness/service.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'
import { XdsClient } from '../harness/xds-client.ts'

/** What discovery needs of its role, by resource; `secrets` is taken away and given. */
const needed = {
  core: '{apiGroups: [""], resources: [namespaces, nodes, services, pods, configmaps], verbs: [list, watch]}',
  slices: '{apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [list, watch]}',
  secrets: '{apiGroups: [""], resources: [secrets], verbs: [list, watch]}',
  reviews: '{apiGroups: [authorization.k8s.io], resources: [subjectaccessreviews], verbs: [create]}',
}
const roleWithout = (name: string, ...missing: (keyof typeof needed)[]) => {
  const rules = Object.entries(needed).flatMap(([key, rule]) => (missing.includes(key as keyof typeof needed) ? [] : rule))
  return `apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: ${name}}\nrules: [${rules.join(', ')}]`
}
const binding = (namespace: string, account: string) => `apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reads-${account}, namespace: ${namespace}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: secret-reader}
subjects: [{kind: ServiceAccount, name: ${account}, namespace: ${namespace}}]`

describe('Secrets of a real cluster for gateways', () => {
  let cluster: TestCluster
  const made = new SiteCertificates()
  const services: Service[] = []
  const clients: XdsClient[] = []
  let mesh: ServingCertificates
  let root: Pair
  const sites: Pair[] = []
  let running: Service
  let port = 0

  const apply = (path: string, values: Record<string, string>, type?: string) => cluster.apply(secretDocument(path, values, type, null))
  const remove = (path: string) => cluster.kubectl(['delete', 'secret', '-n', ...(path.split('/') as [string, string])])
  /** A discovery service with an account and a role of its own, both of this name. */
  const limited = async (name: string): Promise<[Service, number]> => {
    cluster.apply(
      `apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: ${name}, namespace: default}`,
      `apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: ${name}}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ${name}}\nsubjects: [{kind: ServiceAccount, name: ${name}, namespace: default}]`,
    )
    return discovery(cluster.tokenConfig(name, cluster.kubectl(['create', 'token', name]).trim()))
  }
  /** Returns a discovery service when it is ready, and the port at which gateways connect. */
  const discovery = async (config = cluster.kubeconfig): Promise<[Service, number]> => {
    const secured = await freePort()
    const flags = ['--registries', 'Orchestrator', '--orchconfig', config, '--writers', '1', '--secureGRPCAddr', `127.0.0.1:${secured}`]
    const service = new Service({ flags: [...flags, ...mesh.servingFlags()] })
    services.push(service)
    await service.start()
    return [service, secured]
  }
  /** A router with the certificate of a service account, `<namespace>/<account>`, which subscribes to secrets. */
  const router = async (who: string, names: readonly string[], { delta = true, at = port } = {}): Promise<XdsClient> => {
    const [namespace = '', account = ''] = who.split('/')
    const text = (name: string) => Buffer.from(mesh.text(name))
    const certificate = `${namespace}-${account}`
    const tls = credentials.createSsl(text('ca.pem'), text(`${certificate}-key.pem`), text(`${certificate}.pem`), {
      checkServerIdentity: () => undefined,
    })
    const node = { id: `router~10.7.0.9~gateway.${namespace}~${namespace}.svc.cluster.local`, metadata: { NAMESPACE: namespace } }
    const client = new XdsClient(at, node, delta, tls).connect()
    clients.push(client)
    await until('the first configuration', () => client.responses.has(clusterType))
    return client.watch(
      secretType,
      names.map((name) => `kubernetes://${name}`),
    )
  }
  const held = (client: XdsClient, name: string) => {
    const bytes = client.resources.get(secretType)?.get(`kubernetes://${name}`)
    return bytes && contentOf(fromBinary(SecretSchema, bytes))
  }
  /** Waits until a client has the certificate of a site. */
  const has = (client: XdsClient, name: string, site: number) =>
    until(
      `${name} to be that of site ${site}`,
      () => held(client, name)?.key === sites[site]?.key && held(client, name)?.chain === sites[site]?.chain,
    )
  const triggers = async () => Number(/^pilot_push_triggers\{type="secret"\} (\d+)$/m.exec(await running.metrics())?.[1] ?? 0)

  before(async () => {
    cluster = await TestCluster.start()
    const keysOf = new Service()
    services.push(keysOf)
    mesh = new ServingCertificates(keysOf.dir)
    mesh.authority('ca')
    mesh.issue('server', 'ca')
    for (const [namespace, account] of [
      ['edge', 'gateway'],
      ['edge', 'visitor'],
      ['other', 'gateway'],
      ['many', 'gateway'],
      ['few', 'gateway'],
    ] as const)
      mesh.workload(`${namespace}-${account}`, 'ca', [`spiffe://cluster.local/ns/${namespace}/sa/${account}`])
    root = made.authority('sites')
    for (const name of ['a', 'b', 'c', 'd']) sites.push(made.issue(`${name}.example`, root))
    cluster.apply(
      ...['edge', 'other', 'many', 'few', 'unused'].map((name) => `apiVersion: v1\nkind: Namespace\nmetadata: {name: ${name}}`),
      'apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: secret-reader}\nrules: [{apiGroups: [""], resources: [secrets], verbs: [list]}]',
      ...['edge', 'other', 'many', 'few'].map((namespace) => binding(namespace, 'gateway')),
      ...[roleWithout('blind', 'secrets')],
    )
    ;[running, port] = await discovery()
  })
  after(async () => {
    for (const client of clients) client.close()
    await Promise.all(services.map((service) => service.dispose()))
    await cluster?.dispose()
    made.dispose()
  })

  it('come in both forms, with authorities of their own or of a second Secret, and only those of namespaces that want some are kept', async () => {
    apply('edge/one', pairValues(sites[0] as Pair))
    apply('edge/one-cacert', { 'ca.crt': root.chain }, 'Opaque')
    apply('edge/two', { cert: sites[1]?.chain ?? '', key: sites[1]?.key ?? '', cacert: root.chain }, 'Opaque')
    apply('other/mine', pairValues(sites[2] as Pair))
    apply('edge/unused', { password: 'not for gateways' }, 'Opaque')
    running.output.lacks('secrets')
    for (const delta of [true, false]) {
      const client = await router('edge/gateway', ['one', 'one-cacert', 'two', 'two-cacert', 'edge/two'], { delta })
      await has(client, 'one', 0)
      for (const name of ['two', 'edge/two']) await has(client, name, 1)
      for (const name of ['one-cacert', 'two-cacert']) await until(name, () => held(client, name)?.roots?.trim() === root.chain.trim())
    }
    const page = JSON.stringify(await running.debug('configz'))
    expect(page).to.contain('"one-cacert"').and.contain('cluster Orchestrator').and.not.contain('"mine"').and.not.contain('"unused"')
    const client = await router('other/gateway', ['mine', 'edge/one'])
    await has(client, 'mine', 2)
    await until('the answer about the Secret of another namespace', () => client.removed.includes('kubernetes://edge/one'))
    expect(held(client, 'edge/one')).to.equal(undefined)
  })

  it('go to the service accounts that may list them; permission that is given or taken away has its effect soon', async () => {
    const client = await router('edge/visitor', ['one'])
    const refusal =
      /Secret\/edge\/one of cluster Orchestrator is not given to gateways of the service account visitor, which request it: its role does not permit "list" of "secrets" in the namespace edge/
    await running.output.says(refusal)
    expect(held(client, 'one')).to.equal(undefined)
    cluster.apply(binding('edge', 'visitor'))
    await has(client, 'one', 0)
    client.removed.length = 0
    cluster.kubectl(['delete', 'rolebinding', '-n', 'edge', 'reads-visitor'])
    await until('the removal', () => client.removed.includes('kubernetes://one'))
    await running.output.says(refusal, 2)
  })

  it('are sent again to those who use them when they change, and to nobody else', async () => {
    const [one, two] = await Promise.all([router('edge/gateway', ['one']), router('edge/gateway', ['two'])])
    await has(one, 'one', 0)
    await has(two, 'two', 1)
    const [before, pushes] = [two.responses.get(secretType), await triggers()]
    apply('edge/one', pairValues(sites[3] as Pair))
    await has(one, 'one', 3)
    cluster.kubectl(['label', 'secret', '-n', 'edge', 'two', 'a=b'])
    apply('edge/unused', { password: 'changed' }, 'Opaque')
    apply('edge/one', pairValues(sites[0] as Pair))
    await has(one, 'one', 0)
    expect(two.responses.get(secretType)).to.equal(before)
    expect(await triggers()).to.equal(pushes + 2)
  })

  it('keep their last good state when they become faulty, and the log names the field and no content', async () => {
    const client = await router('edge/gateway', ['one'])
    await has(client, 'one', 0)
    apply('edge/one', { 'tls.crt': sites[0]?.chain ?? '', 'tls.key': sites[1]?.key ?? '' })
    await running.output.says(
      'Secret edge/one of cluster Orchestrator, field data.tls.key: not the key of the first certificate of tls.crt; its last good state stays',
    )
    await has(await router('edge/gateway', ['one']), 'one', 0)
    apply('edge/one', pairValues(sites[2] as Pair))
    await has(client, 'one', 2)
    const secret = (sites[1]?.key ?? '').split('\n')[1] ?? ''
    expect(secret).to.have.length.above(20)
    running.output.lacks(secret)
    expect(JSON.stringify(await running.debug('configz'))).not.to.contain(secret)
  })

  it('that are deleted are reported in delta and stay with those who have them in state of the world, until there is another', async () => {
    apply('edge/gone', pairValues(sites[0] as Pair))
    const [delta, sotw] = [await router('edge/gateway', ['gone']), await router('edge/gateway', ['gone'], { delta: false })]
    for (const client of [delta, sotw]) await has(client, 'gone', 0)
    remove('edge/gone')
    await until('the removal', () => delta.removed.includes('kubernetes://gone'))
    await has(sotw, 'gone', 0)
    apply('edge/gone', pairValues(sites[1] as Pair))
    for (const client of [delta, sotw]) await has(client, 'gone', 1)
  })

  it('of one name in files and in the cluster: that of the files counts', async () => {
    apply('edge/both', pairValues(sites[0] as Pair))
    running.write('both.json', secretDocument('edge/both', pairValues(sites[1] as Pair)))
    const client = await router('edge/gateway', ['both'])
    await has(client, 'both', 1)
    running.remove('both.json')
    await has(client, 'both', 0)
  })

  it('are served on while the API server is away', async () => {
    cluster.signalServer('SIGSTOP')
    try {
      const client = await router('edge/gateway', ['two', 'one-cacert'])
      await has(client, 'two', 1)
      await until('the authorities', () => held(client, 'one-cacert') !== undefined)
    } finally {
      cluster.signalServer('SIGCONT')
    }
  })

  it('that discovery may not read are not said to be missing, and do not keep it from being ready; they come when it may', async () => {
    const [blind, at] = await limited('blind')
    // What is told of remote secrets is another matter.
    const refused = 'cluster Orchestrator: the role of this service account does not permit "watch" of "secrets"'
    blind.output.lacks(refused)
    const client = await router('edge/gateway', ['two', 'never-there'], { at })
    await blind.output.says(refused)
    await blind.output.says(
      /gateways of the service account gateway request Secret\/edge\/never-there, which cannot be read at present, and wait for it: the role of this service account does not permit/,
    )
    expect((await fetch(`http://127.0.0.1:${blind.httpPort}/ready`)).status).to.equal(200)
    expect([client.removed, client.responses.get(secretType)]).to.deep.equal([[], undefined])
    cluster.apply(roleWithout('blind'))
    await has(client, 'two', 1)
    await until('the answer about the other', () => client.removed.includes('kubernetes://never-there'))
    // Taken away again: what is known stays, also for gateways that come, and nothing else is claimed.
    cluster.apply(roleWithout('blind', 'secrets'))
    cluster.signalServer('SIGKILL')
    await blind.output.says(/cluster Orchestrator: [^\n]*permit "watch" of "secrets"[^\n]*; the last state stays/)
    const late = await router('edge/gateway', ['two', 'also-not-there'], { at })
    await has(late, 'two', 1)
    await blind.output.says(/request Secret\/edge\/also-not-there, which cannot be read at present/)
    expect(late.removed).to.deep.equal([])
  })

  it('are listed of the namespace alone whose gateways want some, of 5,000 too', async () => {
    const writes = new ClusterObjects(await new ClusterConnection({ from: 'file', path: cluster.adminConfig }).access(false), 0)
    const secrets = (namespace: string, number: number) =>
      writes.create(
        `/api/v1/namespaces/${namespace}/secrets`,
        Array.from({ length: number }, (_, index) => JSON.parse(secretDocument(`${namespace}/s${index}`, pairValues(sites[index % 2] as Pair)))),
      )
    try {
      for (const [namespace, number] of [
        ['unused', 1000],
        ['many', 3990],
        ['few', 10],
      ] as const)
        await secrets(namespace, number)
    } finally {
      writes.close()
    }
    /** By namespace the Secrets that are followed, and how often they were listed. */
    const followed = async () => {
      const [status] = await running.debug<[ClusterStatus]>('clusterz')
      const kinds = status.kinds.filter(({ kind }) => kind === 'Secret')
      return Object.fromEntries(kinds.map(({ resource, objects, lists }) => [resource.replace('secrets of namespace ', ''), [objects, lists]]))
    }
    const few = await router('few/gateway', ['s9'])
    await has(few, 's9', 1)
    const before = await followed()
    expect(before).to.deep.include({ few: [10, 1] })
    const many = await router('many/gateway', ['s0', 's3989', 'none'])
    await has(many, 's3989', 1)
    await has(many, 's0', 0)
    await until('what is not there', () => many.removed.includes('kubernetes://none'))
    expect(await followed()).to.deep.equal({ ...before, many: [3990, 1] })
  })

  it('wait where it cannot be found out who may read them, and come when it can', async () => {
    cluster.apply(roleWithout('unsure', 'reviews'))
    const [unsure, at] = await limited('unsure')
    const client = await router('edge/gateway', ['two'], { at })
    await unsure.output.says(
      'it cannot be found out which gateways may read Secrets: the role of this service account does not permit "create" of "subjectaccessreviews.authorization.k8s.io"',
    )
    expect([client.removed, held(client, 'two')]).to.deep.equal([[], undefined])
    cluster.apply(roleWithout('unsure'))
    await has(client, 'two', 1)
  })
})
