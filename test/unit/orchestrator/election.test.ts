import { expect } from 'chai'
import fc from 'fast-check'
import { leaseName } from '../../../src/orchestrator/duties.ts'
import { Election, type ElectionAction, type ElectionInput, electionTimes, type SeenLease } from '../../../src/orchestrator/election.ts'
import { runs } from '../../harness/seed.ts'

const { leaseMs, renewMs, retryMs } = electionTimes

/** The Lease at the server. */
class Server {
  lease: SeenLease | undefined
  #version = 0

  /** Carries out a write of somebody. */
  write({ over, change }: Extract<ElectionAction, { type: 'write' }>, identity: string): ElectionInput {
    if (over !== this.lease?.version) return { type: 'conflict' }
    this.lease = { version: `${++this.#version}`, holder: change === 'release' ? '' : identity, durationMs: leaseMs }
    return { type: 'written', version: this.lease.version }
  }
}

/** A replica of which each answer is given by the test. */
class Replica {
  readonly identity: string
  readonly election: Election
  terms = 0
  yields: string[] = []
  actions: readonly ElectionAction[] = []

  constructor(identity: string, chance = () => 0) {
    this.identity = identity
    this.election = new Election(identity, chance)
  }

  tell(input: ElectionInput, now: number): readonly ElectionAction[] {
    this.actions = this.election.take(input, now)
    for (const action of this.actions)
      if (action.type === 'lead') this.terms++
      else if (action.type === 'yield') this.yields.push(action.reason)
    return this.actions
  }

  /** Begins, and reads and writes at the server at once. Returns the pause after it. */
  turn(server: Server, now: number, input: ElectionInput = { type: 'due' }): number {
    let actions = this.tell(input, now)
    for (;;) {
      const wait = actions.find((action) => action.type === 'wait')
      if (wait) return wait.ms
      const request = actions.find((action) => action.type === 'read' || action.type === 'write')
      if (!request) return Number.NaN
      actions = this.tell(request.type === 'read' ? { type: 'read', lease: server.lease } : server.write(request, this.identity), now)
    }
  }
}

const holderAt = (server: Server): string | undefined => server.lease?.holder

