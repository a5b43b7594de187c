/**
 * The roles of `manifests/` are what discovery needs, and no more (docs/operation.md, M1): it runs under them, nothing that it does is refused, and it
 * uses each verb of each resource that they permit, and where a rule names objects, of each of these.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { credentials, Metadata } from '@grpc/grpc-js'
import { expect } from 'chai'
import { freePort } from '../../bench/ports.ts'
import type { AuthorityStatus } from '../../protocols/messages/authority-status.ts'
import { makeSigningRequest } from '../../src/ca/signing-request.ts'
import { type Access, accesses, accessName, registrationAccesses } from '../../src/orchestrator/access.ts'
import { clusterType, healthType, secretType } from '../../src/xds/type-urls.ts'
import { rootOf } from '../harness/authorities.ts'
import { CertificateClient } from '../harness/certificate-client.ts'
import { TestCluster } from '../harness/cluster.ts'
import { manifest } from '../harness/cluster-mesh.ts'
import { aliasDefinition, establish, meshDefinitions } from '../harness/mesh-definitions.ts'
import { runCommand, Service } from '../harness/service.ts'
import { keys } from '../harness/signing-requests.ts'
import { specifiedForDiscovery } from '../harness/specified-metrics.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const control = 'mesh-system'
const verbs: Readonly<Record<string, string>> = { POST: 'create', PUT: 'update', PATCH: 'patch', DELETE: 'delete' }

/** The parts of a large ledger, which discovery makes in `authority-storage.test.ts`, under the same role. */
const isLedgerPart = (name: string) => /^mesh-ca-ledger-[ab]\d+$/.test(name)

/** What a role permits: `<verb> <resource> <where>`, and the name of the object where it permits no other. */
const usesBy = (all: readonly Access[]): string[] =>
  all.flatMap((access) =>
    access.verbs.flatMap((verb) => (access.names ?? ['']).map((name) => `${verb} ${accessName(access)} ${access.where} ${name}`.trim())),
  )

/** What a request that was logged did, as `permitted` has it: of the object that it names, and, where the rule names none, of any. */
function usesOf(line: string, permitted: readonly string[]): string[] {
  // The server answers so about an object that is not there, or that has changed, after it has permitted the request.
  const [, method = '', path = ''] = /(GET|POST|PUT|PATCH|DELETE) (\/apis?\/\S+): (?:20[01]|404|409)$/.exec(line) ?? []
  if (path === '') return []
  const url = new URL(path, 'https://cluster')
  const parts = url.pathname.split('/').slice(1)
  const group = parts[0] === 'api' ? '' : (parts[1] ?? '')
  const rest = parts.slice(parts[0] === 'api' ? 2 : 3)
  const namespace = rest[0] === 'namespaces' && rest.length > 2 ? rest[1] : undefined
  const [plural = '', own, subresource] = namespace === undefined ? rest : rest.slice(2)
  const resource = accessName({ group, resource: subresource === undefined ? plural : `${plural}/${subresource}` })
  const verb = verbs[method] ?? (url.searchParams.has('watch') ? 'watch' : own === undefined ? 'list' : 'get')
  const name = own ?? /^metadata\.name=(.*)$/.exec(url.searchParams.get('fieldSelector') ?? '')?.[1] ?? ''
  const where = namespace === control && !(plural === 'configmaps' && name === 'mesh-ca-root-cert') ? 'control plane' : 'cluster'
  // An object that is applied is created where it is missing, which needs both.
  const done = method === 'PATCH' && plural === 'configmaps' ? ['create', 'patch'] : [verb]
  return done.map((each) => {
    const use = `${each} ${resource} ${where}`
    const named = `${use} ${name}`.trim()
    // What is permitted in all namespaces is permitted in that of the control plane too.
    return [use, named, `${each} ${resource} cluster`].find((known) => permitted.includes(known)) ?? named
  })
}

