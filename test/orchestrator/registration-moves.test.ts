/**
 * A machine outside the cluster stays what it is while the replica of discovery that keeps its entry ends in order, stops, or cannot be reached
 * (docs/registration.md, R5 to R9): three replicas behind their Service, installed by the chart, and a real agent with a stock Envoy.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { TestCluster } from '../harness/cluster.ts'
import { installChart, settled } from '../harness/cluster-mesh.ts'
import { dockerImages } from '../harness/docker-images.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { Machine } from '../harness/machine.ts'
import { until } from '../harness/until.ts'

const envoy = envoyBinaries().at(-1)?.path ?? ''
const documents = `{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: ledger, namespace: shop}}
---
{apiVersion: networking.mesh.io/v1, kind: WorkloadGroup, metadata: {name: ledger, namespace: shop}, spec: {metadata: {labels: {app: ledger}}, template: {serviceAccount: ledger}}}`

/** What a watch has told of the entry since it was last asked: each state once, in their order. */
class EntryWatch {
  readonly #watch: ChildProcess
  states: string[] = []
  /** The last one of all. */
  latest = ''

  constructor(cluster: TestCluster) {
    const path = (name: string) => `{.object.metadata.annotations.mesh\\.io/${name}}`
    const health = '{.object.status.conditions[?(@.type=="Healthy")].status}'
    const shown = `{.type}|{.object.metadata.uid}|${path('workloadController')}|${path('disconnectedAt')}|${health}{"\\n"}`
    const args = ['get', 'workloadentries.networking.mesh.io', '-n', 'shop', '-w', '--output-watch-events', '-o', `jsonpath=${shown}`]
    this.#watch = spawn(join(cluster.bin, 'kubectl'), args, {
      env: { ...process.env, KUBECONFIG: cluster.adminConfig },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let rest = ''
    this.#watch.stdout?.on('data', (bytes) => {
      const lines = (rest + bytes).split('\n')
      rest = lines.pop() ?? ''
      this.states.push(...lines)
      this.latest = lines.at(-1) ?? this.latest
    })
  }

  end(): void {
    this.#watch.kill()
  }
}

