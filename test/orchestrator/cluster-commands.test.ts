/** Commands that ask the mesh of a real cluster from elsewhere (docs/commands.md, "The mesh of a cluster"): with the rights of an operator and no others. */
import { spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { TestCluster } from '../harness/cluster.ts'
import { installChart } from '../harness/cluster-mesh.ts'
import { discoveryScript } from '../harness/commands.ts'
import { dockerImages } from '../harness/docker-images.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { Output } from '../harness/output.ts'
import { runCommand } from '../harness/service.ts'
import { ServingCertificates } from '../harness/serving-certificates.ts'
import { until } from '../harness/until.ts'

const envoy = envoyBinaries().at(-1)?.path ?? ''
const people = `{apiVersion: v1, kind: Namespace, metadata: {name: people}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: ann, namespace: people}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: bob, namespace: people}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: ann, namespace: mesh-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: meshd-operator}
subjects: [{kind: ServiceAccount, name: ann, namespace: people}]`

describe('commands with --cluster', function () {
  this.timeout(300_000)
  let cluster: TestCluster
  let operator = ''
  let names: string[] = []
  const made = mkdtempSync(join(tmpdir(), 'mesh-operator-'))
  const run = (...args: string[]) => runCommand(args, { KUBECONFIG: operator, HOME: made })
  /** What a command says when it fails. */
  const failure = async (...args: string[]) => {
    const { code, stderr } = await run(...args)
    expect(code).to.equal(255)
    return stderr
  }
  const configOf = (name: string) => cluster.tokenConfig(name, cluster.kubectl(['create', 'token', '-n', 'people', name, '--duration', '2h']).trim())
  /** The process of a replica. */
  const processOf = (replica: string): number => {
    const found = readdirSync('/proc').find((pid) => {
      try {
        return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`POD_NAME=${replica}`)
      } catch {
        return false
      }
    })
    if (found === undefined) throw new Error(`no process of ${replica}`)
    return Number(found)
  }

  before(async function () {
    if (envoy === '') this.skip()
    cluster = await TestCluster.start()
    dockerImages(cluster, envoy)
    installChart(cluster, 'base')
    installChart(cluster, 'meshd', { values: { replicaCount: 2 } })
    cluster.apply('{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {mesh-injection: enabled}}}', people)
    const bundle = 'jsonpath={.webhooks[*].clientConfig.caBundle}'
    await until('the webhooks', () => cluster.kubectl(['get', 'mutatingwebhookconfiguration', 'mesh-sidecar-injector', '-o', bundle]) !== '')
    cluster.apply('{apiVersion: v1, kind: Pod, metadata: {name: client, namespace: shop}, spec: {containers: [{name: application, image: idle}]}}')
    cluster.waitFor('condition=Ready', '-n', 'shop', 'pod/client')
    operator = configOf('ann')
    const pods = ['get', 'pods', '-n', 'mesh-system', '-l', 'app=meshd', '-o', 'jsonpath={range .items[*]}{.metadata.name}{"\\n"}{end}']
    names = cluster.kubectl(pods).split('\n').filter(Boolean).sort()
  })
  after(async () => {
    await cluster?.dispose()
    rmSync(made, { recursive: true })
  })

  it('proxy-status shows the proxies of all replicas to who has the Role, and no port is opened', async () => {
    await until('the proxy', async () => /\nclient\.shop +SYNCED /.test((await run('proxy-status', '--cluster')).stdout))
    const { stdout, stderr, code } = await run('proxy-status', '--cluster')
    expect([code, stderr]).to.deep.equal([0, '1 proxy: 1 SYNCED\n'])
    expect(stdout).to.match(/^PROXY .* REPLICA\nclient\.shop +SYNCED /)
    for (const replica of names) expect((await run('proxy-status', '--cluster', '--replica', replica)).stdout).to.contain('\nclient.shop ')
  })

  it('the other commands answer, and say which replica it was where the answer is its own', async () => {
    const change = join(made, 'timeout.yaml')
    writeFileSync(
      change,
      'apiVersion: networking.mesh.io/v1\nkind: VirtualService\nmetadata: {name: a, namespace: shop}\nspec: {hosts: [kubernetes.default.svc.cluster.local], http: [{timeout: 3s, route: [{destination: {host: kubernetes.default.svc.cluster.local}}]}]}\n',
    )
    const expected: readonly (readonly [args: string[], stdout: RegExp, stderr: RegExp, code?: number])[] = [
      [['proxy-status', 'client'], /^Proxy: +client\.shop\nStatus: +SYNCED\n/, /^1 proxy: 1 SYNCED\n$/],
      [['proxy-config', 'clusters', 'client', '--name', 'kubernetes'], /outbound\|443\|\|kubernetes\.default\.svc\.cluster\.local\n/, /^$/],
      [['proxy-config', 'secrets', 'client'], /^client\.shop asks/, /^$/],
      [['explain', 'client', 'https://kubernetes.default:443/'], /^GET https:\/\/kubernetes\.default\/ from client\.\S+\nROUTED/, /^$/],
      [['authz', 'client', '--port', '80'], /^ALLOWED/, /^$/],
      [['diff', change], /added: VirtualService shop\/a/, /^/],
      [['config', '--running', '--changed'], new RegExp(`POD_NAME +${names[0]} `), new RegExp(`^answered by replica ${names[0]}\n$`)],
      [['request', 'GET', '/debug/syncz'], /"proxy": "client\.shop"/, new RegExp(`^answered by replica ${names[0]}\n$`)],
      [
        ['request', 'POST', '/debug/adsz', 'push=true', '--replica', names[1] as string],
        /^Pushed to/,
        new RegExp(`^answered by replica ${names[1]}\n$`),
      ],
    ]
    for (const [args, stdout, stderr] of expected) {
      const found = await run(...args, '--cluster')
      expect(found.stdout, `${args.join(' ')}: ${found.stderr}`).to.match(stdout)
      expect(found.stderr, args.join(' ')).to.match(stderr)
    }
    expect(JSON.parse((await run('proxy-status', '--cluster', '--json')).stdout).proxies).to.have.lengthOf(1)
  })

  it('shells complete what the mesh of the cluster has', async () => {
    const words = async (...line: string[]) => (await run('complete', '--', ...line)).stdout.split('\n').map((word) => word.split('\t')[0])
    expect(await words('proxy-config', 'clusters', '--cluster', 'cl')).to.deep.equal(['client.shop', ''])
    expect(await words('request', '--context', 'x', 'GET', '/debug/sync')).to.deep.equal(['/debug/syncz', ''])
    expect(await words('proxy-status', '--context', '')).to.deep.equal(['x', ''])
  })

  it('errors name what is wrong', async () => {
    const admin = ['proxy-status', '--kubeconfig', cluster.adminConfig]
    const away = join(made, 'away')
    writeFileSync(away, readFileSync(operator, 'utf8').replace(/127\.0\.0\.1:\d+/, '127.0.0.1:1'))
    const none = await runCommand(['proxy-status', '--cluster'], { KUBECONFIG: '', HOME: made })
    expect(none.stderr).to.match(/^Error: --cluster: no cluster is known: there is no file of KUBECONFIG and none at ~\/\.kube\/config/)
    expect(await failure('proxy-status', '--kubeconfig', join(made, 'missing'))).to.match(/^Error: --kubeconfig: \S+missing: /)
    expect(await failure('proxy-status', '--context', 'other')).to.equal('Error: --cluster: there is no context "other"; there are x\n')
    expect(await failure('proxy-status', '--kubeconfig', away)).to.match(
      /^Error: the cluster https:\/\/127\.0\.0\.1:1 cannot be reached: connect ECONN/,
    )
    expect(await failure(...admin, '--meshNamespace', 'default')).to.contain(
      'there are no pods of discovery in the namespace default (labels app=meshd)',
    )
    expect(await failure('proxy-status', '--cluster', '--revision', 'canary')).to.contain('(labels app=meshd,mesh.io/rev=canary)')
    expect(await failure('proxy-status', '--cluster', '--replica', 'meshd')).to.contain(
      `"meshd" is a part of several names: there are ${names.join(', ')}`,
    )
    expect(await failure('proxy-status', '--cluster', '--address', 'localhost:8080')).to.contain('--address and --cluster exclude each other')
    expect(await failure('proxy-status', '--replica', 'meshd')).to.equal('Error: --replica needs --cluster\n')
    expect(await failure('request', 'GET', '/metrics', '--cluster')).to.contain(
      '/metrics: with --cluster only /debug and the pages below it are served',
    )
    const { stdout, code } = await run(...admin, '--meshNamespace', 'default', '--json')
    expect([code, JSON.parse(stdout).error]).to.deep.equal([255, (await failure(...admin, '--meshNamespace', 'default')).slice('Error: '.length, -1)])
  })

  it('a right that is missing is named, with verb and resource', async () => {
    const bob = configOf('bob')
    expect(await failure('proxy-status', '--kubeconfig', bob)).to.match(
      /^Error: forbidden: "list" of pods in the namespace mesh-system: .*system:serviceaccount:people:bob/,
    )
    const role = JSON.parse(cluster.kubectl(['get', 'role', '-n', 'mesh-system', 'meshd-operator', '-o', 'json']))
    const without = (resource: string, verb: string) => {
      const rules = role.rules.map((rule: { resources: string[]; verbs: string[] }) =>
        rule.resources.includes(resource) ? { ...rule, verbs: [...rule.verbs.filter((each) => each !== verb), 'watch'] } : rule,
      )
      cluster.apply(JSON.stringify({ ...role, metadata: { name: 'meshd-operator', namespace: 'mesh-system' }, rules }))
    }
    for (const [resource, verb] of [
      ['pods/portforward', 'create'],
      ['pods/portforward', 'get'],
      ['configmaps', 'get'],
      ['serviceaccounts/token', 'create'],
    ] as const) {
      without(resource, verb)
      const isNamed = async () => (await failure('proxy-status', '--cluster')).includes(`forbidden: "${verb}" of ${resource} `)
      await until(`${verb} of ${resource} to be named`, async () => isNamed().catch(() => false))
    }
    without('', '')
    await until('all rights', async () => (await run('proxy-status', '--cluster')).code === 0)
  })

  it('no token is sent to who has not the certificate of discovery', async () => {
    const certificates = new ServingCertificates(made)
    certificates.authority('ca')
    certificates.issue('server', 'ca', 1, 'subjectAltName=DNS:meshd.impostor.svc\n')
    const pair = JSON.stringify({ key: certificates.text('server-key.pem'), cert: certificates.text('server.pem'), ALPNProtocols: ['h2'] })
    const serve = `require('node:http2').createSecureServer(${pair}).on('stream', (stream, headers) => console.log('asked', headers.authorization)).listen(15012)`
    cluster.image('impostor', [process.execPath, '--eval', serve])
    cluster.apply(
      '{apiVersion: v1, kind: Namespace, metadata: {name: impostor}}',
      '{apiVersion: v1, kind: ServiceAccount, metadata: {name: meshd-operator, namespace: impostor}}',
      '{apiVersion: v1, kind: Pod, metadata: {name: meshd-x, namespace: impostor, labels: {app: meshd, sidecar.mesh.io/inject: "false"}}, spec: {containers: [{name: application, image: impostor, readinessProbe: {tcpSocket: {port: 15012}, periodSeconds: 1}}]}}',
    )
    cluster.waitFor('condition=Ready', '-n', 'impostor', 'pod/meshd-x')
    const ask = () => failure('proxy-status', '--kubeconfig', cluster.adminConfig, '--meshNamespace', 'impostor')
    await until('the roots in the namespace', async () => !(await ask()).includes('configmaps'))
    expect(await ask()).to.match(/^Error: replica meshd-x cannot be asked: .*certificate/)
    expect(cluster.kubectl(['logs', '-n', 'impostor', 'meshd-x'])).not.to.contain('asked')
  })

  it('a replica that does not answer is named and another one asked; one that is not ready is left out', async () => {
    const [first = '', second = ''] = names
    const pid = processOf(first)
    process.kill(pid, 'SIGSTOP')
    try {
      const { stderr, code } = await run('proxy-status', '--cluster')
      expect(code).to.equal(0)
      expect(stderr).to.match(new RegExp(`^Warning: replica ${first} (cannot be asked: no answer within 5 s|is not ready, and is not asked)\n`))
      cluster.waitFor('condition=Ready=false', '-n', 'mesh-system', `pod/${first}`)
      const later = await run('request', 'GET', '/debug/syncz', '--cluster')
      expect(later.stderr).to.equal(`Warning: replica ${first} is not ready, and is not asked\nanswered by replica ${second}\n`)
      expect(await failure('proxy-status', '--cluster', '--replica', first)).to.contain(`"${first}" is no ready replica: there are ${second}\n`)
    } finally {
      process.kill(pid, 'SIGCONT')
    }
    cluster.waitFor('condition=Ready', '-n', 'mesh-system', `pod/${first}`)
  })
  it('push watch shows a change, and names the replica that ends', async () => {
    const [first = ''] = names
    const said = new Output()
    const env = { ...process.env, KUBECONFIG: operator, HOME: made }
    const watching = spawn(process.execPath, [discoveryScript, 'push', 'watch', '--cluster', '--replica', first], { env })
    said.follow(watching)
    await said.says(/^TIME +REASON/m)
    cluster.apply(
      'apiVersion: networking.mesh.io/v1\nkind: ServiceEntry\nmetadata: {name: a, namespace: shop}\nspec: {hosts: [a.example], ports: [{number: 80, name: http, protocol: HTTP}], resolution: STATIC, endpoints: [{address: 10.9.9.9}]}',
    )
    await said.says(/ 1 of 1 .*ServiceEntry shop\/a/)
    const ended = new Promise((resolve) => watching.on('close', resolve))
    cluster.kubectl(['delete', 'pod', '-n', 'mesh-system', first, '--wait=false'])
    expect(await ended).to.equal(255)
    await said.says(new RegExp(`^Error: replica ${first}: the connection was lost$`, 'm'))
  })
})
