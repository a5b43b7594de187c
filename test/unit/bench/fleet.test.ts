/** The simulation of a fleet: the model of its costs, and the simulated replica. */
import { readFileSync } from 'node:fs'
import { expect } from 'chai'
import { bytesOf, calibrate, cpuOf, deviation, lastMs, memoryLine, memoryOf, pureCpu, responsesOf, type Work } from '../../../bench/fleet-model.ts'
import { SimulatedReplica } from '../../../bench/simulated-replica.ts'

const work = (connections: number, changes: number, responses: number, bytes: number, cpu: number): Work => ({
  ...{ connections, changes, requests: 0, pushes: responses > 0 ? changes : 0, planner: cpu / 2 },
  writers: [{ responses, bytes, received: 0, cpu: cpu / 2 }],
})

describe('the model of a fleet', () => {
  const constants = { connection: 0.002, response: 0.0001, byte: 1e-9, change: 0.01, push: 0.004 }
  const real = (of: Work) => ({ cpu: cpuOf(of, constants), work: of })
  const runs = [200, 1000].flatMap((proxies) => [
    real(work(proxies, 0, proxies * 5, proxies * 3e6, proxies * 2e-4)),
    real(work(0, 1, proxies, proxies * 900, proxies * 2e-5)),
    real(work(0, 1, proxies, proxies * 3000, proxies * 3e-5)),
    real(work(0, 1, 0, 0, 0.001)),
  ])
  const few = real(work(1000, 0, 5000, 4e7, 0.1))

  it('finds the constants with which measured runs were made, and tells their cost for other numbers of proxies', () => {
    const found = calibrate([few, ...runs])
    for (const [name, value] of Object.entries(constants)) expect(found[name as keyof typeof constants], name).to.be.closeTo(value, value / 1000)
    const other = work(2000, 3, 10_000, 2e9, 1)
    expect(deviation(cpuOf(other, found), cpuOf(other, constants))).to.be.below(0.1)
    expect(lastMs(work(0, 1, 400, 0, 0.02), constants)).to.be.closeTo(74, 0.001)
  })

  it('is as near to runs that contradict each other as it can be, in shares of each', () => {
    const times = (factor: number) => runs.map(({ cpu, work: of }) => ({ cpu: cpu * factor, work: of }))
    const found = calibrate([few, ...times(0.9), ...times(1.1)])
    for (const { cpu, work: of } of runs) expect(deviation(cpuOf(of, found), cpu)).to.be.below(5)
  })

  it('has no negative constants where the simulated code took longer than the real one', () => {
    const found = calibrate(runs.map(({ work: of }) => ({ cpu: pureCpu(of) * 0.9, work: of })))
    expect(found).to.deep.equal({ connection: 0, response: 0, byte: 0, change: 0, push: 0 })
  })

  it('has nothing for what was not measured', () => {
    expect(calibrate([real(work(0, 1, 0, 0, 0.001))])).to.include({ connection: 0, response: 0, byte: 0, push: 0 })
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
    const invisible = replica.change([{ at: 0, kind: 'nothing visible', round: 1 }])
    expect([invisible.changes, invisible.pushes, responsesOf(invisible)]).to.deep.equal([1, 0, 0])
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
