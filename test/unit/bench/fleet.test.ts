/** The simulation of a fleet: the model of its costs, and the simulated replica. */
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { bytesOf, calibrate, cpuOf, deviation, lastMs, memoryLine, memoryOf, pureCpu, responsesOf, type Work } from '../../../bench/fleet-model.ts'
import { SimulatedReplica } from '../../../bench/simulated-replica.ts'

const work = (connections: number, changes: number, responses: number, bytes: number, cpu: number): Work => ({
  ...{ connections, changes, requests: 0, pushes: 0, planner: cpu / 2 },
  writers: [{ responses, bytes, received: 0, cpu: cpu / 2 }],
})

describe('the model of a fleet', () => {
  it('finds the constants with which measured runs were made, and tells their cost for other numbers of proxies', () => {
    const constants = { connection: 0.002, response: 0.0001, byte: 1e-9, change: 0.01 }
    const real = (of: Work) => ({ cpu: cpuOf(of, constants), work: of })
    const found = calibrate({
      invisible: real(work(0, 10, 0, 0, 0.05)),
      endpoint: real(work(0, 10, 4000, 0, 0.2)),
      small: real(work(400, 0, 2000, 1e6, 0.1)),
      large: real(work(400, 0, 2000, 4e8, 0.3)),
    })
    for (const [name, value] of Object.entries(constants)) expect(found[name as keyof typeof constants], name).to.be.closeTo(value, value / 1000)
    const other = work(2000, 3, 10_000, 2e9, 1)
    expect(deviation(cpuOf(other, found), cpuOf(other, constants))).to.be.below(0.1)
    expect(lastMs(work(0, 1, 400, 0, 0.02), constants)).to.be.closeTo(70, 0.001)
  })

  it('gives no negative constants where a run took less than the simulated code', () => {
    const less = (of: Work) => ({ cpu: 0, work: of })
    const found = calibrate({
      invisible: less(work(0, 1, 0, 0, 1)),
      endpoint: less(work(0, 1, 1, 0, 1)),
      small: less(work(1, 0, 1, 1, 1)),
      large: less(work(1, 0, 1, 2, 1)),
    })
    expect(found).to.deep.equal({ connection: 0, response: 0, byte: 0, change: 0 })
  })

  it('takes memory for a straight line', () => {
    const line = memoryLine({ proxies: 100, mib: 200 }, { proxies: 500, mib: 280 }, 40)
    expect([line.baseMib, line.proxyKib, memoryOf(line, 2000)]).to.deep.equal([180, 0.2 * 1024, 580])
    const least = memoryLine({ proxies: 100, mib: 300 }, { proxies: 500, mib: 280 }, 40)
    expect([least.proxyKib, memoryOf(least, 500)]).to.deep.equal([40, 280])
  })
})

describe('a simulated replica', () => {
  const size = { services: 30, namespaces: 3, writers: 2 }

  it('serves each proxy all types, each change in one response, and a change that nobody sees in none', () => {
    const replica = new SimulatedReplica(size)
    replica.connect(6)
    const connected = replica.connect(12)
    expect([replica.proxies, connected.connections, responsesOf(connected)]).to.deep.equal([18, 12, 12 * 5])
    const endpoint = replica.change([{ at: 0, kind: 'endpoint change', round: 1 }])
    expect([endpoint.pushes, responsesOf(endpoint), endpoint.requests]).to.deep.equal([1, 18, 18])
    expect(responsesOf(replica.change([{ at: 0, kind: 'nothing visible', round: 1 }]))).to.equal(0)
    expect(pureCpu(endpoint)).to.be.above(0)
    replica.disconnect(5)
    expect(replica.proxies).to.equal(13)
  })

  it('debounces changes by its virtual clock: those of a second of ten changes take two pushes', () => {
    const replica = new SimulatedReplica(size)
    replica.connect(3)
    const second = replica.change(Array.from({ length: 10 }, (_, round) => ({ at: round * 90, kind: 'endpoint change', round })))
    expect([second.changes, second.pushes]).to.deep.equal([10, 2])
    const slow = replica.change(Array.from({ length: 4 }, (_, round) => ({ at: round * 1000, kind: 'endpoint change', round: 20 + round })))
    expect(slow.pushes).to.equal(4)
  })

  it('sends next to nothing to proxies that come from another replica with the same content', () => {
    const one = new SimulatedReplica(size)
    const connected = one.connect(12)
    const came = new SimulatedReplica(size).connect(12, structuredClone(one.held()))
    expect(came.connections).to.equal(12)
    expect(bytesOf(came) / bytesOf(connected)).to.be.below(0.01)
  })
})

describe('docs/fleet.md', () => {
  it('has numbers of replicas that follow from its rules', () => {
    const text = readFileSync(new URL('../../../docs/fleet.md', import.meta.url), 'utf8')
    const [, table = ''] = /\| proxies \| most a replica [^\n]*\n\|[- |]*\n((?:\|[^\n]*\n)+)/.exec(text) ?? []
    const rows = table
      .trim()
      .split('\n')
      .map((row) => [...row.replaceAll(',', '').matchAll(/\d+/g)].map(([number]) => Number(number)))
    expect(rows.length).to.be.above(2)
    for (const [proxies = 0, most = 0, ...rest] of rows) {
      const replicas = Math.max(2, Math.ceil(proxies / most + 1))
      const expected = [replicas, Math.ceil(proxies / replicas), Math.ceil(proxies / (replicas - 1)), Math.round(1.1 * most)]
      expect(rest, `${proxies} proxies`).to.deep.equal(expected)
      expect(expected[2], 'of each, one lost').to.be.at.most(most)
    }
  })
})
