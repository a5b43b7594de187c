/** `pilot-discovery analyze --cluster` beside a real API server, with the rights of the user (docs/analysis.md, Y6). */
import { spawn } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { TestCluster } from '../harness/cluster.ts'
import { discoveryScript } from '../harness/commands.ts'
import { pairValues, SiteCertificates, secretDocument } from '../harness/gateway-secrets.ts'
import { establish, meshDefinitions } from '../harness/mesh-definitions.ts'

interface Told {
  readonly code: string
  readonly object: string
  readonly path: string
  readonly message: string
  readonly file: string
}

/** A context of a configuration, in a namespace. */
const inNamespace = (given: { readonly context: object }, namespace: string) => ({ ...given, context: { ...given.context, namespace } })

describe('the analysis of a real cluster', function () {
  this.timeout(300_000)
  let cluster: TestCluster
  let home: string

  const run = (args: readonly string[], env: Record<string, string>, input = '') =>
    new Promise<{ status: number | null; stdout: string; stderr: string }>((resolve) => {
      const { KUBECONFIG: _, ...others } = process.env
      const child = spawn(process.execPath, [discoveryScript, 'analyze', ...args], { env: { ...others, HOME: home, ...env } })
      let [stdout, stderr] = ['', '']
      child.stdout.on('data', (bytes) => (stdout += bytes))
      child.stderr.on('data', (bytes) => (stderr += bytes))
      child.on('close', (status) => resolve({ status, stdout, stderr }))
      child.stdin.end(input)
    })
  const found = async (args: readonly string[], env: Record<string, string>, input = ''): Promise<Told[]> => {
    const { stdout, stderr } = await run(['--json', ...args], env, input)
    try {
      return JSON.parse(stdout)
    } catch {
      throw new Error(stderr)
    }
  }
  const shown = (all: readonly Told[]) => all.map(({ code, object, path }) => [code, object, path].filter(Boolean).join(' '))
  /** Gives an account some rights. Returns a file that connects as it. */
  const account = (name: string, ...grants: readonly string[]): string => {
    cluster.apply(`apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: ${name}, namespace: default}`, ...grants)
    return cluster.tokenConfig(name, cluster.kubectl(['create', 'token', name, '--duration', '2h']).trim())
  }
  const route = (name: string, host: string) =>
    `apiVersion: networking.mesh.io/v1\nkind: VirtualService\nmetadata: {name: ${name}, namespace: shop}\nspec: {hosts: [web], http: [{route: [{destination: {host: ${host}}}]}]}`
  const destination = 'spec.http[0].route[0].destination.host'

  before(async () => {
    cluster = await TestCluster.start('n1=region1/zone1')
    home = join(cluster.dir, 'home')
    mkdirSync(home)
    establish(cluster, ...meshDefinitions().values())
    const service = (path: string) => {
      const [namespace, name] = path.split('/')
      return `apiVersion: v1\nkind: Service\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec: {selector: {app: ${name}}, ports: [{name: http, port: 80}]}`
    }
    cluster.apply(...['shop', 'other'].map((name) => `apiVersion: v1\nkind: Namespace\nmetadata: {name: ${name}}`))
    cluster.apply(
      ...[
        service('shop/web'),
        service('other/reviews'),
        route('web', 'reviews.other.svc.cluster.local'),
        route('lost', 'reviws.other.svc.cluster.local'),
      ],
      'apiVersion: networking.mesh.io/v1\nkind: Gateway\nmetadata: {name: edge, namespace: shop}\nspec: {selector: {app: nobody}, servers: [{port: {number: 443, name: https, protocol: HTTPS}, hosts: ["*"], tls: {mode: SIMPLE, credentialName: cert}}]}',
      'apiVersion: networking.mesh.io/v1\nkind: Sidecar\nmetadata: {name: s, namespace: other}\nspec: {egress: [{hosts: ["gone/*"]}]}',
    )
  })
  after(() => cluster?.dispose())

  const all = [
    'IST0101 Gateway shop/edge spec.servers[0].tls.credentialName',
    'IST0127 Gateway shop/edge spec.selector',
    'IST0101 Sidecar other/s spec.egress[0].hosts[0]',
    'IST0109 VirtualService shop/lost spec.hosts[0]',
    `IST0101 VirtualService shop/lost ${destination}`,
    'IST0109 VirtualService shop/web spec.hosts[0]',
  ]
  const sorted = (lines: readonly string[]) => [...lines].sort()

  it('finds what is wrong in all of it, or in one namespace, with the connection that KUBECONFIG, the home directory or a flag names', async () => {
    const env = { KUBECONFIG: cluster.adminConfig }
    expect(sorted(shown(await found(['--cluster'], env)))).to.deep.equal(sorted(all))
    const { status, stderr } = await run(['--cluster'], env)
    expect(status).to.equal(1)
    expect(stderr).to.match(/^6 findings in \d+ objects of the cluster and 0 files\n$/)
    const ofShop = all.filter((line) => line.includes('shop/'))
    mkdirSync(join(home, '.kube'))
    writeFileSync(join(home, '.kube/config'), cluster.kubectl(['config', 'view', '--raw', '--flatten']))
    expect(sorted(shown(await found(['--cluster', '--namespace', 'shop'], {})))).to.deep.equal(sorted(ofShop))

    // The first file has a current context that does not exist there; the second one has the cluster.
    const first = join(cluster.dir, 'first')
    writeFileSync(first, 'current-context: none\ncontexts: [{name: none, context: {cluster: none, user: none}}]\n')
    const joined = { KUBECONFIG: `${first}:${join(cluster.dir, 'missing')}:${account('nobody')}` }
    expect((await run(['--cluster'], joined)).stderr).to.contain('there is no cluster "none"')
    expect((await run(['--cluster', '--context', 'y'], joined)).stderr).to.contain('there is no context "y"; there are none, x')
    expect(shown(await found(['--cluster', '--context', 'x'], joined))).to.include('MESH0005 services')
    expect((await run(['--context', 'x', home], {})).stderr).to.contain('--cluster: there is no context "x"')
  })

  it('has files in the place of what the cluster has', async () => {
    const certificates = new SiteCertificates()
    const pair = pairValues(certificates.issue('web.example', certificates.authority('root')))
    certificates.dispose()
    const file = join(cluster.dir, 'fixed.yaml')
    writeFileSync(
      file,
      [
        route('lost', 'reviews.other.svc.cluster.local').replace('[web]', '[lost.example]'),
        secretDocument('shop/cert', pair),
        'apiVersion: v1\nkind: Namespace\nmetadata: {name: gone}',
      ].join('\n---\n'),
    )
    expect(shown(await found(['--cluster', '--orchconfig', cluster.adminConfig, file], {}))).to.deep.equal([
      'IST0127 Gateway shop/edge spec.selector',
    ])
  })

  it('takes objects of files without a namespace for those of the namespace of the context, or of the one that is asked for', async () => {
    const file = join(cluster.dir, 'plain.yaml')
    writeFileSync(file, 'apiVersion: networking.mesh.io/v1\nkind: DestinationRule\nmetadata: {name: plain}\nspec: {host: web}\n')
    const context = join(cluster.dir, 'of-shop')
    const config = JSON.parse(cluster.kubectl(['config', 'view', '--raw', '--flatten', '-o', 'json']))
    writeFileSync(
      context,
      JSON.stringify({ ...config, contexts: config.contexts.map((each: { readonly context: object }) => inNamespace(each, 'shop')) }),
    )
    const ofPlain = async (...args: string[]) => shown(await found(['--cluster', ...args, file], {})).filter((line) => line.includes('plain'))
    expect(await ofPlain('--orchconfig', context)).to.deep.equal([])
    expect(await ofPlain('--orchconfig', cluster.adminConfig)).to.deep.equal(['IST0101 DestinationRule default/plain spec.host'])
    expect(await ofPlain('--orchconfig', context, '--namespace', 'other')).to.deep.equal(['IST0101 DestinationRule other/plain spec.host'])
    expect(await ofPlain('--orchconfig', cluster.adminConfig, '--namespace', 'shop')).to.deep.equal([])
  })

  it('says what it may not read, and takes that for nothing that is missing', async () => {
    const role = (name: string, rules: string) =>
      `apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: ${name}}\nrules: [${rules}]`
    const bound = (kind: string, name: string, more = '') =>
      `apiVersion: rbac.authorization.k8s.io/v1\nkind: ${kind}\nmetadata: {name: ${name}${more}}\nroleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ${name}}\nsubjects: [{kind: ServiceAccount, name: ${name}, namespace: default}]`
    const read = 'verbs: [get, list]'
    const meshOnly = account(
      'mesh-only',
      role('mesh-only', `{apiGroups: [networking.mesh.io, security.mesh.io, telemetry.mesh.io, extensions.mesh.io], resources: ["*"], ${read}}`),
      bound('ClusterRoleBinding', 'mesh-only'),
    )
    const unread = [
      'namespaces',
      'services',
      'pods',
      'secrets',
      'deployments.apps',
      'statefulsets.apps',
      'daemonsets.apps',
      'jobs.batch',
      'cronjobs.batch',
    ]
    const configMaps = ['configmaps mesh-system/mesh', 'configmaps mesh-system/mesh-sidecar-injector']
    const told = await found(['--cluster'], { KUBECONFIG: meshOnly })
    expect(shown(told)).to.deep.equal([
      ...[...configMaps, ...unread, 'ingresses.networking.k8s.io'].map((name) => `MESH0005 ${name}`),
      ...all.filter((line) => line.includes('IST0109')),
    ])
    expect(told.find(({ object }) => object === 'services')?.message).to.match(
      /^not read: services is forbidden: User "system:serviceaccount:default:mesh-only" cannot list resource "services".*; nothing is said to be missing/,
    )

    const oneNamespace = account(
      'one-namespace',
      role('one-namespace', `{apiGroups: ["*"], resources: ["*"], ${read}}`),
      bound('RoleBinding', 'one-namespace', ', namespace: shop'),
    )
    const ofFiles = [route('local', 'wbe').replace('[web]', '[x]'), route('far', 'reviws.other.svc.cluster.local').replace('[web]', '[z]')]
    const limited = await found(['--cluster', '-n', 'shop', '-'], { KUBECONFIG: oneNamespace }, ofFiles.join('\n---\n'))
    const services = limited.find(({ object }) => object === 'services')
    expect(services?.message).to.match(/^read in the namespace shop only: services is forbidden/)
    // ServiceEntries of other namespaces may have any host, and a gateway may select workloads of any.
    expect(shown(limited).filter((line) => !line.startsWith('MESH0005'))).to.deep.equal([
      'IST0101 Gateway shop/edge spec.servers[0].tls.credentialName',
      ...all.filter((line) => line.includes('IST0109')),
    ])
  })

  it('says which services callers of other networks do not reach, where a Secret joins another cluster', async () => {
    const pod = (name: string) =>
      `apiVersion: v1\nkind: Pod\nmetadata: {name: ${name}, namespace: shop, labels: {app: ${name}}}\nspec: {schedulerName: nobody, containers: [{name: app, image: app}]}`
    const service = (name: string, metadata: string, rest: string) =>
      `apiVersion: v1\nkind: Service\nmetadata: {name: ${name}, namespace: shop, ${metadata}}\nspec: {selector: {app: ${name}}, ${rest}}`
    cluster.apply(
      service('eastwest', 'labels: {topology.mesh.io/network: first}', 'externalIPs: [192.0.2.1], ports: [{name: tls, port: 15443}]'),
      service('ledger', 'annotations: {networking.mesh.io/exportTo: "other"}', 'ports: [{name: http, port: 80}]'),
      'apiVersion: networking.mesh.io/v1\nkind: Gateway\nmetadata: {name: eastwest, namespace: shop}\nspec: {selector: {app: eastwest}, servers: [{port: {number: 15443, name: tls, protocol: TLS}, hosts: ["other/*"], tls: {mode: AUTO_PASSTHROUGH}}]}',
      ...['eastwest', 'ledger'].map(pod),
    )
    const told = async () =>
      (await found(['--cluster', '--orchconfig', cluster.adminConfig], {})).flatMap(({ code, object, message }) =>
        code === 'MESH0016' ? [`${object}: ${message}`] : [],
      )
    expect(await told()).to.deep.equal([])
    cluster.apply('apiVersion: v1\nkind: Secret\nmetadata: {name: remotes, namespace: default, labels: {mesh/multiCluster: "true"}}')
    expect(await told()).to.deep.equal([
      'Service shop/eastwest: the gateway of the network first does not pass ledger.shop.svc.cluster.local on, so callers of other networks do not reach it: no host of their servers covers it (Gateway shop/eastwest)',
    ])
  })

  it('ends with the reason where the cluster cannot be reached or refuses the user', async () => {
    const gone = await run(['--cluster', '--orchconfig', cluster.tokenConfig('gone', 'x', 'https://127.0.0.1:1')], {})
    expect([gone.status, gone.stderr]).to.deep.equal([255, gone.stderr])
    expect(gone.stderr).to.contain('ECONNREFUSED')
    const refused = await run(['--cluster', '--orchconfig', cluster.tokenConfig('refused', 'x')], {})
    expect([refused.status, refused.stdout]).to.deep.equal([255, ''])
    expect(refused.stderr).to.contain('--cluster: Unauthorized')
  })
})