describe('the election of a leader', () => {
  it('makes the first one leader, who renews the lease, and leaves it to nobody else', () => {
    const [server, one, other] = [new Server(), new Replica('one'), new Replica('other')]
    expect(one.turn(server, 0)).to.equal(retryMs)
    expect([one.election.leadsAt(0), one.terms]).to.deep.equal([true, 1])
    for (let now = 0; now < 10 * leaseMs; now += retryMs) {
      one.turn(server, now)
      expect(other.turn(server, now)).to.be.at.most(retryMs)
      expect([one.election.leadsAt(now), other.election.leadsAt(now)]).to.deep.equal([true, false])
    }
    expect([one.terms, one.yields, other.terms]).to.deep.equal([1, [], 0])
  })

  it('lets another one lead when the lease has not changed for its time, and not before', () => {
    const [server, other] = [new Server(), new Replica('other')]
    new Replica('one').turn(server, 0)
    let now = 100_000
    const from = now
    for (let wait = 0; !other.election.leadsAt(now); now += wait) {
      expect(now - from, 'it waits no longer than the lease').to.be.below(leaseMs + 10)
      wait = other.turn(server, now)
      if (other.election.leadsAt(now)) expect(now - from).to.be.at.least(leaseMs)
      if (other.election.leadsAt(now)) break
    }
    expect(server.lease?.holder).to.equal('other')
  })

  it('ends a term when the lease was not renewed in time, even if nobody has told so', () => {
    const [server, one] = [new Server(), new Replica('one')]
    one.turn(server, 1000)
    expect([one.election.leadsAt(1000 + renewMs - 1), one.election.leadsAt(1000 + renewMs)]).to.deep.equal([true, false])
    one.tell({ type: 'due' }, 1000 + retryMs)
    one.tell({ type: 'failed' }, 1000 + retryMs + 4000)
    expect(one.yields).to.deep.equal([])
    one.tell({ type: 'check' }, 1000 + renewMs)
    expect(one.yields).to.deep.equal(['the lease could not be renewed for 15 s'])
    // It is the holder still, and begins another term when the server answers.
    one.turn(server, 20_000)
    expect([one.terms, one.election.leadsAt(20_000)]).to.deep.equal([2, true])
  })

  it('does not lead by an answer that comes after the term', () => {
    const [server, one] = [new Server(), new Replica('one')]
    one.tell({ type: 'due' }, 0)
    const [write] = one.tell({ type: 'read', lease: undefined }, 0)
    const answer = server.write(write as Extract<ElectionAction, { type: 'write' }>, 'one')
    const after = one.tell(answer, renewMs)
    expect([one.terms, one.election.leadsAt(renewMs)]).to.deep.equal([0, false])
    expect(after).to.deep.equal([{ type: 'write', over: '1', change: 'renew' }])
  })

  it('finds out what became of a write of which no answer came', () => {
    const [server, one] = [new Server(), new Replica('one')]
    one.tell({ type: 'due' }, 0)
    const [write] = one.tell({ type: 'read', lease: undefined }, 0)
    server.write(write as Extract<ElectionAction, { type: 'write' }>, 'one')
    const [pause] = one.tell({ type: 'failed' }, 4000)
    expect([pause?.type, one.election.leadsAt(4000)]).to.deep.equal(['wait', false])
    one.turn(server, 5000)
    expect([one.terms, one.election.leadsAt(5000 + renewMs - 1), server.lease?.version]).to.deep.equal([1, true, '2'])
  })

  it('asks less and less often where it may read and not write', () => {
    const one = new Replica('one')
    let now = 0
    const pauses = Array.from({ length: 5 }, () => {
      one.tell({ type: 'due' }, now)
      one.tell({ type: 'read', lease: undefined }, now)
      const [pause] = one.tell({ type: 'failed' }, now)
      const { ms } = pause as Extract<ElectionAction, { type: 'wait' }>
      now += ms
      return ms
    })
    const most = (failures: number) => Math.min(retryMs, 1000 * 2 ** failures)
    expect(pauses.every((ms, at) => ms <= most(at) && ms >= 0.8 * most(at))).to.equal(true)
  })

  it('gives the lease back at an orderly end, and another one takes it at once', () => {
    const [server, one, other] = [new Server(), new Replica('one'), new Replica('other')]
    one.turn(server, 0)
    other.turn(server, 100)
    one.tell({ type: 'stop', reason: 'the process ends' }, 200)
    expect([one.election.leadsAt(200), one.yields]).to.deep.equal([false, ['the process ends']])
    one.turn(server, 300, { type: 'release' })
    expect(server.lease?.holder).to.equal('')
    other.turn(server, 400)
    expect(other.election.leadsAt(400)).to.equal(true)
    expect(one.tell({ type: 'due' }, 500), 'it asks for nothing any more').to.deep.equal([])
  })

  it('looks at once when a watch tells that the lease was given back, also while it is reading it', () => {
    const [server, one, other, late] = [new Server(), new Replica('one'), new Replica('other'), new Replica('late')]
    one.turn(server, 0)
    other.turn(server, 100)
    late.tell({ type: 'due' }, 150)
    const before = server.lease
    one.tell({ type: 'stop', reason: 'the process ends' }, 200)
    one.turn(server, 300, { type: 'release' })
    expect(late.tell({ type: 'released' }, 310)).to.deep.equal([])
    expect(late.tell({ type: 'read', lease: before }, 320), 'what it has read was older').to.deep.equal([{ type: 'read' }])
    expect(other.turn(server, 330, { type: 'released' })).to.equal(retryMs)
    expect([other.terms, server.lease?.holder]).to.deep.equal([1, 'other'])
    expect(late.tell({ type: 'read', lease: server.lease }, 340).map(({ type }) => type)).to.deep.equal(['wait'])
    expect(
      [other, one].map((each) => each.tell({ type: 'released' }, 350)),
      'one leads, one has ended',
    ).to.deep.equal([[], []])
  })

  it('stands again after it gave the lease back, leads in another term, and is told of no term by the answer to its giving back', () => {
    const [server, one, other] = [new Server(), new Replica('one'), new Replica('other')]
    one.turn(server, 0)
    one.tell({ type: 'stop', reason: 'it is not ready' }, 100)
    expect([one.yields, one.tell({ type: 'due' }, 150), one.tell({ type: 'released' }, 160)]).to.deep.equal([['it is not ready'], [], []])
    const [release] = one.tell({ type: 'release' }, 200)
    expect(one.tell({ type: 'resume' }, 210), 'one request is under way at a time').to.deep.equal([])
    const answer = server.write(release as Extract<ElectionAction, { type: 'write' }>, 'one')
    expect([one.tell(answer, 220), one.election.leadsAt(220), one.terms]).to.deep.equal([[{ type: 'read' }], false, 1])
    other.turn(server, 230)
    expect(one.tell({ type: 'read', lease: server.lease }, 240).map(({ type }) => type)).to.deep.equal(['wait'])
    other.tell({ type: 'stop', reason: 'the process ends' }, 300)
    other.turn(server, 310, { type: 'release' })
    one.turn(server, 320, { type: 'released' })
    expect([one.terms, one.election.leadsAt(320), server.lease?.holder]).to.deep.equal([2, true, 'one'])
  })

  it('gives nothing back when it stands again', () => {
    const [server, one] = [new Server(), new Replica('one')]
    one.turn(server, 0)
    one.tell({ type: 'stop', reason: 'it is not ready' }, 100)
    one.turn(server, 200, { type: 'resume' })
    expect([one.tell({ type: 'release' }, 300), one.terms, one.election.leadsAt(300), holderAt(server)]).to.deep.equal([[], 2, true, 'one'])
  })

  it('gives nothing back that is not its own, and looks again when it may have changed', () => {
    const [server, one, other] = [new Server(), new Replica('one'), new Replica('other')]
    one.turn(server, 0)
    other.turn(server, 0)
    other.tell({ type: 'stop', reason: 'the process ends' }, 1)
    expect(other.tell({ type: 'release' }, 2)).to.deep.equal([])
    one.tell({ type: 'due' }, retryMs)
    one.tell({ type: 'stop', reason: 'the process ends' }, retryMs)
    one.tell({ type: 'failed' }, retryMs + 1)
    expect(one.tell({ type: 'release' }, retryMs + 2)).to.deep.equal([{ type: 'read' }])
    expect(one.tell({ type: 'read', lease: { version: '8', holder: 'third', durationMs: leaseMs } }, retryMs + 3)).to.deep.equal([])
  })

  it('gives the lease back although somebody has changed something else of it', () => {
    const [server, one] = [new Server(), new Replica('one')]
    one.turn(server, 0)
    server.lease = { ...(server.lease as SeenLease), version: '7' }
    one.tell({ type: 'stop', reason: 'the process ends' }, 1)
    one.turn(server, 2, { type: 'release' })
    expect(holderAt(server)).to.equal('')
  })

  it('respects the holder of a lease that was removed, and makes it anew when its time is over', () => {
    const [server, one, other] = [new Server(), new Replica('one'), new Replica('other')]
    one.turn(server, 0)
    other.turn(server, 10)
    server.lease = undefined
    other.turn(server, 5000)
    expect(other.election.leadsAt(5000)).to.equal(false)
    one.turn(server, retryMs)
    expect([one.election.leadsAt(retryMs), one.terms, holderAt(server)]).to.deep.equal([true, 1, 'one'])
    server.lease = undefined
    for (let now = 20_000; now <= 20_000 + leaseMs + 1; now += 1000) other.turn(server, now)
    expect(other.election.leadsAt(20_001 + leaseMs)).to.equal(true)
  })

  it('asks no faster and faster when the server contradicts itself', () => {
    const one = new Replica('one')
    let actions = one.tell({ type: 'due' }, 0)
    let requests = 0
    while (!actions.some(({ type }) => type === 'wait')) {
      expect(++requests).to.be.below(20)
      actions = one.tell(actions[0]?.type === 'read' ? { type: 'read', lease: undefined } : { type: 'conflict' }, 0)
    }
  })

  it('takes a time that another holder claims for at most two minutes', () => {
    const server = new Server()
    server.lease = { version: '9', holder: 'strange', durationMs: 1e12 }
    const one = new Replica('one')
    one.turn(server, 0)
    one.turn(server, 119_000)
    expect(one.terms).to.equal(0)
    one.turn(server, 120_000)
    expect(one.terms).to.equal(1)
  })

  it('names leases by duty and revision; what all revisions write has one leader', () => {
    expect([leaseName('ingress', ''), leaseName('ingress', 'default'), leaseName('ingress', 'canary')]).to.deep.equal([
      'mesh-leader',
      'mesh-leader',
      'mesh-leader-canary',
    ])
    expect(leaseName('namespaces', 'canary')).to.equal('mesh-namespace-controller-election')
  })
})

