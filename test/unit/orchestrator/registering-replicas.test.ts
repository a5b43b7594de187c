/** The registration of workloads by several replicas over one API server that is a model (docs/registration.md). */
import { expect } from 'chai'
import fc from 'fast-check'
import type { WorkloadEntryData } from '../../../protocols/messages/registration.ts'
import { LiveReplicas, presenceTimes } from '../../../src/orchestrator/live-replicas.ts'
import { entryData } from '../../../src/orchestrator/registered-entry.ts'
import { Registrations } from '../../../src/orchestrator/registrations.ts'
import { domain, graceMs, groupId, ModelServer, place, settings, vms, workload } from '../../harness/model-entries.ts'
import { runs } from '../../harness/seed.ts'

describe('replicas', () => {
  const lease = (name: string, version: string) => ({ name, version })

  it('are dead when their Lease has not changed for 20 s of this one’s time, or is gone', () => {
    const replicas = new LiveReplicas('me')
    const list = (at: number, keepers: string[], ...leases: ReturnType<typeof lease>[]) => replicas.listed(leases, keepers, at, at + 10)
    list(0, ['a', 'b'], lease('a', '1'), lease('b', '1'))
    for (let at = 5000; at < 20_000; at += 5000) expect(list(at, ['a', 'b'], lease('a', `${at}`), lease('b', '1'))).to.equal(false)
    expect(list(20_010, ['a', 'b'], lease('a', '9'), lease('b', '1'))).to.equal(true)
    expect([replicas.deadSince('a'), replicas.deadSince('b')]).to.deep.equal([undefined, 20_020])
    // It was only slow.
    expect(list(25_000, ['a', 'b'], lease('a', '10'), lease('b', '2'))).to.equal(true)
    expect(list(30_000, ['a', 'b'], lease('a', '11'))).to.equal(true)
    expect(replicas.deadSince('b')).to.equal(30_010)
    expect(list(35_000, ['a', 'me'], lease('a', '12'))).to.equal(true)
    expect([replicas.deadSince('b'), replicas.deadSince('me')]).to.deep.equal([undefined, undefined])
  })

  it('are not dead because nobody could renew or list for an hour', () => {
    const replicas = new LiveReplicas('me')
    replicas.listed([lease('a', '1')], ['a'], 0, 10)
    expect(replicas.listed([lease('a', '1')], ['a'], 3_600_000, 3_600_010)).to.equal(false)
    expect(replicas.deadSince('a')).to.equal(undefined)
  })

  it('that are dead and keep nothing lose their Lease a minute later', () => {
    const replicas = new LiveReplicas('me')
    for (let at = 0; at <= 100_000; at += 5000) replicas.listed([lease('a', '1')], ['a'], at, at + 10)
    expect(replicas.removable(new Set(['a']), 100_010)).to.deep.equal([])
    expect(replicas.removable(new Set(), 100_010)).to.deep.equal([lease('a', '1')])
  })
})

/** After so long a replica has taken over what is connected to it; and has seen, after its watch and calls were in order again, what it had missed. */
const [keepsAfterMs, fitAfterMs] = [2000, 60_000]

/** A replica in a simulation: its watch may be late, its calls may be lost, and its wall clock may jump. */
class SimulatedReplica {
  readonly registrations: Registrations
  readonly connections = new Map<number, string>()
  readonly #connectedAt = new Map<number, number>()
  readonly name: string
  readonly #server: ModelServer
  readonly #leases: Map<string, number>
  #events: { readonly at: number; readonly name: string; readonly entry: WorkloadEntryData | undefined }[] = []
  readonly #unwatch: () => void
  #count = 0
  #presentAt: number
  lag = 0
  lost: ('before' | 'after')[] = []
  lostPresence = 0
  /** Until when the process is stopped (SIGSTOP), and until when the API server answers nobody. */
  stoppedUntil = 0
  answersFrom = 0
  /** When its watch was last late, or one of its calls was lost. */
  troubledAt = Number.NEGATIVE_INFINITY
  wall = 0

