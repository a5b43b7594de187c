import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { type Chart, renderChart } from '../harness/charts.ts'
import { TestCluster } from '../harness/cluster.ts'
import { dockerImages } from '../harness/docker-images.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { commandsOf, runCommands } from '../harness/page-commands.ts'
import { until } from '../harness/until.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const envoy = envoyBinaries().at(-1)?.path ?? ''

/** Where pods run, and what they are called. */
const placed = {
  ...{ nodeSelector: { a: 'b' }, tolerations: [{ key: 'a', operator: 'Exists' }], podLabels: { c: 'd' }, podAnnotations: { e: 'f' } },
  ...{ serviceAccountAnnotations: { g: 'h' }, priorityClassName: 'system-cluster-critical' },
  topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'ScheduleAnyway' }],
  affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields: [] }] } } },
}

describe('docs/install.md', () => {
  const sections = commandsOf(readFileSync(join(root, 'docs/install.md'), 'utf8'))
  let cluster: TestCluster

  /** Runs the commands of a section. Returns the output of each by its text. */
  const run = (heading: string): Map<string, string> => {
    const commands = sections.get(heading) ?? []
    expect(commands, heading).not.to.deep.equal([])
    return runCommands(commands, cluster, cluster.adminConfig)
  }
  const names = (kind: string, ...where: readonly string[]) =>
    cluster
      .kubectl(['get', kind, ...where, '-o', 'jsonpath={range .items[*]}{.metadata.name}{"\\n"}{end}'])
      .split('\n')
      .filter(Boolean)
  const pods = () =>
    (JSON.parse(cluster.kubectl(['get', 'pods', '-n', 'shop', '-o', 'json'])) as { items: Pod[] }).items.filter(
      ({ metadata }) => metadata.deletionTimestamp === undefined,
    )
  interface Pod {
    readonly metadata: { readonly labels: Record<string, string>; readonly deletionTimestamp?: string }
    readonly spec: { readonly initContainers?: { readonly name: string; readonly env?: { readonly name: string; readonly value?: string }[] }[] }
  }
  /** The revision whose control plane injected each pod, and where its agent looks for discovery, if not at the usual place. */
  const revisions = () =>
    pods().map(({ metadata, spec }) => {
      const agent = spec.initContainers?.find(({ name }) => name === 'mesh-proxy')
      const { discoveryAddress = '' } = JSON.parse(agent?.env?.find(({ name }) => name === 'PROXY_CONFIG')?.value ?? '{}')
      return `${metadata.labels['mesh.io/rev'] ?? 'none'} ${discoveryAddress}`
    })
  const webhook = (name: string) =>
    JSON.parse(cluster.kubectl(['get', 'validatingwebhookconfiguration', name, '-o', 'json'])).webhooks as {
      name: string
      failurePolicy: string
      clientConfig: { caBundle?: string }
    }[]
  const failsClosed = (name: string) =>
    until(`the webhooks of ${name} to fail closed`, () => webhook(name).every(({ failurePolicy }) => failurePolicy === 'Fail'))

  before(async function () {
    if (envoy === '') this.skip()
    cluster = await TestCluster.start()
    dockerImages(cluster, envoy)
    cluster.image('nginx', [join(cluster.bin, 'echo')])
  })
  after(async () => {
    await cluster?.dispose()
  })

  it('begins with objects that the API server takes, whatever the values', () => {
    const values: [Chart, object][] = [
      ['meshd', {}],
      ['meshd', { revision: 'canary', signer: 'clusterissuers.cert-manager.io/mesh', autoscaling: { enabled: true, maxReplicas: 3 } }],
      [
        'meshd',
        { revision: 'a-1', defaultRevision: true, env: { A: 1, B: true, C: 'c: d' }, resources: {}, podDisruptionBudget: { maxUnavailable: '50%' } },
      ],
      [
        'meshd',
        { defaultRevision: false, meshNetworks: { n1: { endpoints: [] } }, global: { imagePullPolicy: 'Never', imagePullSecrets: ['a'] }, ...placed },
      ],
      ['meshd', { validation: { enabled: false }, sidecarInjectorWebhook: { enabled: false }, meshConfig: { trustDomain: 'a.example' } }],
      ['base', { crds: { enabled: false }, revisionTags: { prod: 'default', default: 'canary' } }],
      ['gateway', { ...placed, readsSecrets: false, service: { type: 'NodePort', externalTrafficPolicy: 'Local', annotations: { a: 'b' } } }],
      [
        'gateway',
        { revision: 'canary', autoscaling: { enabled: true }, labels: { mesh: 'egress' }, service: { loadBalancerSourceRanges: ['10.0.0.0/8'] } },
      ],
    ]
    for (const [chart, given] of values)
      cluster.kubectl(
        ['apply', '--server-side', '--dry-run=server', '-f', '-'],
        renderChart(chart, { release: 'trial', namespace: 'default', values: given }),
      )
  })

  it('installs: pods of a namespace with the label have a sidecar', async () => {
    const said = run('Install')
    expect(said.get('kubectl get pods --namespace shop')).to.match(/web-\S+ +2\/2 +Running/)
    expect(revisions()).to.deep.equal(['default '])
    await failsClosed('meshd-mesh-system')
  })

  it('is asked from outside of the cluster', () => {
    expect(run('Ask it').get('npx pilot-discovery proxy-status --cluster')).to.match(/^PROXY +STATUS .*\nweb-\S+\.shop /)
  })

  it('has a gateway', () => {
    run('A gateway')
  })

  it('upgrades in place, and keeps what discovery wrote into the webhooks', () => {
    run('Upgrade in place')
    for (const { failurePolicy, clientConfig } of webhook('meshd-mesh-system'))
      expect([failurePolicy, clientConfig.caBundle === undefined]).to.deep.equal(['Fail', false])
  })

  it('upgrades by revision: a tag moves pods, and the old control plane goes', async () => {
    const said = run('Upgrade by revision')
    expect(said.get('kubectl get pods --namespace shop --label-columns mesh.io/rev')).to.match(/web-\S+ +2\/2 +Running .* canary/)
    expect(new Set(revisions())).to.deep.equal(new Set(['canary meshd-canary.mesh-system.svc:15012']))
    await failsClosed('meshd-canary-mesh-system')
    expect(names('deployments', '-n', 'mesh-system')).to.deep.equal(['meshd-canary'])
  })

  it('is removed without a trace', async () => {
    run('Remove')
    expect(revisions()).to.deep.equal(['none '])
    const ours = (kind: string, ...where: readonly string[]) => names(kind, ...where).filter((name) => name.includes('mesh'))
    const kinds = ['clusterroles', 'clusterrolebindings', 'mutatingwebhookconfigurations', 'validatingwebhookconfigurations', 'namespaces']
    expect([...kinds, 'customresourcedefinitions'].flatMap((kind) => ours(kind))).to.deep.equal([])
    expect(ours('configmaps', '-A')).to.deep.equal([])
  })
})