/** What happens to a replica in a simulation, in milliseconds of real time. */
interface Fate {
  /** Its clock: the time that it has at the start, and its rate. */
  readonly offset: number
  readonly rate: number
  readonly chance: number
  /** When it is paused, and for how long. */
  readonly pauses: readonly { readonly at: number; readonly ms: number }[]
  readonly stopsAt: number | undefined
  /** When it is told to lead no more, how long after that to give the Lease back, and how long after to stand again. */
  readonly breaks: readonly { readonly at: number; readonly releaseMs: number; readonly resumeMs: number }[]
  /** When it is told that the Lease may have been given back, rightly or not. */
  readonly hints: readonly number[]
}

/** What happens to one request: how long it takes to the server and back, and whether it or its answer is lost. */
interface Passage {
  readonly there: number
  readonly back: number
  readonly lost: 'no' | 'request' | 'answer'
}

/** A simulation of replicas, their clocks and the network between them and the server. */
class Simulation {
  readonly #server = new Server()
  readonly #fates: readonly Fate[]
  readonly #passages: readonly Passage[]
  readonly #replicas: Replica[]
  readonly #events: { at: number; run: () => void }[] = []
  /** The answers that each replica waits for: a later one replaces none. */
  readonly #asked: number[]
  readonly #waits: { at: number }[]
  #sent = 0
  now = 0

