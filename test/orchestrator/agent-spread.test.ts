/**
 * Agents with stock Envoys at two replicas of discovery behind a Service, of which the second comes late: some are moved to it (docs/operation.md, R3), and
 * neither their Envoys nor who probes them notices.
 */
import { readFileSync } from 'node:fs'
import { createServer, connect as tcpConnect } from 'node:net'
import { pipeline } from 'node:stream'
import { expect } from 'chai'
import { Agent } from '../harness/agent.ts'
import { Authority } from '../harness/certificates.ts'
import { TestCluster } from '../harness/cluster.ts'
import { envoyBinaries } from '../harness/envoy.ts'
import { Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

/** Agents, which connect first and so are the first to be moved, and other proxies, with which a replica has more than it should. */
const [agents, others] = [3, 27]

/** What an Envoy was sent: clusters and listeners that came, changed or went, and updates that had any. An answer without any is none. */
const sent = /^(?:cluster_manager\.cluster|listener_manager\.listener)_(?:added|modified|removed): \d+$|^\S+\.config_reload: \d+$/gm

describe('agents at two replicas, of which the second comes late', function () {
  this.timeout(300_000)
  let cluster: TestCluster
  const authority = new Authority()
  const services: Service[] = []
  const running: Agent[] = []
  const clients: XdsClient[] = []
  let turn = 0
  /** A Service: each connection goes to the next replica. */
  const balancer = createServer((client) => {
    const to = services[turn++ % services.length] as Service
    pipeline(client, tcpConnect(to.grpcPort, '127.0.0.1'), client, () => undefined)
  })
  const port = () => (balancer.address() as { port: number }).port
  /** The statuses of the readiness probes of all agents, all the while. */
  const probes = new Set<number>()
  let isOver = false
  let probing: Promise<void> | undefined

  const startReplica = async (kubeconfig: string) => {
    const service = new Service({
      flags: ['--registries', 'Orchestrator', '--orchconfig', kubeconfig, '--writers', '1'],
      env: { MESHD_CA_STATE_DIR: '', MESHD_REPLICA_ADDRESS: '127.0.0.1:0', MESHD_SPREAD_RATE: '10', POD_NAME: `replica-${services.length}` },
    })
    service.write('a.yaml', serviceEntry('a'))
    await service.start()
    services.push(service)
  }
  const startAgent = async (binary: string, name: string) => {
    const agent = new Agent({
      binary,
      env: { POD_NAME: name, POD_NAMESPACE: 'shop', INSTANCE_IP: '127.0.0.1', TERMINATION_DRAIN_DURATION_SECONDS: '0' },
      proxyConfig: { discoveryAddress: `127.0.0.1:${port()}`, controlPlaneAuthPolicy: 'NONE' },
    })
    running.push(agent)
    const { chain, key } = authority.issue(name, 'spiffe://cluster.local/ns/shop/sa/default')
    for (const [file, path] of Object.entries({ 'cert-chain': chain, key, 'root-cert': authority.root }))
      agent.write(`etc/certs/${file}.pem`, readFileSync(path, 'utf8'))
    await agent.start()
    await until(`${name} to be ready`, async () => (await probe(agent)) === 200)
  }
  const probe = async ({ statusPort }: Agent) => (await fetch(`http://127.0.0.1:${statusPort}/healthz/ready`)).status
  const connect = (number: number) => {
    clients[number] = new XdsClient(port(), sidecarNode(`10.1.0.${number + 1}`, `pod${number}`, 'shop'), true).connect()
  }
  /** The streams of the agents, with the replica, by the name of the agent. */
  const streams = async () => {
    const pages = await Promise.all(services.map((service) => service.debug<{ clients: { connectionId: string }[] }>('adsz?replicas=own')))
    const ids = pages.flatMap(({ clients: all }, replica) => all.map(({ connectionId }) => `${replica}~${connectionId}`))
    return new Map(ids.filter((id) => id.includes('~agent')).map((id) => [id.split('~')[3] as string, id]))
  }
  const received = () => Promise.all(running.map(async (agent) => (await agent.admin('/stats')).match(sent)))

  before(async function () {
    const binary = envoyBinaries().at(-1)?.path
    if (binary === undefined) this.skip()
    await new Promise<void>((resolve) => balancer.listen(0, '127.0.0.1', resolve))
    cluster = await TestCluster.start()
    await startReplica(cluster.roleConfig())
    for (let number = 0; number < agents; number++) await startAgent(binary, `agent${number}`)
    for (let number = 0; number < others; number++) connect(number)
    await until('all proxies at the first replica', async () => {
      const { totalClients } = await (services[0] as Service).debug<{ totalClients: number }>('adsz?replicas=own')
      return totalClients === agents + others
    })
  })
  after(async () => {
    isOver = true
    await probing
    for (const client of clients) client.close()
    for (const agent of running) await agent.dispose()
    for (const service of services) await service.dispose()
    balancer.close()
    await cluster?.dispose()
    authority.dispose()
  })

  it('are moved first, since they came first; their Envoys are sent nothing, and are ready all the while', async () => {
    const [streamsBefore, receivedBefore] = [await streams(), await received()]
    const certificates = await Promise.all(running.map((agent) => agent.admin('/certs')))
    expect(streamsBefore.size).to.equal(agents)
    probing = (async () => {
      while (!isOver) {
        for (const agent of running) probes.add(await probe(agent))
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    })()
    await startReplica(cluster.roleConfig())
    await until('every agent on another stream', async () => {
      for (const [number, client] of clients.entries()) if (client.closed !== undefined) connect(number)
      const now = await streams()
      return now.size === agents && [...now].every(([name, id]) => id !== streamsBefore.get(name))
    })
    await services[0]?.output.says('so that others get their share (MESHD_SPREAD_RATE)')
    // The stream is there before the answer.
    for (const agent of running)
      await until('an answer', async () => /cds\.update_success: ([2-9]|\d\d)/.test(await agent.admin('/stats?filter=cds.update_success')))
    expect(receivedBefore.map((lines) => lines?.length)).to.deep.equal(running.map(() => 7))
    expect(await received()).to.deep.equal(receivedBefore)
    expect(await Promise.all(running.map((agent) => agent.admin('/certs')))).to.deep.equal(certificates)
    expect([...probes]).to.deep.equal([200])
  })

  it('have a change that comes later, whichever replica they are at', async () => {
    for (const service of services) service.write('b.yaml', serviceEntry('b', '10.0.0.2'))
    for (const agent of running)
      await until('the endpoint', async () => (await agent.admin('/clusters')).includes('outbound|80||b.ns.svc.cluster.local::10.0.0.2:80::'))
    expect([...probes]).to.deep.equal([200])
  })
})
