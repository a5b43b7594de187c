/**
 * The key of a root is stolen, and the root is distrusted: how long whoever has the key is still served, by two replicas of discovery that share the
 * authority, and by the stock Envoys of pods whose agents are connected to either (docs/certificates.md, R16, R17, K10).
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { TestCluster } from '../harness/cluster.ts'
import { installChart, settled, shopDeployment } from '../harness/cluster-mesh.ts'
import { dockerImages } from '../harness/docker-images.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import type { CallCounts } from '../harness/steady-client.ts'
import type { Attempt, AttemptLine } from '../harness/stolen-key.ts'
import { until } from '../harness/until.ts'

const envoy = envoyBinaries().at(-1)?.path ?? ''
const program = (name: string) => fileURLToPath(new URL(`../harness/${name}.ts`, import.meta.url))
/**
 * A replica reads what another one wrote every 5 s, and then tells agents at once, which serve their Envoys the roots at once. The rest is for a busy
 * machine.
 */
const workloadsWithinMs = 5000 + 10_000
/** A replica reads what another one wrote every 5 s, and its writers look at open connections within 10 s. The rest is for a busy machine. */
const writersWithinMs = 5000 + 10_000 + 10_000

describe('a root whose key was stolen', () => {
  let cluster: TestCluster
  let thief: ChildProcess | undefined
  /** When each target was first served and then refused, on the monotonic clock. */
  const at = { served: new Map<string, number>(), refused: new Map<string, number>() }

  const addresses = (namespace: string, app: string, port: number) =>
    cluster
      .kubectl(['get', 'pods', '-n', namespace, '-l', `app=${app}`, '-o', 'jsonpath={.items[*].status.podIP}'])
      .split(' ')
      .map((address) => `${address}:${port}`)
  const ca = (...args: string[]) => cluster.kubectl(['exec', '-n', 'mesh-system', 'deploy/meshd', '--', 'pilot-discovery', 'ca', ...args])
  const secret = (key: string) => {
    const text = cluster.kubectl(['get', 'secret', '-n', 'mesh-system', 'mesh-ca-secret', '-o', `jsonpath={.data.${key.replace('.', '\\.')}}`])
    return Buffer.from(text, 'base64').toString('utf8')
  }
  const calls = () => {
    const lines = cluster.kubectl(['logs', '-n', 'shop', 'deploy/client', '-c', 'application']).split('\n').filter(Boolean)
    return lines.map((line) => JSON.parse(line) as { counts?: CallCounts[] }).findLast(({ counts }) => counts)?.counts?.[0]?.succeeded ?? 0
  }
  const goOn = async () => {
    const before = calls()
    await until('more calls to succeed', () => calls() > before + 20)
  }
  /** Lets the thief try all that it can reach, until all serve it. */
  const steal = async (attempt: Attempt) => {
    const path = join(cluster.dir, 'attempt')
    writeFileSync(path, JSON.stringify(attempt))
    thief = spawn('ip', ['netns', 'exec', cluster.network, process.execPath, program('stolen-key'), path], { stdio: ['ignore', 'pipe', 'pipe'] })
    let said = ''
    let rest = ''
    thief.stderr?.on('data', (bytes) => (said += bytes))
    thief.stdout?.on('data', (bytes) => {
      const lines = (rest + bytes).split('\n')
      rest = lines.pop() ?? ''
      for (const { target, state } of lines.map((line) => JSON.parse(line) as AttemptLine)) at[state].set(target, performance.now())
    })
    await until('all to serve the thief', () => {
      if (thief?.exitCode !== null) throw new Error(`it ended: ${said}`)
      return at.served.size === attempt.writers.length + attempt.workloads.length
    })
  }

  before(async function () {
    if (envoy === '') this.skip()
    cluster = await TestCluster.start()
    dockerImages(cluster, envoy)
    cluster.image('steady', [process.execPath, program('steady-client')])
    installChart(cluster, 'base')
    installChart(cluster, 'meshd', { values: { replicaCount: 2 } })
    const bundle = 'jsonpath={.webhooks[*].clientConfig.caBundle}'
    const webhooks = ['get', 'mutatingwebhookconfiguration', 'mesh-sidecar-injector', '-o', bundle]
    await until('the webhooks to have the CA bundle', () => cluster.kubectl(webhooks) !== '')
    cluster.apply(
      '{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {mesh-injection: enabled}}}',
      'apiVersion: security.mesh.io/v1\nkind: PeerAuthentication\nmetadata: {name: strict, namespace: mesh-system}\nspec: {mtls: {mode: STRICT}}',
      '{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}]}}',
    )
    const client = shopDeployment('client', 1, { image: 'steady', args: ['http://web.shop/'] })
    cluster.apply(JSON.stringify(shopDeployment('web', 4, { image: 'echo' })), JSON.stringify(client))
    for (const name of ['web', 'client']) settled(cluster, 'shop', name)
  })
  after(async () => {
    thief?.kill()
    await cluster?.dispose()
  })

  it('serves nobody any more within seconds after it is distrusted, while the calls of the mesh go on', async () => {
    const [rootKey, root] = [secret('ca-key.pem'), secret('ca-cert.pem')]
    await goOn()
    const writers = addresses('mesh-system', 'meshd', 15_012)
    const workloads = addresses('shop', 'web', 8080)
    expect([writers.length, workloads.length]).to.deep.equal([2, 4])
    await steal({ rootKey, root, account: 'default', writers, workloads })
    const [former] = (JSON.parse(ca('show', '-o', 'json')) as { roots: { id: string }[] }).roots
    for (let stage = 0; stage < 3; stage++) ca('rotate', '--force')
    await goOn()
    expect([...at.refused.keys()], 'refused before').to.deep.equal([])
    ca('distrust', former?.id ?? '')
    const from = performance.now()
    const all = [...writers, ...workloads]
    await until('all to refuse the thief', () => all.every((target) => at.refused.has(target)))
    const took = (target: string) => Math.round((at.refused.get(target) ?? 0) - from)
    for (const target of workloads) expect(took(target), `ms until the Envoy at ${target} refused it`).to.be.below(workloadsWithinMs)
    for (const target of writers) expect(took(target), `ms until the replica at ${target} ended its stream`).to.be.below(writersWithinMs)
    await goOn()
  })
})