  readonly #wellFrom: number

  /** `wellFrom`: from when on the network loses and delays nothing. */
  constructor(fates: readonly Fate[], passages: readonly Passage[], wellFrom = Number.POSITIVE_INFINITY) {
    this.#wellFrom = wellFrom
    this.#fates = fates
    this.#passages = passages
    this.#replicas = fates.map(({ chance }, index) => new Replica(`r${index}`, () => chance))
    this.#asked = fates.map(() => 0)
    this.#waits = fates.map(() => ({ at: 0 }))
    for (const [index, { stopsAt, hints, breaks }] of fates.entries()) {
      this.#tell(index, { type: 'due' })
      for (const at of hints) this.#at(at, () => this.#tell(index, { type: 'released' }))
      for (const { at, releaseMs, resumeMs } of breaks) {
        this.#at(at, () => this.#tell(index, { type: 'stop', reason: 'it is not ready' }))
        this.#at(at + releaseMs, () => this.#tell(index, { type: 'release' }))
        this.#at(at + resumeMs, () => this.#tell(index, { type: 'resume' }))
      }
      if (stopsAt !== undefined) this.#at(stopsAt, () => this.stop(index))
    }
  }

  /** The replicas that believe to lead now: as each would be told, should it ask before a write. A paused one asks when it goes on. */
  get leaders(): string[] {
    return this.#replicas
      .filter((replica, index) => this.#resumesAt(index, this.now) === this.now && replica.election.leadsAt(this.#clock(index)))
      .map(({ identity }) => identity)
  }

  /** Goes on to the next event; false: nothing happens any more before `until`. */
  step(until: number): boolean {
    this.#events.sort((a, b) => a.at - b.at)
    const next = this.#events[0]
    if (!next || next.at > until) return false
    this.#events.shift()
    this.now = next.at
    next.run()
    return true
  }

  #clock(index: number): number {
    const { offset, rate } = this.#fates[index] as Fate
    return offset + this.now * rate
  }

