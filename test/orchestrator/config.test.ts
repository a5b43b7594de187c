/** Discovery reads its configuration from a real cluster (docs/operation.md, F17 to F21). */
import { expect } from 'chai'
import { clusterType, endpointType, listenerType, routeType } from '../../src/xds/type-urls.ts'
import { TestCluster } from '../harness/cluster.ts'
import { LocalDiscovery } from '../harness/discovery.ts'
import { aliasDefinition, establish, meshDefinitions } from '../harness/mesh-definitions.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { type ClientNode, sidecarNode, XdsClient } from '../harness/xds-client.ts'

interface Shown {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly namespace: string
    readonly name: string
    readonly uid: string
    readonly resourceVersion: string
    readonly labels: object
  }
  readonly spec: { readonly hosts?: readonly string[]; readonly invalid?: string }
  readonly source: string
  readonly place: string
}

const domains = ['mesh.io', 'istio.io']
const namespaceOf = (domain: string) => domain.replace('.', '-')
const namespace = (name: string) => `apiVersion: v1\nkind: Namespace\nmetadata: {name: ${name}}`
const object = (kind: string, at: string, spec: string, group = 'networking.mesh.io', version = 'v1', labels = '{}') => {
  const [space, name] = at.split('/')
  return `apiVersion: ${group}/${version}\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${space}, labels: ${labels}}\nspec: ${spec}`
}
const entry = (at: string, host: string, group = 'networking.mesh.io', labels = '{}') =>
  object(
    'ServiceEntry',
    at,
    `{hosts: [${host}], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, endpoints: [{address: 10.9.0.1}]}`,
    group,
    'v1',
    labels,
  )

/** One object of each kind that has an effect, in a namespace of its own. Its hosts and names end in the domain. */
const documentsOf = (domain: string): string[] => {
  const [at, networking, security] = [namespaceOf(domain), `networking.${domain}`, `security.${domain}`]
  return [
    object(
      'ServiceEntry',
      `${at}/a`,
      `{hosts: [a.${domain}], location: MESH_INTERNAL, ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, workloadSelector: {labels: {app: w}}}`,
      networking,
    ),
    object('WorkloadEntry', `${at}/w`, '{address: 10.8.0.1, labels: {app: w, version: v1}}', networking, 'v1beta1'),
    object('DestinationRule', `${at}/a`, `{host: a.${domain}, subsets: [{name: v1, labels: {version: v1}}]}`, networking),
    object(
      'VirtualService',
      `${at}/a`,
      `{hosts: [a.${domain}], http: [{name: named-by-the-rule, route: [{destination: {host: a.${domain}, subset: v1}}]}]}`,
      networking,
      'v1alpha3',
    ),
    object(
      'Gateway',
      `${at}/g`,
      `{selector: {app: edge}, servers: [{port: {number: 8088, name: http, protocol: HTTP}, hosts: [a.${domain}]}]}`,
      networking,
    ),
    object('Sidecar', `${at}/s`, '{workloadSelector: {labels: {lane: narrow}}, egress: [{hosts: ["kube-system/*"]}]}', networking),
    object(
      'EnvoyFilter',
      `${at}/e`,
      `{configPatches: [{applyTo: CLUSTER, patch: {operation: ADD, value: {name: "added by a filter", connect_timeout: 1s}}}]}`,
      networking,
      'v1alpha3',
    ),
    object('AuthorizationPolicy', `${at}/denied`, '{action: DENY, rules: [{to: [{operation: {paths: ["/denied-by-the-policy"]}}]}]}', security),
    object(
      'RequestAuthentication',
      `${at}/tokens`,
      '{jwtRules: [{issuer: issuer-of-the-rule, jwks: \'{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}\'}]}',
      security,
      'v1beta1',
    ),
    object('PeerAuthentication', `${at}/strict`, '{mtls: {mode: STRICT}}', security),
  ]
}

