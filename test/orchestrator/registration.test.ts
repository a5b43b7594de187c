/**
 * A machine outside the cluster joins it by a WorkloadGroup (docs/registration.md): Helm installs the charts with two replicas of discovery, the machine is a
 * network namespace with a cable to the cluster, with the real agent, Envoy and a token of its account, and an injected pod calls it by service name.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { expect } from 'chai'
import { TestCluster } from '../harness/cluster.ts'
import { installChart } from '../harness/cluster-mesh.ts'
import { dockerImages } from '../harness/docker-images.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { Machine } from '../harness/machine.ts'
import { until } from '../harness/until.ts'

const envoy = envoyBinaries().at(-1)?.path ?? ''
const documents = `{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {mesh-injection: enabled}}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: ledger, namespace: shop}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: other, namespace: shop}}
---
{apiVersion: networking.mesh.io/v1, kind: WorkloadGroup, metadata: {name: ledger, namespace: shop}, spec: {metadata: {labels: {app: ledger}}, template: {serviceAccount: ledger}}}
---
{apiVersion: v1, kind: Service, metadata: {name: ledger, namespace: shop}, spec: {selector: {app: ledger}, ports: [{name: http, port: 80, targetPort: 8080}]}}
---
{apiVersion: security.mesh.io/v1, kind: PeerAuthentication, metadata: {name: strict, namespace: mesh-system}, spec: {mtls: {mode: STRICT}}}`
const client = '{apiVersion: v1, kind: Pod, metadata: {name: client, namespace: shop}, spec: {containers: [{name: application, image: idle}]}}'

interface Entry {
  readonly metadata: { readonly name: string; readonly uid: string; readonly annotations: Readonly<Record<string, string>> }
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] }
}

describe('a machine outside the cluster', function () {
  this.timeout(300_000)
  let cluster: TestCluster
  let machine: Machine
  const entries = () =>
    (JSON.parse(cluster.kubectl(['get', 'workloadentries.networking.mesh.io', '-n', 'shop', '-o', 'json'])) as { items: Entry[] }).items
  const entry = (): Entry | undefined => entries()[0]
  const keeper = () => entry()?.metadata.annotations['mesh.io/workloadController']
  const healthy = () => entry()?.status?.conditions?.find(({ type }) => type === 'Healthy')?.status
  /** The status of a call of the pod by service name. */
  const call = () => {
    const args = ['-s', '-m', '5', '-o', '/dev/null', '-w', '%{http_code}', 'http://ledger.shop/']
    try {
      return cluster.kubectl(['exec', '-n', 'shop', 'client', '-c', 'application', '--', 'curl', ...args])
    } catch (error) {
      return (error as Error).message
    }
  }
  const logs = () => cluster.kubectl(['logs', '-n', 'mesh-system', '-l', 'app=meshd', '--tail', '-1'])
  /** Kills the process of a replica, whose pod starts another one. */
  const kill = (replica: string) => {
    const pod = replica.slice(0, replica.lastIndexOf('-'))
    const found = readdirSync('/proc').filter((pid) => {
      try {
        return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`POD_NAME=${pod}`)
      } catch {
        return false
      }
    })
    expect(found, pod).not.to.deep.equal([])
    for (const pid of found) process.kill(Number(pid), 'SIGKILL')
  }

  before(async function () {
    if (envoy === '') this.skip()
    cluster = await TestCluster.start()
    dockerImages(cluster, envoy)
    installChart(cluster, 'base')
    installChart(cluster, 'meshd', {
      values: { replicaCount: 2, registration: { enabled: true }, env: { PILOT_WORKLOAD_ENTRY_GRACE_PERIOD: '5s' } },
    })
    cluster.apply(documents)
    await until('the client to be made', () => {
      try {
        cluster.apply(client)
        return true
      } catch {
        // The API server does not trust the webhook yet.
        return false
      }
    })
    machine = new Machine(cluster, envoy, 'ledger')
    await machine.prepare()
    cluster.waitFor('condition=Ready', '-n', 'shop', 'pod/client')
  })
  after(async () => {
    await machine?.dispose()
    await cluster?.dispose()
  })

  it('does not join as another account, and is told why', async () => {
    machine.launch('other')
    await until(
      'the reason',
      () => machine.output.soFar().includes('is for service account \\"ledger\\"') || logs().includes('is for service account "ledger"'),
    )
    await machine.end()
    expect(entries()).to.deep.equal([])
  })

  it('joins by its group, and is reached by service name over mutual TLS when it is healthy', async () => {
    machine.launch('ledger')
    await until('the entry', () => entry() !== undefined)
    expect(call()).to.equal('503')
    machine.isWell = true
    await until('its health', () => healthy() === 'True')
    await until('a call', () => call() === '200')
    expect(entry()?.metadata.name).to.equal(`ledger-${machine.address}`)
  })

  it('is not called while it is unhealthy', async () => {
    machine.isWell = false
    await until('its ill health', () => healthy() === 'False')
    await until('the end of calls', () => call() === '503')
    machine.isWell = true
    await until('its health', () => healthy() === 'True')
    await until('a call', () => call() === '200')
  })

  it('moves to the other replica when its own is killed, with the same entry, and stays healthy', async () => {
    const before = entry()
    const first = keeper() ?? ''
    kill(first)
    const seen = new Set<string>()
    await until('another keeper', () => {
      const now = entry()
      seen.add(`${now?.metadata.uid} ${now?.metadata.annotations['mesh.io/disconnectedAt'] ?? 'connected'} ${healthy()}`)
      return now?.metadata.annotations['mesh.io/workloadController'] !== first
    })
    expect([...seen]).to.deep.equal([`${before?.metadata.uid} connected True`])
    expect(call()).to.equal('200')
  })

  it('is cleaned up by the replica that lives when it ends together with its own', async () => {
    const last = keeper() ?? ''
    machine.kill()
    kill(last)
    await until('the end of the entry', () => entries().length === 0)
    await until('the end of calls', () => call() === '503')
  })
})