  constructor(name: string, server: ModelServer, leases: Map<string, number>, now: number) {
    this.name = name
    this.#server = server
    this.#leases = leases
    this.#presentAt = now
    this.registrations = new Registrations(settings(name), now)
    const tell = (entry: string, data: WorkloadEntryData | undefined) => void this.#events.push({ at: this.#time, name: entry, entry: data })
    server.watchers.add(tell)
    this.#unwatch = () => server.watchers.delete(tell)
    if (vms) this.registrations.setGroup(groupId, vms, now)
    for (const entry of server.objects.keys()) this.#see(entry, server.entry(entry), now)
    this.registrations.knowsObjects(now)
    this.registrations.knowsConnections()
  }

  #time = 0

  connect(machine: number, now: number): void {
    if (this.connections.has(machine) || now < this.stoppedUntil) return
    const id = `c${++this.#count}`
    this.connections.set(machine, id)
    this.#connectedAt.set(machine, now)
    this.registrations.connected('w', id, workload(`10.0.0.${machine + 1}`), undefined, now)
  }

  disconnect(machine: number, now: number): void {
    if (now < this.stoppedUntil) return
    const id = this.connections.get(machine)
    this.connections.delete(machine)
    if (id !== undefined) this.registrations.disconnected('w', id, now)
  }

