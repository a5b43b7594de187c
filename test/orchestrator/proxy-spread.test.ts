/** Three replicas of discovery in a real cluster, of which the last comes late: proxies are spread again, slowly (docs/operation.md, R3). */
import { expect } from 'chai'
import { TestCluster } from '../harness/cluster.ts'
import { Service } from '../harness/service.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const [proxies, mean] = [90, 30]

describe('the proxies of three replicas', function () {
  this.timeout(400_000)
  let cluster: TestCluster
  const services: Service[] = []
  const clients: XdsClient[] = []
  let turn = 0
  let moved = 0

  const start = async (kubeconfig: string) => {
    const flags = ['--registries', 'Orchestrator', '--orchconfig', kubeconfig, '--configDir', '', '--writers', '1']
    const env = { MESHD_CA_STATE_DIR: '', MESHD_REPLICA_ADDRESS: '127.0.0.1:0', MESHD_SPREAD_RATE: '10', POD_NAME: `replica-${services.length}` }
    const made = new Service({ env, flags })
    services.push(made)
    await made.start()
  }
  /** Connects as through a Service: each connection goes to the next replica. */
  const connect = (number: number) => {
    const service = services[turn++ % services.length] as Service
    return new XdsClient(service.grpcPort, sidecarNode(`10.1.0.${number + 1}`, `pod${number}`, 'shop'), number % 2 === 0).connect()
  }
  const again = () => {
    for (const [number, client] of clients.entries()) {
      if (client.closed === undefined) continue
      expect(client.closed).to.deep.equal({ code: 14, details: 'the connection is closed so that the proxies of all replicas are spread' })
      client.close()
      moved++
      clients[number] = connect(number)
    }
  }
  const sum = (metrics: string, name: string) =>
    [...metrics.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\d+)$`, 'gm'))].reduce((total, [, count]) => total + Number(count), 0)
  const of = (name: string) => Promise.all(services.map(async (service) => sum(await service.metrics(), name)))

  before(async () => {
    cluster = await TestCluster.start()
    const kubeconfig = cluster.roleConfig()
    await start(kubeconfig)
    await start(kubeconfig)
    for (let number = 0; number < proxies; number++) clients.push(connect(number))
    await until('the proxies at two replicas', async () => (await of('pilot_xds')).join() === '45,45')
    await start(kubeconfig)
  })
  after(async () => {
    for (const client of clients) client.close()
    for (const each of services) await each.dispose()
    await cluster?.dispose()
  })

  it('are spread over all, none is lost, and none moves that need not', async () => {
    await until('the share of each', async () => {
      again()
      const counts = await of('pilot_xds')
      return counts.reduce((total, count) => total + count, 0) === proxies && counts.every((count) => Math.abs(count - mean) <= mean / 3)
    })
    const spread = await of('pilot_xds_spread_connections_total')
    expect(spread[2]).to.equal(0)
    expect(Math.min(spread[0] as number, spread[1] as number)).to.be.above(0)
    // A third of those that move come back where they were.
    expect(moved).to.be.at.most(3 * mean)
    await services[0]?.output.says('so that others get their share (MESHD_SPREAD_RATE)')
  })
})
