/** Which replica ends how many connections so that all get their share (docs/operation.md, R3): a fleet with a virtual clock. */
import { expect } from 'chai'
import fc from 'fast-check'
import { ProxySpread, type ReplicaLoad, spreadTimes } from '../../../src/orchestrator/proxy-spread.ts'
import { runs } from '../../harness/seed.ts'

const perSecond = 5
const perLook = (perSecond * spreadTimes.lookMs) / 1000

interface Replica {
  readonly spread: ProxySpread
  proxies: number
  /** When it is ready, and when it answers again. */
  readyAt: number
  answersAt: number
}

/** Replicas of which each looks in turn; a connection that ends comes back at any ready replica before the next look. */
class Fleet {
  readonly replicas: Replica[]
  readonly #chance: () => number
  now = 0
  ended = 0

  constructor(proxies: readonly number[], chance: () => number) {
    this.replicas = proxies.map((count) => ({ spread: new ProxySpread(perSecond), proxies: count, readyAt: 0, answersAt: 0 }))
    this.#chance = chance
  }

  get mean(): number {
    return this.replicas.reduce((sum, { proxies }) => sum + proxies, 0) / this.replicas.length
  }

  get isSpread(): boolean {
    return this.replicas.every(({ proxies }) => proxies <= Math.max(this.mean * 1.2, this.mean + 10))
  }

  #load({ proxies, readyAt }: Replica): ReplicaLoad {
    return { proxies, isReady: this.now >= readyAt, most: 0 }
  }

  /** All replicas look once. Returns how many connections each has ended. */
  look(): number[] {
    const counts = this.replicas.map((replica) => {
      const others = this.replicas.flatMap((other, index) =>
        other === replica ? [] : [{ name: `replica-${index}`, load: this.now >= other.answersAt ? this.#load(other) : undefined }],
      )
      return replica.spread.next(this.#load(replica), others, this.now)
    })
    for (const [index, count] of counts.entries()) this.move(index, count)
    this.ended += counts.reduce((sum, count) => sum + count, 0)
    this.now += spreadTimes.lookMs
    return counts
  }

  /** Connections of a replica end and come back at any that is ready. */
  move(index: number, count: number): void {
    const ready = this.replicas.filter(({ readyAt }) => this.now >= readyAt)
    const from = this.replicas[index] as Replica
    for (let each = 0; each < count && ready.length > 0; each++) {
      from.proxies--
      const to = ready[Math.floor(this.#chance() * ready.length)] as Replica
      to.proxies++
    }
  }

  /** A replica starts again: its proxies go elsewhere, and it is ready later. */
  restart(index: number): void {
    const replica = this.replicas[index] as Replica
    replica.readyAt = this.now + 20_000
    this.move(index, replica.proxies)
  }
}

const loads = fc.array(fc.nat(2000), { minLength: 2, maxLength: 6 })
/** Numbers from 0 to below 1 that a seed determines. */
const chances = (seed: number) => {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

describe('proxies of several replicas', () => {
  it('are spread slowly, by nobody below the mean, and stay where they are then', () => {
    fc.assert(
      fc.property(loads, fc.nat(), (proxies, seed) => {
        const fleet = new Fleet(proxies, chances(seed))
        const excess = fleet.replicas.reduce((sum, { proxies: own }) => sum + Math.max(0, own - fleet.mean), 0)
        for (let looks = 0; looks < 2000 && !(fleet.isSpread && looks > 20); looks++) {
          const before = fleet.replicas.map(({ proxies: own }) => own)
          const mean = fleet.mean
          for (const [index, count] of fleet.look().entries()) {
            expect(count).to.be.at.most(perLook)
            if (count > 0) expect((before[index] as number) - count).to.be.at.least(Math.floor(mean))
          }
        }
        expect(fleet.isSpread).to.equal(true)
        // Those that come back where they were are ended again.
        expect(fleet.ended).to.be.at.most(excess * 4 + 100)
        for (let looks = 0; looks < 100; looks++) fleet.look()
        const { ended } = fleet
        for (let looks = 0; looks < 500; looks++) fleet.look()
        expect(fleet.ended).to.equal(ended)
      }),
      { numRuns: runs(200) },
    )
  })

  it('are left alone through a rolling restart and until 30 s after it, and spread again then', () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 6 }), fc.integer({ min: 0, max: 1000 }), fc.nat(), (replicas, each, seed) => {
        const fleet = new Fleet(
          Array.from({ length: replicas }, () => each),
          chances(seed),
        )
        for (let looks = 0; looks < 10; looks++) fleet.look()
        for (let index = 0; index < replicas; index++) {
          fleet.restart(index)
          for (let looks = 0; looks < 5; looks++) expect(Math.max(...fleet.look())).to.equal(0)
        }
        for (let looks = 0; looks < 5; looks++) expect(Math.max(...fleet.look())).to.equal(0)
        for (let looks = 0; looks < 2000; looks++) fleet.look()
        expect(fleet.isSpread).to.equal(true)
      }),
      { numRuns: runs(100) },
    )
  })

  it('are left alone while a replica does not answer, is not ready, or is new', () => {
    const fleet = new Fleet([900, 0, 0], chances(1))
    for (let looks = 0; looks < 7; looks++) fleet.look()
    expect(fleet.ended).to.be.above(0)
    const before = fleet.ended
    const [, second] = fleet.replicas as [Replica, Replica]
    second.answersAt = fleet.now + 60_000
    for (let looks = 0; looks < 17; looks++) fleet.look()
    expect(fleet.ended).to.equal(before)
    fleet.look()
    fleet.look()
    expect(fleet.ended).to.be.above(before)
    const spread = new ProxySpread(perSecond)
    const own = { proxies: 900, isReady: true, most: 0 }
    const other = { name: 'a', load: { ...own, proxies: 0 } }
    expect([spread.next(own, [other], 0), spread.next(own, [other], spreadTimes.settledMs)]).to.deep.equal([0, perLook])
    expect(spread.next(own, [other, { ...other, name: 'b' }], spreadTimes.settledMs + 5000)).to.equal(0)
    expect(spread.next(own, [], spreadTimes.settledMs * 9)).to.equal(0)
  })

  it('are not sent to replicas that are full, and nowhere with a rate of 0', () => {
    const own = { proxies: 900, isReady: true, most: 0 }
    const full = [{ name: 'a', load: { proxies: 100, isReady: true, most: 100 } }]
    const counts = (spread: ProxySpread, others: typeof full) => [0, spreadTimes.settledMs].map((now) => spread.next(own, others, now))
    expect(counts(new ProxySpread(perSecond), full)).to.deep.equal([0, 0])
    expect(counts(new ProxySpread(0), [{ name: 'a', load: { proxies: 0, isReady: true, most: 0 } }])).to.deep.equal([0, 0])
  })
})
