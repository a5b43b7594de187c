/**
 * The replica that writes the status of objects is killed or stopped at any moment while objects change all the time: only one replica writes at a time,
 * and nothing that is right is written again (docs/operation.md, L1 to L3; docs/status.md).
 */
import { setTimeout as pause } from 'node:timers/promises'
import { expect } from 'chai'
import { seededRandom } from '../../src/registry/mock.ts'
import { TestCluster } from '../harness/cluster.ts'
import { manifest } from '../harness/cluster-mesh.ts'
import { HostileRelay } from '../harness/hostile-relay.ts'
import { establish, meshDefinitions } from '../harness/mesh-definitions.ts'
import { seed } from '../harness/seed.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const route = (name: string, seconds: number) =>
  `{apiVersion: networking.mesh.io/v1, kind: VirtualService, metadata: {name: ${name}, namespace: shop},
    spec: {hosts: [${name}.test], http: [{timeout: ${seconds}s, route: [{destination: {host: ${name}.test}}]}]}}`
const names = ['a', 'b', 'c']

/** A replica whose calls go through a relay of its own. */
interface Replica {
  readonly service: Service
  readonly relay: HostileRelay
  client: XdsClient | undefined
}

describe('the replica that writes the status', function () {
  // A Lease that nobody renews belongs to its holder for 30 s.
  this.timeout(400_000)
  let cluster: TestCluster
  const replicas: Replica[] = []
  /** Which replica has sent a patch of a status, in their order. */
  let patches: number[] = []
  let seconds = 0

  const made = async (): Promise<void> => {
    const relay = await HostileRelay.start(cluster.server, cluster.dir)
    const by = replicas.length
    relay.patched = (path) => void (path.endsWith('/status') && patches.push(by))
    const flags = ['--registries', 'Orchestrator', '--orchconfig', cluster.roleConfig(relay.address), '--configDir', '', '--writers', '1']
    const replica: Replica = {
      service: new Service({ env: { PILOT_ENABLE_STATUS: 'true', POD_NAME: `replica-${by}` }, flags }),
      relay,
      client: undefined,
    }
    replicas.push(replica)
    await replica.service.start()
    await connect(replica)
  }
  /** Connects a proxy to a replica. */
  const connect = async (replica: Replica): Promise<void> => {
    replica.client = new XdsClient(replica.service.grpcPort, sidecarNode(`10.1.0.${replicas.indexOf(replica) + 1}`, 'web', 'shop'), true).connect()
    await replica.client.ready()
  }
  const leader = () =>
    cluster.kubectl(['get', 'lease', '-n', 'mesh-system', 'mesh-status-leader', '--ignore-not-found', '-o', 'jsonpath={.spec.holderIdentity}'])
  const leading = () => replicas.findIndex((_, index) => leader().startsWith(`replica-${index}_`))
  const change = () => cluster.apply(...names.map((name) => route(name, ++seconds)))
  const areTrue = () => {
    const { items } = JSON.parse(cluster.kubectl(['get', 'virtualservices.networking.mesh.io', '-n', 'shop', '-o', 'json'])) as {
      items: { metadata: { generation: number }; status?: { observedGeneration?: number; conditions?: { type: string; status: string }[] } }[]
    }
    return items.every(
      ({ metadata, status }) =>
        status?.observedGeneration === metadata.generation &&
        status.conditions?.some(({ type, status: is }) => type === 'Reconciled' && is === 'True'),
    )
  }

  before(async () => {
    cluster = await TestCluster.start()
    cluster.stopControllers()
    cluster.apply('{apiVersion: v1, kind: Namespace, metadata: {name: shop}}')
    establish(cluster, meshDefinitions().get('virtualservices') as string)
    for (let index = 0; index < 2; index++) await made()
    cluster.apply(manifest('optional/status.yaml'))
    change()
    await until('the status', areTrue)
  })
  after(async () => {
    for (const { service, relay, client } of replicas) {
      client?.close()
      if (service.pid > 0) process.kill(service.pid, 'SIGCONT')
      await service.dispose()
      relay.close()
    }
    await cluster?.dispose()
  })

  const random = seededRandom(seed)
  for (const signal of ['SIGKILL', 'SIGSTOP'] as const)
    it(`gets ${signal} at some moment: another one goes on, alone, and says once what is so`, async () => {
      const first = leading()
      const replica = replicas[first] as Replica
      patches = []
      let isHit = false
      const hit = pause(random() * 3000).then(async () => {
        if (signal === 'SIGKILL') await replica.service.stop('SIGKILL')
        else process.kill(replica.service.pid, 'SIGSTOP')
        isHit = true
      })
      while (!isHit) {
        change()
        await pause(50)
      }
      await hit
      replica.client?.close()
      change()
      await until('another leader', () => leading() !== first && leading() >= 0)
      const next = leading()
      await until('the status', areTrue)
      if (signal === 'SIGKILL') await replica.service.start()
      else process.kill(replica.service.pid, 'SIGCONT')
      await connect(replica)
      change()
      await until('the status', areTrue)
      const order = [...patches]
      expect(order.lastIndexOf(first), `${order.join('')}: the last patch of the first one`).to.be.below(order.indexOf(next))
      // Each of the two last generations of three objects is perhaps seen before its proxy has answered: False, and then True.
      expect(order.length - order.indexOf(next)).to.be.at.most(3 * 2 * 2)
      expect(leading()).to.equal(next)
    })
})