describe('the roles of the manifests', function () {
  this.timeout(400_000)
  let cluster: TestCluster
  let place: string
  const definitions = [...meshDefinitions().values()]
  const services: Service[] = []
  const ends: (() => void)[] = []

  const discovery = async (kubeconfig: string, env: Record<string, string>, ...more: readonly string[]): Promise<number> => {
    const port = await freePort()
    const flags = ['--registries', 'Orchestrator', '--orchconfig', kubeconfig, '--configDir', '', '--namespace', control, '--writers', '1']
    const made = new Service({
      // No directory is named for the state, and there is none in the working directory.
      env: { MESHD_CA_STATE_DIR: '', ...env },
      flags: [
        ...flags,
        '--meshConfig',
        '',
        '--networksConfig',
        '',
        '--secureGRPCAddr',
        `127.0.0.1:${port}`,
        '--resync',
        '2s',
        '--log_output_level',
        'default:info,klog:debug,processing:debug',
        ...more,
      ],
      cwd: place,
    })
    services.push(made)
    await made.start()
    return port
  }
  /** What processes have done. */
  const used = (permitted: readonly string[], of: readonly Service[] = services) =>
    new Set(
      of.flatMap(({ output }) =>
        output
          .soFar()
          .split('\n')
          .flatMap((line) => usesOf(line, permitted)),
      ),
    )
  /** Waits until processes have done all that is wanted. */
  const useAll = (wanted: readonly string[], permitted: readonly string[], of: readonly Service[] = services) => {
    const left = () => {
      const now = used(permitted, of)
      return wanted.filter((each) => !now.has(each))
    }
    return until('the use of all that is permitted', () => left().length === 0).catch((error: Error) => {
      throw new Error(`${error.message}; not used: ${left().join(', ')}`)
    })
  }

  before(async () => {
    cluster = await TestCluster.start('n1=region1/zone1')
    place = mkdtempSync(join(tmpdir(), 'mesh-place-'))
    establish(cluster, ...definitions.map(aliasDefinition))
  })
  after(async () => {
    for (const end of ends) end()
    await Promise.all(services.map((each) => each.dispose()))
    await cluster?.dispose()
    rmSync(place, { recursive: true, force: true })
  })

  it('suffice, and each verb of each resource in them is used', async () => {
    const { kubeconfig } = cluster
    const permitted = usesBy(accesses)
    cluster.apply(
      readFileSync(new URL('../../manifests/webhooks.yaml', import.meta.url), 'utf8'),
      `apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\nmetadata: {name: mesh-sidecar-injector}\nwebhooks: [{name: namespace.sidecar-injector.mesh.io, clientConfig: {service: {name: meshd, namespace: ${control}}}, admissionReviewVersions: [v1], sideEffects: None, failurePolicy: Ignore}]`,
    )
    const port = await discovery(kubeconfig, {})
    await discovery(kubeconfig, { PILOT_USE_ENDPOINT_SLICE: 'false' })
    cluster.apply(
      'apiVersion: v1\nkind: Namespace\nmetadata: {name: edge}',
      'apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: gateway, namespace: edge}',
      'apiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {name: mesh}\nspec: {controller: mesh.io/ingress-controller}',
      'apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: web, namespace: edge}\nspec: {ingressClassName: mesh, defaultBackend: {service: {name: web, port: {number: 80}}}}',
      `apiVersion: v1\nkind: Service\nmetadata: {name: mesh-ingressgateway, namespace: ${control}}\nspec: {externalIPs: [192.0.2.7], ports: [{name: http, port: 80}]}`,
    )
    const pair = { 'tls.crt': rootOf('site').record.root, 'tls.key': rootOf('site').key.export({ type: 'pkcs8', format: 'pem' }) }
    const metadata = { name: 'one', namespace: 'edge' }
    cluster.apply(JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata, type: 'kubernetes.io/tls', stringData: pair }))
    const roots = () =>
      cluster.kubectl(['get', 'configmap', '-n', 'edge', 'mesh-ca-root-cert', '--ignore-not-found', '-o', 'jsonpath={.data.root-cert\\.pem}'])
    await until('the root certificates', () => roots() !== '')
    const token = cluster.kubectl(['create', 'token', '-n', 'edge', 'gateway', '--audience', 'mesh-ca']).trim()
    // A certificate by a token that the server reviews; the ledger is written.
    const certificates = new CertificateClient(port, { roots: roots(), token })
    ends.push(() => certificates.close())
    expect(await certificates.obtain(makeSigningRequest(keys.p256, []))).to.have.property('chain')
    // A gateway that wants a Secret.
    const tls = credentials.createSsl(Buffer.from(roots()), null, null, { checkServerIdentity: () => undefined })
    const call = credentials.createFromMetadataGenerator((_, give) => {
      const metadata = new Metadata()
      metadata.set('authorization', `Bearer ${token}`)
      give(null, metadata)
    })
    const node = { id: 'router~10.7.0.9~gateway.edge~edge.svc.cluster.local', metadata: { NAMESPACE: 'edge', SERVICE_ACCOUNT: 'gateway' } }
    const client = new XdsClient(port, node, true, credentials.combineChannelCredentials(tls, call)).connect()
    ends.push(() => client.close())
    await until('the first configuration', () => client.responses.has(clusterType))
    await client.watch(secretType, ['kubernetes://one'])
    // The webhook is tried in the first group that is defined.
    await until('a trial of the webhook', () => used(permitted).has('create gateways.networking.istio.io control plane'))
    establish(cluster, ...definitions)
    // Leases are listed where the API server does not send the present state with a watch, and this one does.
    // The secrets of versions are read before anything is logged.
    const unseen = ['list leases.coordination.k8s.io control plane', 'get secrets control plane mesh-version-secrets']
    // Leases of replicas are kept only where these ask each other (test/orchestrator/replica-answers.test.ts).
    unseen.push('delete leases.coordination.k8s.io control plane')
    const wanted = permitted.filter((each) => !unseen.includes(each) && !isLedgerPart(each.split(' ').at(-1) ?? ''))
    expect(cluster.kubectl(['get', 'secret', '-n', control, 'mesh-version-secrets', '-o', 'name'])).to.contain('mesh-version-secrets')
    // A rotation writes the Secret with the root that signs.
    const [first] = services as [Service]
    const stage = async () => (await first.debug<AuthorityStatus>('ca')).rotation.stage
    while ((await stage()) !== 'sign-with-new') {
      const before = await stage()
      await runCommand(['ca', 'rotate', '--force'], first.env)
      await until('the next stage', async () => (await stage()) !== before)
    }
    await useAll(wanted, permitted)
    expect([...used(permitted)].filter((each) => !permitted.includes(each))).to.deep.equal([])
    expect(wanted.filter((each) => each.endsWith('mesh-ca-state'))).to.have.length(2)
    // That of a gateway may not: this is about discovery's own.
    for (const { output } of services) {
      output.lacks('role of this service account does not permit')
      output.lacks('the secrets of versions are not kept')
    }
  })

  it('suffice for registration with a role of its own, of which each verb is used', async () => {
    cluster.apply('apiVersion: v1\nkind: Namespace\nmetadata: {name: machines}', manifest('optional/registration.yaml'))
    await discovery(cluster.kubeconfig, {
      ...{ XDS_AUTH: 'false', PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION: 'true', PILOT_ENABLE_WORKLOAD_ENTRY_HEALTHCHECKS: 'true' },
      PILOT_WORKLOAD_ENTRY_GRACE_PERIOD: '0s',
    })
    const [service] = services.slice(-1) as [Service]
    const own = usesBy(registrationAccesses)
    const permitted = [...usesBy(accesses), ...own]
    // A group in each spelling, and a workload of each whose health is reported and that leaves then.
    for (const [domain, address] of [
      ['mesh.io', '10.8.0.1'],
      ['istio.io', '10.8.0.2'],
    ] as const) {
      const name = `machines-${domain}`
      cluster.apply(`apiVersion: networking.${domain}/v1\nkind: WorkloadGroup\nmetadata: {name: ${name}, namespace: machines}\nspec: {template: {}}`)
      const metadata = { AUTO_REGISTER_GROUP: name, PROXY_CONFIG: { readinessProbe: { tcpSocket: { port: 80 } } } }
      const here = own.filter((each) => each.includes(`networking.${domain}`))
      let workload = new XdsClient(service.grpcPort, sidecarNode(address, name, 'machines', metadata), true).connect()
      ends.push(() => workload.close())
      // The stream ends until discovery has read the group.
      await until('the entry', () => {
        if (used(permitted, [service]).has(`create workloadentries.networking.${domain} cluster`)) return true
        if (workload.closed) workload = new XdsClient(service.grpcPort, workload.node, true).connect()
        return false
      })
      workload.watch(healthType, [])
      const status = here.filter((each) => each.includes('/status'))
      await useAll(status, permitted, [service])
      workload.close()
      await useAll(here, permitted, [service])
    }
    await service.stop()
    await useAll(own, permitted, [service])
    expect([...used(permitted, [service])].filter((each) => !permitted.includes(each))).to.deep.equal([])
    service.output.lacks('role of this service account does not permit')
  })

  it('let /debug/registryz show the services of one cluster', async () => {
    const [service] = services as [Service]
    const clusters = async (query: string) => (await service.debug<{ cluster: string }[]>(`registryz${query}`)).map((each) => each.cluster)
    const all = await clusters('')
    expect(new Set(all)).to.deep.equal(new Set(['Orchestrator']))
    expect([await clusters('?cluster=Orchestrator'), await clusters('?cluster=other')]).to.deep.equal([all, []])
  })

  it('let discovery move every metric that the specification has of the orchestrator, and write to all of its log scopes', async () => {
    const [service] = services as [Service]
    const text = await service.metrics()
    for (const each of specifiedForDiscovery.filter((name) => /orch|^endpoint_no_pod|^pilot_no_ip/.test(name)))
      expect(text, each).to.match(new RegExp(`^# TYPE ${each}$`, 'm'))
    cluster.apply(
      // A part that cannot be used is a fault of the object.
      'apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: odd, namespace: edge}\nspec: {ingressClassName: mesh, defaultBackend: {resource: {kind: Bucket, name: b}}}',
      'apiVersion: networking.mesh.io/v1\nkind: VirtualService\nmetadata: {name: good, namespace: edge}\nspec: {hosts: [a.com], http: [{route: [{destination: {host: a.com}}]}]}',
      'apiVersion: networking.mesh.io/v1\nkind: VirtualService\nmetadata: {name: odd, namespace: edge}\nspec: {hosts: [b.com], http: [{match: [{uri: {regex: "("}}], route: [{destination: {host: b.com}}]}]}',
      'apiVersion: v1\nkind: Service\nmetadata: {name: waiting, namespace: edge}\nspec: {ports: [{name: http, port: 80}]}',
      'apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: waiting, namespace: edge, labels: {kubernetes.io/service-name: waiting}}\naddressType: IPv4\nports: [{name: http, port: 80}]\nendpoints: [{addresses: [192.0.2.1], targetRef: {kind: Pod, name: late, namespace: edge}}]',
    )
    const sidecar = new XdsClient(service.grpcPort, sidecarNode('10.9.9.9', 'nowhere', 'edge'), true).connect()
    ends.push(() => sidecar.close())
    await sidecar.ready()
    cluster.kubectl(['label', 'service', '-n', 'edge', 'waiting', 'a=b'])
    cluster.kubectl(['delete', 'ingress', '-n', 'edge', 'odd'])
    const moved = [
      ...['add', 'update'].map((event) => `pilot_orch_reg_events{type="Services",event="${event}"}`),
      'pilot_orch_reg_events{type="Ingress",event="delete"}',
      'pilot_orch_cfg_events{type="VirtualService",event="add"}',
      ...['pilot_orch_endpoints_with_no_pods', 'pilot_orch_endpoints_pending_pod', 'endpoint_no_pod', 'pilot_no_ip'],
      ...['event_success', 'event_error', 'dynamic_converter_success', 'dynamic_converter_failure'].map((name) => `galley_source_orch_${name}_total`),
      ...['pilot_orch_object_errors', 'pilot_total_orch_object_errors', 'pilot_orch_audits_total{kind="Pod"}'],
    ]
    const unmoved = async () => {
      const lines = (await service.metrics()).split('\n')
      return moved.filter((series) => !lines.some((line) => line.startsWith(`${series} `) && Number(line.slice(series.length + 1)) > 0))
    }
    let left: string[] = []
    await until('the metrics to move', async () => (left = await unmoved()).length === 0).catch((error: Error) => {
      throw new Error(`${error.message}: ${left.join(', ')}`)
    })
    for (const scope of ['orch', 'klog', 'processing', 'source']) await service.output.says(new RegExp(`\\t${scope}\\t`))
  })
})