describe('the entry of a machine', function () {
  this.timeout(400_000)
  let cluster: TestCluster
  let machine: Machine
  let watch: EntryWatch
  let stopped: number[] = []

  /** The processes of a pod. */
  const processes = (pod: string): number[] =>
    readdirSync('/proc').flatMap((pid) => {
      try {
        return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`POD_NAME=${pod}`) ? [Number(pid)] : []
      } catch {
        return []
      }
    })
  /** The entry as it was told of last. */
  const last = () => {
    const [, uid = '', keeper = '', , health = ''] = watch.latest.split('|')
    return { uid, keeper, health }
  }

  before(async function () {
    if (envoy === '') this.skip()
    cluster = await TestCluster.start()
    dockerImages(cluster, envoy)
    installChart(cluster, 'base')
    installChart(cluster, 'meshd', { values: { replicaCount: 3, registration: { enabled: true } } })
    cluster.apply(documents)
    machine = new Machine(cluster, envoy, 'ledger')
    await machine.prepare()
    machine.isWell = true
    watch = new EntryWatch(cluster)
    machine.launch('ledger')
    await until('its health', () => last().health === 'True')
  })
  after(async () => {
    goOn()
    watch?.end()
    await machine?.dispose()
    await cluster?.dispose()
  })

  /** The entry as it is now, of which alone the watch has told. */
  const begin = () => {
    const from = last()
    watch.states = []
    return from
  }
  /** What has become of an entry since then, but for its keeper. */
  const became = () => [
    ...new Set(watch.states.map((state) => state.split('|')).map(([type, uid, , leftAt, health]) => [type, uid, leftAt, health].join())),
  ]
  const asItWas = ({ uid }: { readonly uid: string }) => [`MODIFIED,${uid},,True`]
  const goOn = () => {
    for (const pid of stopped)
      try {
        process.kill(pid, 'SIGCONT')
      } catch {
        // It was ended, as one that does not answer.
      }
    stopped = []
  }
  const podOf = ({ keeper }: { readonly keeper: string }) => keeper.slice(0, keeper.lastIndexOf('-'))
  /** Runs iptables in the network of the nodes, or of the pod of a process. */
  const iptables = (network: readonly string[], ...rule: readonly string[]) => {
    const { status, stderr } = spawnSync('nsenter', [...network, 'iptables', ...rule, '-j', 'DROP'], { encoding: 'utf8' })
    expect(status, stderr).to.equal(0)
  }

  it('is taken over when its replica ends in order', async () => {
    const from = begin()
    cluster.kubectl(['delete', 'pod', '-n', 'mesh-system', podOf(from), '--wait=false'])
    await until('another keeper', () => last().keeper !== '' && last().keeper !== from.keeper)
    settled(cluster, 'mesh-system', 'meshd')
    expect(became()).to.deep.equal(asItWas(from))
  })

  it('is taken over when its replica stops without a word, which changes nothing when it goes on', async () => {
    const from = begin()
    stopped = processes(podOf(from))
    for (const pid of stopped) process.kill(pid, 'SIGSTOP')
    await until('another keeper', () => last().keeper !== '' && last().keeper !== from.keeper)
    const { keeper } = last()
    goOn()
    settled(cluster, 'mesh-system', 'meshd')
    machine.isWell = false
    await until('its ill health, of which its keeper tells', () => last().health === 'False')
    machine.isWell = true
    await until('its health', () => last().health === 'True')
    expect(last().keeper).to.equal(keeper)
    expect(became()).to.deep.equal([...asItWas(from), `MODIFIED,${from.uid},,False`])
  })

  it('stays with its replica while that cannot reach the API server for half a minute', async () => {
    const from = begin()
    const network = ['-t', `${processes(podOf(from))[0]}`, '-n']
    const rule = ['OUTPUT', '-d', cluster.kubectl(['get', 'service', 'kubernetes', '-o', 'jsonpath={.spec.clusterIP}'])]
    const renewed = () => cluster.kubectl(['get', 'lease', '-n', 'mesh-system', `mesh-replica-${from.keeper}`, '-o', 'jsonpath={.spec.renewTime}'])
    iptables(network, '-I', ...rule)
    const at = renewed()
    await until('the others to take it for dead', () => Date.now() - Date.parse(at) > 35_000)
    iptables(network, '-D', ...rule)
    await until('its Lease to be renewed', () => renewed() > at)
    machine.isWell = false
    await until('its ill health, of which its keeper tells', () => last().health === 'False')
    machine.isWell = true
    await until('its health', () => last().health === 'True')
    expect(last().keeper).to.equal(from.keeper)
    expect(became()).to.deep.equal([`MODIFIED,${from.uid},,False`, ...asItWas(from)])
  })

  it('is taken over when the machine cannot reach its replica, which both notice, so that it is at most marked meanwhile', async () => {
    const from = begin()
    const node = [`--net=/run/netns/${cluster.network}`]
    const pod = cluster.kubectl(['get', 'pod', '-n', 'mesh-system', podOf(from), '-o', 'jsonpath={.status.podIP}'])
    for (const [one, other] of [
      [machine.address, pod],
      [pod, machine.address],
    ] as const)
      iptables(node, '-I', 'FORWARD', '-s', one, '-d', other)
    await until('another keeper', () => last().keeper !== '' && last().keeper !== from.keeper)
    expect(
      watch.states.map((state) => state.split('|')).filter(([type, uid, , , health]) => `${type},${uid},${health}` !== `MODIFIED,${from.uid},True`),
    ).to.deep.equal([])
    expect(watch.latest.split('|')[3]).to.equal('')
  })
})