  /** Whether a machine has been connected for so long, while watch and calls were in order for so long, that the replica keeps its entry or knows who does. */
  mustHave(machine: number, now: number): boolean {
    return this.connections.has(machine) && now - (this.#connectedAt.get(machine) ?? now) >= keepsAfterMs && now - this.troubledAt >= fitAfterMs
  }

  end(): void {
    this.#unwatch()
  }

  tick(now: number): void {
    this.#time = now
    if (this.lag > 0 || this.lost.length > 0 || this.lostPresence > 0 || now < this.answersFrom || now < this.stoppedUntil) this.troubledAt = now
    if (now < this.stoppedUntil) return
    const isAnswered = now >= this.answersFrom
    const due = isAnswered ? this.#events.filter(({ at }) => at + this.lag <= now) : []
    this.#events = this.#events.filter((event) => !due.includes(event))
    for (const { name, entry } of due) this.#see(name, entry, now)
    if (now >= this.#presentAt) this.#present(now, isAnswered)
    for (;;) {
      const call = this.registrations.next(now, new Date(now + this.wall).toISOString())
      if (!call) return
      const lost = isAnswered ? this.lost.shift() : 'before'
      const outcome = lost === 'before' ? undefined : this.#server.do(call.order)
      this.registrations.answered(call, lost || !outcome ? { outcome: 'failed', reason: 'lost', concerns: 'all' } : outcome, now, 0.5)
    }
  }

  #see(name: string, entry: WorkloadEntryData | undefined, now: number): void {
    this.registrations.setEntry(`workloadentries.networking.mesh.io shop/${name}`, entry, now)
  }

  #present(now: number, isAnswered: boolean): void {
    this.#presentAt = now + presenceTimes.everyMs
    if (!isAnswered) return this.registrations.unlisted(now)
    if (this.lostPresence > 0) {
      this.lostPresence--
      return this.registrations.unlisted(now)
    }
    const { keepers } = this.registrations
    for (const { name } of this.registrations.replicas.removable(keepers, now)) this.#leases.delete(name)
    this.#leases.set(this.name, (this.#leases.get(this.name) ?? 0) + 1)
    this.registrations.listed(
      [...this.#leases].map(([name, version]) => ({ name, version: `${version}` })),
      keepers,
      now,
      now,
    )
  }
}

describe('the registration of workloads by three replicas', () => {
  const [tickMs, machines] = [250, 2]

  class Simulation {
    readonly server = new ModelServer()
    readonly leases = new Map<string, number>()
    readonly replicas: (SimulatedReplica | undefined)[]
    now = 0
    #starts = 0
    #answersFrom = 0

    constructor() {
      this.replicas = [0, 1, 2].map(() => this.#made())
      this.server.deleted = (name, object) => {
        const entry = entryData(object as never, place, domain)
        const keeper = this.replicas.find((each) => each?.name === entry?.controller)
        // One that is stopped for longer is taken for dead (R9).
        const isConnected = keeper?.connections.has(Number(name.split('.').at(-1)) - 1) && this.now - keeper.stoppedUntil > presenceTimes.everyMs
        expect(isConnected && entry?.disconnectedAt === '', `${name} deleted while ${keeper?.name} keeps it`).to.not.equal(true)
        // Whoever keeps it: the workload of an entry that another replica has left is connected still.
        const having = this.replicas.filter((each) => each?.mustHave(Number(name.split('.').at(-1)) - 1, this.now)).map((each) => each?.name)
        expect(having, `${name} of ${entry?.controller} deleted while its workload is connected to others`).to.deep.equal([])
      }
    }

    #made = () => Object.assign(new SimulatedReplica(`r${++this.#starts}`, this.server, this.leases, this.now), { answersFrom: this.#answersFrom })

    /** The API server answers nobody for a time. */
    unanswered(ms: number): void {
      this.#answersFrom = this.now + ms
      for (const replica of this.replicas) if (replica) replica.answersFrom = this.#answersFrom
    }

    start(index: number): void {
      this.replicas[index] ??= this.#made()
    }

    kill(index: number): void {
      this.replicas[index]?.end()
      this.replicas[index] = undefined
    }

    pass(ms: number): void {
      for (const end = this.now + ms; this.now < end; ) {
        this.now += tickMs
        for (const replica of this.replicas) replica?.tick(this.now)
      }
    }

    /** What is so after all calls succeed again for long enough. */
    settle(): void {
      this.#answersFrom = 0
      if (this.replicas.every((replica) => !replica)) this.start(0)
      for (const replica of this.replicas) if (replica) Object.assign(replica, { lag: 0, lost: [], lostPresence: 0, stoppedUntil: 0, answersFrom: 0 })
      this.pass(presenceTimes.deadMs + 5 * presenceTimes.everyMs + graceMs + 80_000)
      for (let machine = 0; machine < machines; machine++) {
        const having = this.replicas.filter((replica) => replica?.connections.has(machine)).map((replica) => replica?.name)
        const entry = this.server.entry(`vms-10.0.0.${machine + 1}`)
        if (having.length === 0) expect(entry, 'left for ever').to.equal(undefined)
        else expect([having.includes(entry?.controller), entry?.disconnectedAt]).to.deep.equal([true, ''])
      }
      const live = this.replicas.flatMap((replica) => replica?.name ?? [])
      this.pass(presenceTimes.keptMs + 3 * presenceTimes.everyMs)
      expect([...this.leases.keys()].sort()).to.deep.equal(live.sort())
    }
  }

  it('moves an entry with its workload without marking or deleting it, and cleans up after a killed replica', () => {
    const simulation = new Simulation()
    const [one, two] = simulation.replicas as [SimulatedReplica, SimulatedReplica]
    one.connect(0, 0)
    simulation.pass(1000)
    one.disconnect(0, simulation.now)
    simulation.pass(500)
    two.connect(0, simulation.now)
    simulation.pass(60_000)
    expect(simulation.server.log).to.deep.equal(['create vms-10.0.0.1', 'patch vms-10.0.0.1'])
    simulation.kill(1)
    simulation.pass(500)
    one.connect(0, simulation.now)
    simulation.pass(60_000)
    expect(simulation.server.log.slice(2)).to.deep.equal(['patch vms-10.0.0.1'])
    simulation.kill(0)
    // It may have renewed its Lease 5 s before.
    simulation.pass(presenceTimes.deadMs - presenceTimes.everyMs + 59_000)
    expect(simulation.server.log).to.have.length(3)
    simulation.pass(20_000)
    expect(simulation.server.log.slice(3)).to.deep.equal(['delete vms-10.0.0.1'])
  })

  it('keeps an entry until the agent has noticed that its replica has stopped without a word, and moves it then; the replica changes nothing when it goes on', () => {
    // Replicas look at Leases at different times after the stop.
    for (let shift = 0; shift < presenceTimes.everyMs; shift += 500) {
      const simulation = new Simulation()
      const [one, two] = simulation.replicas as [SimulatedReplica, SimulatedReplica]
      one.connect(0, 0)
      simulation.pass(60_000 + shift)
      one.stoppedUntil = simulation.now + 100_000
      // It hears nothing for 40 s, and may first try the stopped one again (docs/agent.md, X5 and X8).
      simulation.pass(40_000 + 10_000)
      two.connect(0, simulation.now)
      simulation.pass(120_000)
      expect(simulation.server.log).to.deep.equal(['create vms-10.0.0.1', 'patch vms-10.0.0.1'])
      expect(simulation.server.entry('vms-10.0.0.1')).to.include({ controller: two.name, disconnectedAt: '' })
    }
  })

  for (const end of ['loses its connection', 'is killed'] as const)
    it(`takes an entry again, and deletes it at no time, when the other replica to which its workload was connected last ${end}`, () => {
      const simulation = new Simulation()
      const [one, two] = simulation.replicas as [SimulatedReplica, SimulatedReplica]
      one.connect(0, 0)
      simulation.pass(1000)
      two.connect(0, simulation.now)
      simulation.pass(1000)
      expect(simulation.server.entry('vms-10.0.0.1')?.controller).to.equal(two.name)
      if (end === 'is killed') simulation.kill(1)
      else two.disconnect(0, simulation.now)
      simulation.pass(presenceTimes.deadMs + 2 * presenceTimes.everyMs + graceMs + 10_000)
      expect(simulation.server.entry('vms-10.0.0.1')).to.include({ controller: one.name, disconnectedAt: '' })
      expect(simulation.server.log.filter((call) => call.startsWith('delete'))).to.deep.equal([])
    })

  for (const marker of ['lives', 'is killed'] as const)
    for (const outageMs of [9000, 31_000, 600_000])
      it(`deletes no entry after an outage of ${outageMs / 1000} s whose workload has connected elsewhere meanwhile: its marker ${marker}`, () => {
        // The others try again at different times after the outage.
        for (let shift = 0; shift < 20_000; shift += 1750) {
          const simulation = new Simulation()
          const [one, two] = simulation.replicas as [SimulatedReplica, SimulatedReplica]
          one.connect(0, 0)
          simulation.pass(6000)
          one.disconnect(0, simulation.now)
          simulation.pass(2000)
          expect(simulation.server.entry('vms-10.0.0.1')?.disconnectedAt).not.to.equal('')
          simulation.unanswered(outageMs + shift)
          if (marker === 'is killed') simulation.kill(0)
          simulation.pass(1000)
          two.connect(0, simulation.now)
          simulation.pass(outageMs + shift + 90_000)
          expect(simulation.server.entry('vms-10.0.0.1')).to.include({ controller: two.name, disconnectedAt: '' })
          expect(simulation.server.log.filter((call) => call.startsWith('delete'))).to.deep.equal([])
        }
      })

  it('deletes no entry of a workload that has connected elsewhere during an outage, by a replica that starts after it', () => {
    for (let shift = 0; shift < 20_000; shift += 1750) {
      const simulation = new Simulation()
      const [one, two] = simulation.replicas as [SimulatedReplica, SimulatedReplica]
      one.connect(0, 0)
      simulation.pass(6000)
      one.disconnect(0, simulation.now)
      simulation.pass(2000)
      simulation.kill(2)
      simulation.unanswered(600_000 + shift)
      simulation.kill(0)
      simulation.pass(1000)
      two.connect(0, simulation.now)
      simulation.pass(599_000 + shift)
      simulation.start(2)
      simulation.pass(90_000)
      expect(simulation.server.entry('vms-10.0.0.1')).to.include({ controller: two.name, disconnectedAt: '' })
      expect(simulation.server.log.filter((call) => call.startsWith('delete'))).to.deep.equal([])
    }
  })

  it('has the entry of a workload that has connected elsewhere again soon after an outage that is shorter than the time between two lists', () => {
    for (let outageMs = 500; outageMs < presenceTimes.everyMs; outageMs += 500)
      for (let before = 0; before < graceMs; before += 500) {
        const simulation = new Simulation()
        const [one, two] = simulation.replicas as [SimulatedReplica, SimulatedReplica]
        one.connect(0, 0)
        simulation.pass(40_000)
        one.disconnect(0, simulation.now)
        simulation.pass(1500 + before)
        simulation.unanswered(outageMs)
        simulation.pass(250)
        two.connect(0, simulation.now)
        simulation.pass(outageMs + 6000)
        const what = `outage of ${outageMs} ms, ${before} ms after the mark`
        expect(simulation.server.entry('vms-10.0.0.1'), what).to.include({ controller: two.name, disconnectedAt: '' })
        simulation.pass(90_000)
        expect(simulation.server.entry('vms-10.0.0.1'), what).to.include({ controller: two.name, disconnectedAt: '' })
      }
  })

  it('leaves no entry for ever and deletes none whose workload is connected, whatever happens', () => {
    const [replica, machine] = [fc.nat(2), fc.nat(machines - 1)]
    const change = fc.oneof(
      { weight: 4, arbitrary: fc.record({ type: fc.constant('connect' as const), replica, machine }) },
      { weight: 3, arbitrary: fc.record({ type: fc.constant('disconnect' as const), replica, machine }) },
      { weight: 4, arbitrary: fc.record({ type: fc.constant('pass' as const), ms: fc.constantFrom(250, 1000, 3000, 11_000, 30_000) }) },
      fc.record({ type: fc.constant('kill' as const), replica }),
      fc.record({ type: fc.constant('start' as const), replica }),
      fc.record({
        type: fc.constant('lose' as const),
        replica,
        calls: fc.array(fc.constantFrom('before' as const, 'after' as const), { maxLength: 4 }),
      }),
      fc.record({ type: fc.constant('unseen' as const), replica }),
      fc.record({ type: fc.constant('lag' as const), replica, ms: fc.constantFrom(0, 250, 2000) }),
      fc.record({ type: fc.constant('stop' as const), replica, ms: fc.constantFrom(3000, 30_000, 60_000) }),
      fc.record({ type: fc.constant('outage' as const), ms: fc.constantFrom(3000, 30_000, 3_600_000) }),
      fc.record({ type: fc.constant('jump' as const), replica, ms: fc.constantFrom(-86_400_000, 86_400_000) }),
    )
    fc.assert(
      fc.property(fc.array(change, { maxLength: 50 }), (changes) => {
        const simulation = new Simulation()
        for (const each of changes) {
          if (each.type === 'pass') {
            simulation.pass(each.ms)
            continue
          }
          if (each.type === 'outage') {
            simulation.unanswered(each.ms)
            // The longest one is over, with some of it left.
            if (each.ms > 60_000) simulation.now += each.ms - 30_000
            continue
          }
          const of = simulation.replicas[each.replica]
          if (each.type === 'start') simulation.start(each.replica)
          else if (each.type === 'kill') simulation.kill(each.replica)
          else if (!of) continue
          else if (each.type === 'connect') of.connect(each.machine, simulation.now)
          else if (each.type === 'disconnect') of.disconnect(each.machine, simulation.now)
          else if (each.type === 'lose') of.lost.push(...each.calls)
          else if (each.type === 'unseen') of.lostPresence = 1
          else if (each.type === 'stop') of.stoppedUntil = simulation.now + each.ms
          else if (each.type === 'lag') of.lag = each.ms
          else of.wall += each.ms
        }
        simulation.settle()
      }),
      { numRuns: runs(1000) },
    )
  })
})
