/** The maximum number of proxies of a process (docs/operation.md, R1 and R2). */
import { createServer, connect as tcpConnect } from 'node:net'
import { pipeline } from 'node:stream'
import { expect } from 'chai'
import { clusterType } from '../../src/xds/type-urls.ts'
import { delta } from '../harness/relay.ts'
import { node, RelayFixture } from '../harness/relay-fixture.ts'
import { Service } from '../harness/service.ts'
import { serviceEntry } from '../harness/service-entry.ts'
import { until } from '../harness/until.ts'
import { sidecarNode, XdsClient } from '../harness/xds-client.ts'

const limited = (most: number) => new Service({ env: { PILOT_XDS_MAX_PROXIES: String(most) }, flags: ['--writers', '2'] })

describe('PILOT_XDS_MAX_PROXIES', () => {
  const services: Service[] = []
  const clients: XdsClient[] = []
  const start = async (most: number) => {
    const service = limited(most)
    services.push(service)
    service.write('a.yaml', serviceEntry('a'))
    await service.start()
    return service
  }
  const connect = async (service: Service, number: number) => {
    const client = new XdsClient(service.grpcPort, sidecarNode(`10.0.0.${number}`, `p${number}`, 'shop'), number % 2 === 0).connect()
    clients.push(client)
    await until('the client to be served or refused', () => client.closed !== undefined || client.responses.has(clusterType))
    return client
  }
  const refused = async (service: Service) =>
    [...(await service.metrics()).matchAll(/^pilot_xds_refused_proxies_total(?:\{[^}]*\})? (\d+)$/gm)].reduce(
      (sum, [, count]) => sum + Number(count),
      0,
    )

  afterEach(async () => {
    for (const client of clients.splice(0)) client.close()
    await Promise.all(services.splice(0).map((service) => service.dispose()))
  })

  it('counts the proxies of all writers, refuses a further one with UNAVAILABLE, and serves it when one has left', async () => {
    const service = await start(3)
    const served = [await connect(service, 1), await connect(service, 2), await connect(service, 3)]
    expect(served.map(({ closed }) => closed)).to.deep.equal([undefined, undefined, undefined])
    const { closed } = await connect(service, 4)
    expect(closed).to.deep.equal({
      code: 14,
      details: 'this process serves 3 proxies, its maximum (PILOT_XDS_MAX_PROXIES); another replica may have room',
    })
    expect(await refused(service)).to.equal(1)
    await service.output.says('stream of sidecar~10.0.0.4~p4.shop~shop.svc.cluster.local from 127.0.0.1 refused: this process serves 3 proxies', 1, 1)
    served[0]?.close()
    await until('room', async () => (await connect(service, 5)).closed === undefined)
  })

  it('leads an agent to another replica that has room', async () => {
    const [full, free] = [await start(1), await start(1)]
    await connect(full, 1)
    // A Service in front of both: each connection goes to the next one.
    let next = 0
    const balancer = createServer((client) => {
      const server = tcpConnect((next++ % 2 === 0 ? full : free).grpcPort, '127.0.0.1')
      pipeline(client, server, client, () => undefined)
    })
    await new Promise<void>((resolve) => balancer.listen(0, '127.0.0.1', resolve))
    const at = new RelayFixture()
    try {
      await at.relayTo((balancer.address() as { port: number }).port)
      const proxy = at.proxy({ isDelta: true })
      proxy.send(delta({ node, typeUrl: clusterType }))
      await until('configuration', () => proxy.messages.length > 0)
      expect(await refused(full)).to.equal(1)
      expect(await refused(free)).to.equal(0)
    } finally {
      await at.end()
      at.dispose()
      balancer.close()
    }
  })
})