describe('the configuration of a cluster', () => {
  let cluster: TestCluster
  let running: Service
  const services: Service[] = []
  const clients: XdsClient[] = []
  const definitions = meshDefinitions()

  const discovery = (kubeconfig: string, env: Record<string, string> = {}, ...flags: readonly string[]): Service => {
    const made = new Service({
      env: { PILOT_DEBOUNCE_AFTER: '10ms', ...env },
      flags: ['--registries', 'Orchestrator', '--orchconfig', kubeconfig, '--configDir', '', '--writers', '1', ...flags],
    })
    services.push(made)
    return made
  }
  const connect = (to: Service, node: ClientNode): Promise<XdsClient> => {
    const client = new XdsClient(to.grpcPort, node, true)
    clients.push(client.connect())
    return client.ready()
  }
  const texts = (client: XdsClient, type: string) =>
    [...(client.resources.get(type)?.values() ?? [])].map((bytes) => bytes.toString('latin1')).join('\n')
  const names = (client: XdsClient, type: string) => [...(client.resources.get(type)?.keys() ?? [])]
  const shown = async (of: Service) => (await of.debug<Shown[]>('configz')).filter(({ source }) => source === 'orch://')
  /** The hosts of the ServiceEntries of the cluster that are in force, as `<namespace>/<name>=<host>`. */
  const hosts = async (of: Service) =>
    (await shown(of))
      .flatMap(({ kind, metadata, spec }) => (kind === 'ServiceEntry' ? `${metadata.namespace}/${metadata.name}=${spec.hosts?.[0]}` : []))
      .sort()
  const found = async (of: Service, kind: string, at: string) =>
    (await shown(of)).find(({ metadata, ...each }) => each.kind === kind && `${metadata.namespace}/${metadata.name}` === at)
  const metric = async (of: Service, series: string) =>
    Number(
      (await of.metrics())
        .split('\n')
        .find((line) => line.startsWith(`${series} `))
        ?.slice(series.length + 1) ?? Number.NaN,
    )

  before(async () => {
    cluster = await TestCluster.start()
    cluster.apply(...domains.map((domain) => namespace(namespaceOf(domain))), namespace('shop'))
  })
  after(async () => {
    for (const client of clients) client.close()
    for (const each of services) await each.dispose()
    await cluster?.dispose()
  })

  it('is nothing without definitions of the kinds, which is said, and comes with them while the service runs', async () => {
    running = discovery(cluster.adminConfig, { REVISION: 'blue' })
    await running.start()
    await running.output.says('cluster Orchestrator: no kind of the mesh is defined (manifests/crds)')
    expect(await shown(running)).to.deep.equal([])
    establish(cluster, definitions.get('serviceentries') as string)
    cluster.apply(entry('shop/late', 'late.test'))
    const client = await connect(running, sidecarNode('10.99.0.1', 'late', 'shop'))
    await until('the host', () => names(client, clusterType).includes('outbound|80||late.test'))
    expect(await found(running, 'ServiceEntry', 'shop/late')).to.deep.include({ source: 'orch://', place: 'cluster Orchestrator' })
    cluster.kubectl(['delete', 'serviceentry', '-n', 'shop', 'late'])
    await until('its end', () => !names(client, clusterType).includes('outbound|80||late.test'))
  })

  it('reaches proxies in all kinds, in the groups of the mesh and of the alias', async () => {
    establish(cluster, ...definitions.values(), ...[...definitions.values()].map(aliasDefinition))
    for (const domain of domains) {
      const at = namespaceOf(domain)
      const [sidecar, narrow, edge] = await Promise.all([
        connect(running, sidecarNode('10.8.0.1', 'w', at, { LABELS: { app: 'w' } })),
        connect(running, sidecarNode('10.8.0.3', 'n', at, { LABELS: { lane: 'narrow' } })),
        connect(running, { id: `router~10.8.0.2~edge.${at}~${at}.svc.cluster.local`, metadata: { NAMESPACE: at, LABELS: { app: 'edge' } } }),
      ])
      const plain = texts(sidecar, listenerType)
      const policies = documentsOf(domain)
      const strict = policies.pop() as string
      cluster.apply(...policies)
      await until('the cluster of the subset', () => names(sidecar, clusterType).includes(`outbound|80|v1|a.${domain}`))
      await until('the route', () => texts(sidecar, routeType).includes('named-by-the-rule'))
      await until(
        'the workload',
        () => names(sidecar, endpointType).some((name) => name.endsWith(`||a.${domain}`)) && texts(sidecar, endpointType).includes('10.8.0.1'),
      )
      await until('the listener of the gateway', () => names(edge, listenerType).some((name) => name.includes('8088')))
      await until('the added cluster', () => names(sidecar, clusterType).includes('added by a filter'))
      await until(
        'what the Sidecar lets see',
        () => names(narrow, clusterType).includes('added by a filter') && !names(narrow, clusterType).includes(`outbound|80||a.${domain}`),
      )
      await until('the policies', () => ['/denied-by-the-policy', 'issuer-of-the-rule'].every((text) => texts(sidecar, listenerType).includes(text)))
      const permissive = texts(sidecar, listenerType)
      expect(permissive).not.to.equal(plain)
      cluster.apply(strict)
      await until('mutual TLS', () => texts(sidecar, listenerType) !== permissive)
    }
    const all = await shown(running)
    expect(all.filter(({ metadata }) => metadata.namespace === 'istio-io').map(({ apiVersion }) => apiVersion.split('/')[0])).to.include.members([
      'networking.mesh.io',
      'security.mesh.io',
    ])
    expect(all.find(({ metadata }) => metadata.namespace === 'istio-io')?.place).to.match(/^cluster Orchestrator, \w+\.\w+\.istio\.io$/)
  })

  it('is explained with cluster and resource version', async () => {
    const { resourceVersion, uid } = JSON.parse(
      cluster.kubectl(['get', 'destinationrules.networking.mesh.io', '-n', 'mesh-io', 'a', '-o', 'json']),
    ).metadata
    // An explanation is made within a bound, which a busy machine may exceed.
    await until('the explanation', async () => {
      const explained = JSON.stringify(await running.debug('explain?proxyID=w.mesh-io&type=cds&name=outbound|80|v1|a.mesh.io'))
      return [`"uid":"${uid}"`, `"version":"${resourceVersion}"`, '"cluster":"Orchestrator"', '"place":"cluster Orchestrator"'].every((part) =>
        explained.includes(part),
      )
    })
  })

  it('keeps the last good state of an object that cannot be used, and says field and reason', async () => {
    const client = await connect(running, sidecarNode('10.99.0.2', 'c', 'shop'))
    cluster.apply(entry('shop/kept', 'kept.test'))
    await until('the host', () => names(client, clusterType).includes('outbound|80||kept.test'))
    const spoilt = '{hosts: [spoilt.test], ports: [{number: 80, name: http}, {number: 80, name: again}], resolution: STATIC}'
    cluster.apply(object('ServiceEntry', 'shop/kept', spoilt))
    await running.output.says('cluster Orchestrator, ServiceEntry/shop/kept, field spec.ports[1].number: 80 is used twice; its last good state stays')
    expect(await hosts(running)).to.include('shop/kept=kept.test')
    await until('the metrics', async () => (await metric(running, 'pilot_orch_object_errors')) === 1)
    for (const series of ['pilot_total_orch_object_errors', 'galley_source_orch_dynamic_converter_failure_total'])
      expect(await metric(running, series)).to.be.at.least(1)
    expect(await metric(running, 'galley_source_orch_dynamic_converter_success_total')).to.be.at.least(20)
    expect(await metric(running, 'pilot_orch_cfg_events{type="ServiceEntry",event="add"}')).to.be.at.least(2)
    cluster.apply(entry('shop/kept', 'valid.test'))
    await until('the valid one', () => names(client, clusterType).includes('outbound|80||valid.test'))
    await until('no errors', async () => (await metric(running, 'pilot_orch_object_errors')) === 0)
    // A policy that never was valid is replaced by the strictest that it may mean.
    const policy = object('AuthorizationPolicy', 'shop/misspelt', '{rules: [{form: [{source: {principals: [a]}}]}]}', 'security.mesh.io')
    cluster.kubectl(['create', '--validate=ignore', '-f', '-'], policy)
    await running.output.says(/AuthorizationPolicy\/shop\/misspelt, field spec.rules\[0\].form: unknown field; /)
    expect(
      (await running.debug<{ standIns: { key: string; place: string }[] }>('filez')).standIns.map(({ key, place }) => [key, place]),
    ).to.deep.equal([['AuthorizationPolicy/shop/misspelt', 'cluster Orchestrator']])
    cluster.kubectl(['delete', 'authorizationpolicy.security.mesh.io', '-n', 'shop', 'misspelt'])
    await until('its end', async () => (await running.debug<{ standIns: unknown[] }>('filez')).standIns.length === 0)
  })

  it('causes no push when only a status changes', async () => {
    const client = await connect(running, sidecarNode('10.99.0.3', 's', 'shop'))
    // What the tests before removed is kept for a while, and goes with a push of its own (docs/resources.md, Q5).
    const there = ['valid.test', 'a.mesh.io', 'a.istio.io', 'cluster.local']
    const isThere = (name: string) => !name.startsWith('outbound|') || there.some((host) => name.endsWith(host))
    await until('the hosts of before to be gone', () => names(client, clusterType).every(isThere))
    const before = new Map(client.responses)
    const version = (await found(running, 'ServiceEntry', 'shop/kept'))?.metadata.resourceVersion
    cluster.kubectl([
      'patch',
      'serviceentries.networking.mesh.io',
      '-n',
      'shop',
      'kept',
      '--subresource=status',
      '--type=merge',
      '-p',
      '{"status":{"observedGeneration":1}}',
    ])
    await until('the new version', async () => (await found(running, 'ServiceEntry', 'shop/kept'))?.metadata.resourceVersion !== version)
    cluster.apply(entry('shop/other', 'other.test'))
    await until('another change', () => names(client, clusterType).includes('outbound|80||other.test'))
    expect(client.responses.get(clusterType)).to.equal((before.get(clusterType) ?? 0) + 1)
  })

  it('is read where it is for this revision or for all', async () => {
    const label = (...changes: string[]) => cluster.kubectl(['label', 'serviceentries.networking.mesh.io', '-n', 'shop', 'other', ...changes])
    label('istio.io/rev=green')
    await until('the end of the object', async () => !(await hosts(running)).includes('shop/other=other.test'))
    await running.output.says('left out, since it is for another control plane: ServiceEntry of revision "green"')
    label('istio.io/rev=blue', '--overwrite')
    await until('the object', async () => (await hosts(running)).includes('shop/other=other.test'))
    label('istio.io/rev-')
    await until('no label', async () => JSON.stringify((await found(running, 'ServiceEntry', 'shop/other'))?.metadata.labels) === '{}')
  })

  it('prefers the group of the mesh to the alias, and takes the strictest of two policies that differ', async () => {
    cluster.apply(entry('shop/both', 'alias.test', 'networking.istio.io'))
    await until('the alias', async () => (await hosts(running)).includes('shop/both=alias.test'))
    cluster.apply(entry('shop/both', 'own.test'))
    await until('the own group', async () => (await hosts(running)).includes('shop/both=own.test'))
    await running.output.says(
      'ServiceEntry/shop/both in cluster Orchestrator, serviceentries.networking.istio.io is ignored: serviceentries.networking.mesh.io /shop/both'.replace(
        ' /',
        ' ',
      ),
    )
    cluster.kubectl(['delete', 'serviceentries.networking.mesh.io', '-n', 'shop', 'both'])
    await until('the alias again', async () => (await hosts(running)).includes('shop/both=alias.test'))
    const policy = (mode: string, group: string) => object('PeerAuthentication', 'shop/both', `{mtls: {mode: ${mode}}}`, group)
    cluster.apply(policy('STRICT', 'security.istio.io'), policy('DISABLE', 'security.mesh.io'))
    await until('the contested policy', async () => (await found(running, 'PeerAuthentication', 'shop/both'))?.spec.invalid !== undefined)
    cluster.apply(policy('DISABLE', 'security.istio.io'))
    await until('one policy', async () => (await found(running, 'PeerAuthentication', 'shop/both'))?.spec.invalid === undefined)
  })

  it('goes with its namespace, policies too', async () => {
    cluster.apply(
      namespace('gone'),
      entry('gone/a', 'gone.test'),
      object('PeerAuthentication', 'gone/a', '{mtls: {mode: STRICT}}', 'security.istio.io'),
    )
    await until('the objects', async () => (await shown(running)).filter(({ metadata }) => metadata.namespace === 'gone').length === 2)
    // Of an object that cannot be used at the end nothing stays either.
    cluster.apply(object('ServiceEntry', 'gone/a', '{hosts: [gone.test], ports: [{number: 80, name: a}, {number: 80, name: b}]}'))
    await running.output.says('ServiceEntry/gone/a, field spec.ports[1].number')
    cluster.kubectl(['delete', 'namespace', 'gone'])
    await until('their end', async () => (await shown(running)).every(({ metadata }) => metadata.namespace !== 'gone'))
  })

  it('ends with the definition of its kind, and is not mixed up with kinds of the same name', async () => {
    const alien = aliasDefinition(definitions.get('gateways') as string).replaceAll('networking.istio.io', 'gateway.networking.k8s.io')
    const approved = alien.replace(
      '  labels:',
      '  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes/enhancements/pull/1111"}\n  labels:',
    )
    establish(cluster, approved)
    const server = '{servers: [{port: {number: 7777, name: http, protocol: HTTP}, hosts: ["*"]}]}'
    cluster.apply(object('Gateway', 'mesh-io/alien', server, 'gateway.networking.k8s.io'))
    cluster.apply(object('Gateway', 'mesh-io/own', server))
    await until('the own one', async () => (await found(running, 'Gateway', 'mesh-io/own')) !== undefined)
    expect(await found(running, 'Gateway', 'mesh-io/alien')).to.equal(undefined)
    cluster.kubectl(['delete', 'crd', 'gateways.networking.mesh.io'])
    await until('the end of the objects', async () => (await found(running, 'Gateway', 'mesh-io/own')) === undefined)
    expect(await found(running, 'Gateway', 'istio-io/g')).not.to.equal(undefined)
    await until('nothing that is not followed', async () => (await (await fetch(`http://127.0.0.1:${running.httpPort}/ready`)).text()) === '')
    establish(cluster, definitions.get('gateways') as string)
    cluster.apply(object('Gateway', 'mesh-io/own', server))
    await until('it again', async () => (await found(running, 'Gateway', 'mesh-io/own')) !== undefined)
  })

  it('is waited for while the role does not permit it, and stays while it no longer does', async () => {
    const rule = (groups: string, resources: string) => `{apiGroups: ${groups}, resources: ${resources}, verbs: [list, watch]}`
    const registry = rule('["", discovery.k8s.io]', '[namespaces, nodes, services, pods, configmaps, endpointslices]')
    const crds = rule('[apiextensions.k8s.io]', '[customresourcedefinitions]')
    const groups = domains.flatMap((domain) => ['networking', 'security', 'telemetry', 'extensions'].map((name) => `${name}.${domain}`))
    const objects = rule(JSON.stringify(groups), '["*"]')
    const role = (...rules: string[]) =>
      cluster.apply(`apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: limited}\nrules: [${rules}]`)
    role(registry)
    cluster.apply(
      'apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: limited, namespace: shop}',
      'apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: limited}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: limited}\nsubjects: [{kind: ServiceAccount, name: limited, namespace: shop}]',
    )
    const limitedConfig = cluster.tokenConfig('limited', cluster.kubectl(['create', 'token', '-n', 'shop', 'limited']).trim())
    const limited = discovery(limitedConfig)
    const started = limited.start()
    const body = async () => (await fetch(`http://127.0.0.1:${limited.httpPort}/ready`)).text()
    await limited.output.says('the role of this service account does not permit "watch" of "customresourcedefinitions.apiextensions.k8s.io"')
    expect(await body()).to.contain('source/orch has not delivered its complete state yet')
    // One that may go on without them does, and has them once it may read them.
    const bold = discovery(limitedConfig, {}, '--allowUnreadableConfig')
    await bold.start()
    await bold.output.says(/"customresourcedefinitions.apiextensions.k8s.io": .*; --allowUnreadableConfig is set: the process goes on without them/)
    expect(await hosts(bold)).to.deep.equal([])
    role(registry, crds)
    await limited.output.says('the role of this service account does not permit "watch" of "peerauthentications.security.mesh.io"')
    expect(await body()).to.contain('source/orch has not delivered its complete state yet')
    role(registry, crds, objects)
    await started
    expect(await hosts(limited)).to.include('shop/other=other.test')
    await until('the objects', async () => (await hosts(bold)).includes('shop/other=other.test'))
    await bold.stop()
    const client = await connect(limited, sidecarNode('10.99.0.4', 'l', 'shop'))
    role(registry)
    cluster.signalServer('SIGKILL')
    await limited.output.says(/does not permit "watch" of "serviceentries.networking.mesh.io": .*; the last state stays/)
    await limited.output.says(/does not permit "watch" of "customresourcedefinitions.apiextensions.k8s.io": .*; the last state stays/)
    expect(await hosts(limited)).to.include('shop/other=other.test')
    cluster.apply(entry('shop/meanwhile', 'meanwhile.test'))
    cluster.kubectl(['delete', 'serviceentries.networking.mesh.io', '-n', 'shop', 'other'])
    role(registry, crds, objects)
    await until('what came meanwhile', () => names(client, clusterType).includes('outbound|80||meanwhile.test'))
    await until('the end of what went meanwhile', () => !names(client, clusterType).includes('outbound|80||other.test'))
    await limited.stop()
  })

  it('is read beside a directory where the mesh configuration says so, in its order, and lost by no restart', async () => {
    cluster.apply(entry('shop/shared', 'cluster.test'))
    const local = new LocalDiscovery({ mode: 'threads' }, { PILOT_MOCK_SERVICES: '0' })
    try {
      local.write('own.yaml', entry('shop/own', 'own.test'))
      local.write('mesh', '')
      await local.start({ orchconfig: cluster.adminConfig, registries: ['Mock'], writers: 1, meshConfig: `${local.dir}/mesh` })
      await local.service.ready()
      const hostsHere = async () =>
        (await local.debug<Shown[]>('configz'))
          .flatMap(({ kind, metadata, spec }) =>
            kind === 'ServiceEntry' && metadata.namespace === 'shop' ? `${metadata.name}=${spec.hosts?.[0]}` : [],
          )
          .sort()
      expect(await hostsHere()).to.deep.equal(['own=own.test'])
      local.write('mesh', 'configSources: [{address: "k8s://"}]')
      await until('those of the cluster', async () => (await hostsHere()).includes('shared=cluster.test'))
      local.write('own.yaml', [entry('shop/own', 'own.test'), entry('shop/shared', 'file.test')].join('\n---\n'))
      await until('that of the file, which comes first', async () => (await hostsHere()).includes('shared=file.test'))
      local.remove('own.yaml')
      await until('that of the cluster', async () => (await hostsHere()).includes('shared=cluster.test'))
      for (const actor of ['source/orch', 'push-queue', 'source/orch']) {
        const { restarts } = local.state(actor)
        local.service.supervisor.kill(actor)
        await until('the actor to run again', () => local.state(actor).restarts > restarts && local.state(actor).state === 'running')
        await until('the objects', async () => (await hostsHere()).includes('shared=cluster.test'))
      }
      await until('the page to have them', async () => {
        const page = await local.debug<{ sources: { source: string; files: number; isComplete: boolean }[] }>('filez')
        return page.sources.some(({ source, files, isComplete }) => source === 'orch://' && files > 20 && isComplete)
      })
      local.write('mesh', 'configSources: []')
      await until('no objects of the cluster', async () => (await hostsHere()).length === 0)
    } finally {
      await local.dispose()
    }
  })
})
