/** The simulated replica of `--set fleet` sends what the real service sends: as many responses, and bytes. */
import { expect } from 'chai'
import { bytesOf, responsesOf, type Work } from '../../bench/fleet-model.ts'
import { type FleetKind, fleetKinds } from '../../bench/fleet-run.ts'
import { Load } from '../../bench/load.ts'
import * as mesh from '../../bench/mesh.ts'
import { DiscoveryServer } from '../../bench/server.ts'
import { SimulatedReplica } from '../../bench/simulated-replica.ts'
import { until } from '../harness/until.ts'

const size = { services: 30, namespaces: 3, writers: 2 }
const proxies = 24

describe('a simulated replica beside the real service', () => {
  const replica = new SimulatedReplica(size)
  const load = new Load()
  let server: DiscoveryServer

  before(async () => {
    server = await DiscoveryServer.start({ writers: size.writers, files: mesh.files(size.services, size.namespaces) })
  })
  after(async () => {
    load.end()
    await server.kill()
  })

  /** Responses and bytes of messages that the service has sent since, once it has sent as many as the simulation. */
  async function sent(before: number, work: Work): Promise<{ responses: number; bytes: number }> {
    const responses = async () => (await server.metric('pilot_xds_pushes')) - before
    await until('the simulated number of responses', async () => (await responses()) >= responsesOf(work))
    return { responses: await responses(), bytes: await load.received() }
  }

  async function compare(work: Work, make: () => Promise<unknown>): Promise<void> {
    await load.received()
    const before = await server.metric('pilot_xds_pushes')
    await make()
    const real = await sent(before, work)
    expect(real.responses).to.equal(responsesOf(work))
    // Nonces and markers differ in length.
    expect(bytesOf(work)).to.be.closeTo(real.bytes, 0.03 * real.bytes)
  }

  it('sends connecting proxies the same', async () => {
    const client = { ...{ port: server.port, tls: false, delta: true, hosts: true, namespaces: size.namespaces }, own: false, misbehaving: 0 }
    // The first proxy of each process of the load finds the names for the others.
    await compare(replica.connect(proxies), () => load.connect(proxies, { ...client, reads: 'first', atOnce: 1 }))
  })

  for (const [round, kind] of fleetKinds.entries())
    it(`sends the same for each ${kind}`, async () => {
      const work = replica.change([{ at: 2000, kind, round: round + 1 }])
      await compare(work, () => change(kind, round + 1))
    })

  async function change(kind: FleetKind, round: number): Promise<void> {
    const { file, text = '', marker } = mesh.change(kind, round, size.services, size.namespaces)
    if (marker !== undefined) await load.mark(marker, () => server.put(file, text))
    else {
      const avoided = await server.metric('pilot_pushes_avoided_total')
      server.put(file, text)
      await until('the change', async () => (await server.metric('pilot_pushes_avoided_total')) > avoided)
    }
  }
})