  #at(at: number, run: () => void): void {
    this.#events.push({ at, run })
  }

  /** When a replica can do something that is due at a time. */
  #resumesAt(index: number, at: number): number {
    const pause = this.#fates[index]?.pauses.find((each) => at >= each.at && at < each.at + each.ms)
    return pause ? this.#resumesAt(index, pause.at + pause.ms) : at
  }

  /** Has a replica do something now, or when it goes on. */
  #when(index: number, run: () => void): void {
    const at = this.#resumesAt(index, this.now)
    if (at === this.now) run()
    else this.#at(at, () => this.#when(index, run))
  }

  #tell(index: number, input: ElectionInput): void {
    this.#when(index, () => {
      const replica = this.#replicas[index] as Replica
      for (const action of replica.tell(input, this.#clock(index))) {
        if (action.type === 'wait') this.#waitFor(index, action.ms)
        else if (action.type === 'read' || action.type === 'write') this.#send(index, action)
      }
    })
  }

  #waitFor(index: number, ms: number): void {
    const wait = { at: this.now + ms / (this.#fates[index] as Fate).rate }
    this.#waits[index] = wait
    this.#at(wait.at, () => {
      if (this.#waits[index] === wait) this.#tell(index, { type: 'due' })
    })
  }

  #send(index: number, action: Extract<ElectionAction, { type: 'read' | 'write' }>): void {
    const number = ++(this.#asked[index] as number)
    const passage = this.#passages[this.#sent++ % this.#passages.length] as Passage
    const { there, back, lost } = this.now < this.#wellFrom ? passage : { there: 5, back: 5, lost: 'no' }
    const answer = (input: ElectionInput) => {
      if (this.#asked[index] !== number) return
      this.#asked[index] = number + 1
      this.#tell(index, input)
    }
    const { identity } = this.#replicas[index] as Replica
    // The longest time of a call.
    this.#at(this.now + 4000 / (this.#fates[index] as Fate).rate, () => answer({ type: 'failed' }))
    if (lost === 'request') return
    this.#at(this.now + there, () => {
      const input: ElectionInput = action.type === 'read' ? { type: 'read', lease: this.#server.lease } : this.#server.write(action, identity)
      // The watches of the others.
      if (action.type === 'write' && action.change === 'release' && input.type === 'written' && this.now >= this.#wellFrom)
        for (const other of this.#fates.keys()) if (other !== index) this.#at(this.now + 5, () => this.#tell(other, { type: 'released' }))
      if (lost === 'no') this.#at(this.now + back, () => answer(input))
    })
  }

  /** Ends a replica in order. */
  stop(index: number): void {
    this.#tell(index, { type: 'stop', reason: 'the process ends' })
    this.#at(this.now + 5000, () => this.#tell(index, { type: 'release' }))
  }
}

describe('several replicas that stand for election', () => {
  const standstill = fc.record({
    at: fc.integer({ min: 0, max: 200_000 }),
    releaseMs: fc.integer({ min: 0, max: 20_000 }),
    resumeMs: fc.integer({ min: 0, max: 60_000 }),
  })
  const fate = (pauses: boolean): fc.Arbitrary<Fate> =>
    fc.record({
      offset: fc.integer({ min: 0, max: 10_000_000 }),
      rate: fc.double({ min: 0.85, max: 1.15, noNaN: true }),
      chance: fc.double({ min: 0, max: 0.999, noNaN: true }),
      pauses: pauses
        ? fc.array(fc.record({ at: fc.integer({ min: 0, max: 280_000 }), ms: fc.integer({ min: 1, max: 90_000 }) }), { maxLength: 4 })
        : fc.constant([]),
      stopsAt: fc.option(fc.integer({ min: 10_000, max: 280_000 }), { nil: undefined, freq: 3 }),
      hints: fc.array(fc.integer({ min: 0, max: 280_000 }), { maxLength: 6 }),
      // Without a pause of the machine nothing else happens either: these runs are about the time of one exchange.
      breaks: pauses ? fc.array(standstill, { maxLength: 3 }) : fc.constant([]),
    })
  const passage: fc.Arbitrary<Passage> = fc.record({
    there: fc.integer({ min: 0, max: 20_000 }).map((ms) => (ms < 12_000 ? ms / 100 : ms)),
    back: fc.integer({ min: 0, max: 20_000 }).map((ms) => (ms < 12_000 ? ms / 100 : ms)),
    lost: fc.constantFrom('no', 'no', 'no', 'no', 'request', 'answer'),
  })

  it('are never two that believe to lead, whatever their clocks, pauses and the network do', () => {
    let led = 0
    fc.assert(
      fc.property(fc.array(fate(true), { minLength: 2, maxLength: 4 }), fc.array(passage, { minLength: 1, maxLength: 40 }), (fates, passages) => {
        const simulation = new Simulation(fates, passages)
        while (simulation.step(300_000)) {
          const { leaders } = simulation
          led = Math.max(led, leaders.length)
          expect(leaders.length, `leaders at ${simulation.now}: ${leaders}`).to.be.at.most(1)
        }
      }),
      { numRuns: runs(3000) },
    )
    expect(led, 'some have led').to.equal(1)
  })

  it('have another leader within a tenth of a second after the lease was given back, when all is well', () => {
    fc.assert(
      fc.property(fc.array(fate(false), { minLength: 2, maxLength: 4 }), fc.integer({ min: 40_000, max: 90_000 }), (fates, stopsAt) => {
        const lasting = fates.map((each) => ({ ...each, stopsAt: undefined }))
        const simulation = new Simulation(lasting, [{ there: 5, back: 5, lost: 'no' }], 0)
        while (simulation.step(stopsAt)) if (simulation.now > 31_000) expect(simulation.leaders).to.have.length(1)
        const [former] = simulation.leaders
        const stopped = simulation.now
        simulation.stop(lasting.findIndex((_, index) => `r${index}` === former))
        // It gives the lease back 5 s later.
        while (simulation.step(stopped + 5000));
        expect(simulation.leaders).to.deep.equal([])
        while (simulation.step(stopped + 5100));
        expect(simulation.leaders).to.have.length(1)
        expect(simulation.leaders).not.to.include(former)
      }),
      { numRuns: runs(500) },
    )
  })

  it('have a leader again, and keep it, when all is well', () => {
    fc.assert(
      fc.property(fc.array(fate(true), { minLength: 2, maxLength: 4 }), fc.array(passage, { minLength: 1, maxLength: 40 }), (fates, passages) => {
        const [survivor, ...others] = fates as [Fate, ...Fate[]]
        const simulation = new Simulation([{ ...survivor, stopsAt: undefined, pauses: [] }, ...others], passages, 300_000)
        // The longest time of one pause after another, and of a lease that somebody took before the last of them.
        const calm = 280_000 + 4 * 90_000 + 60_000
        while (simulation.step(calm + 120_000)) if (simulation.now > calm) expect(simulation.leaders).to.have.length(1)
      }),
      { numRuns: runs(500) },
    )
  })
})
