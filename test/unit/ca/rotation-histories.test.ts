/** Rotations over random histories: agents that renew, connect, disconnect and stay away, restarts of the authority, checks at any time. */
import { expect } from 'chai'
import fc from 'fast-check'
import { type ClockRecord, confirmedAfter, judge, readClockRecord } from '../../../src/ca/clock-record.ts'
import { Ledger } from '../../../src/ca/ledger.ts'
import { ledgerLines, readLedger } from '../../../src/ca/ledger-record.ts'
import { advance, announce, chainExpiry, hasOldRootExpired, keptKeys, materialOf, stageOf, withFirstRoot, withUse } from '../../../src/ca/rotation.ts'
import { type AuthorityState, emptyState, readState, type Stage, stages } from '../../../src/ca/state.ts'
import { rootOf } from '../../harness/authorities.ts'
import '../../harness/seed.ts'
import { runs } from '../../harness/seed.ts'

const hour = 3_600_000
const life = 24 * hour
const rotations = 6

interface Agent {
  readonly identity: string
  readonly address: string
  /** The source address of the agent's calls as the authority sees it: differs from `address` behind NAT. */
  readonly seenAs: string
  leaf?: { root: string; notAfter: number }
  bundle: readonly string[]
  stream?: string
}

/** The authority and its agents. Roots are represented by their ids. */
class Model {
  now = 1_000 * hour
  state: AuthorityState = withFirstRoot(emptyState, rootOf('root 0').record, this.now)
  ledger = new Ledger(this.now, life)
  readonly seen: Stage[] = []
  readonly agents: readonly Agent[]
  #made = 0
  #streams = 0

  constructor(agents: readonly Agent[]) {
    this.agents = agents
  }

  renew(agent: Agent): void {
    const material = materialOf(this.state, this.now) ?? expect.fail('nothing in force')
    const notAfter = this.now + life
    agent.leaf = { root: material.workloads.id, notAfter }
    agent.bundle = material.bundle.map((pem) => this.#idOf(pem))
    const certificate = {
      identities: [agent.identity],
      serial: '1',
      root: agent.leaf.root,
      issuedAt: this.now,
      notAfter,
      peer: `${agent.seenAs}:4321`,
    }
    this.ledger.issued(certificate, this.state.epoch)
  }

  /** Presents the agent's certificate if the servers accept it, else a token. An agent without a valid certificate requests one. */
  connect(agent: Agent): void {
    const trusted = materialOf(this.state, this.now)?.trusted.map((pem) => this.#idOf(pem)) ?? []
    const presented = agent.leaf && agent.leaf.notAfter > this.now && trusted.includes(agent.leaf.root) ? agent.leaf : undefined
    agent.stream ??= `xds-writer/0/${this.#streams++}`
    this.ledger.connected(agent.stream, { node: `sidecar~${agent.address}~a.b~c`, identities: [agent.identity], presented }, this.state.epoch)
    if (!agent.leaf || agent.leaf.notAfter <= this.now) this.renew(agent)
  }

  leave(agent: Agent): void {
    if (agent.stream) this.ledger.disconnected(agent.stream)
    agent.stream = undefined
  }

  /** Restarts the authority with the persisted state only. Connected agents reconnect if `comeBack` is set. */
  restart(comeBack: boolean): void {
    this.state = readState(JSON.parse(JSON.stringify(this.state)))
    const { inOrder, head, holders } = readLedger([...ledgerLines(this.ledger, true)].join(''))
    this.ledger = new Ledger(this.now, life)
    this.ledger.restore(head, holders, inOrder, this.now)
    for (const agent of this.agents) {
      if (!agent.stream) continue
      agent.stream = undefined
      if (comeBack) this.connect(agent)
    }
  }

  /** The root that the next rotation goes to; undefined when there were enough. */
  nextRoot() {
    return this.#made < rotations ? rootOf(`root ${++this.#made}`).record : undefined
  }

  check(): void {
    this.ledger.sweep(this.now)
    if (this.state.stage === 'stable') {
      const next = this.nextRoot()
      if (!next) return
      this.state = announce(this.state, next, this.now)
    } else {
      if (this.ledger.blockers(stageOf(this.state), this.now).length > 0) return
      this.state = advance(this.state, this.now)
    }
    this.seen.push(this.state.stage)
  }

  pass(ms: number): void {
    this.now += ms
    // A connected agent renews before its certificate expires.
    for (const agent of this.agents) if (agent.stream && agent.leaf && agent.leaf.notAfter <= this.now) this.renew(agent)
  }

  /**
   * Returns the pairs of connected agents with valid certificates of which one does not trust the root of the other (cross certificates
   * aside).
   */
  refused(): string[] {
    const live = this.agents.filter(({ stream, leaf }) => stream && leaf && leaf.notAfter > this.now)
    return live.flatMap((one) =>
      live.filter((other) => !other.bundle.includes(one.leaf?.root ?? '')).map((other) => `${other.address} refuses ${one.address}`),
    )
  }

  #idOf(pem: string): string {
    return Array.from({ length: rotations + 1 }, (_, index) => rootOf(`root ${index}`).record).find(({ root }) => root === pem)?.id ?? 'unknown'
  }
}

/**
 * The authority on a machine whose wall clock is wrong at times: `now` of the model is the true time. Decides as the service does: nothing
 * irreversible while the clocks contradict each other.
 */
class MachineModel extends Model {
  error = 0
  #boot = 0
  #starts = 0
  #record: ClockRecord | undefined
  /** Ids of roots whose keys were removed. */
  readonly removed: string[] = []
  readonly #keys = new Set<string>()

  judged() {
    const judged = judge(this.#record, { wall: this.now + this.error, boot: this.#boot, bootId: String(this.#starts) })
    this.#record = judged.record
    return judged
  }

  override pass(ms: number): void {
    this.#boot += ms
    super.pass(ms)
  }

  /** The machine is off for a time, and its wall clock may be wrong when it starts. */
  reboot(offMs: number): void {
    this.judged()
    this.#starts++
    this.#boot = 0
    this.now += offMs
    this.restart(true)
  }

  override restart(comeBack: boolean): void {
    if (this.#record) this.#record = readClockRecord(JSON.parse(JSON.stringify(this.#record)))
    super.restart(comeBack)
  }

  override check(): void {
    const { verdict, believed } = this.judged()
    if (verdict !== 'agreed') return
    this.ledger.sweep(believed)
    for (;;) {
      const { stage } = this.state
      const isOver = hasOldRootExpired(this.state, believed)
      if (stage !== 'stable' && !isOver && this.ledger.blockers(stageOf(this.state), believed).length > 0) break
      const next = stage === 'stable' ? this.nextRoot() : undefined
      if (stage === 'stable' && !next) break
      this.state = next ? announce(this.state, next, believed) : advance(this.state, believed)
      this.seen.push(this.state.stage)
      if (!isOver) break
    }
    this.#noteKeys()
  }

  /** A connected agent whose clock is right shows its certificate. */
  show(agent: Agent): void {
    if (!agent.stream || !agent.leaf || agent.leaf.notAfter <= this.now || this.judged().verdict !== 'agreed') return
    this.state = withUse(this.state, agent.leaf.root)
    this.#noteKeys()
  }

  #noteKeys(): void {
    const kept = keptKeys(this.state)
    for (const id of this.#keys) if (!kept.includes(id)) this.removed.push(id)
    this.#keys.clear()
    for (const id of kept) this.#keys.add(id)
  }
}

type Step = { readonly act: 'renew' | 'connect' | 'leave' | 'check' | 'pass' | 'restart'; readonly which: number; readonly hours: number }

const steps = fc.array(
  fc.record<Step>({
    act: fc.constantFrom('renew', 'renew', 'connect', 'connect', 'leave', 'check', 'check', 'check', 'pass', 'restart'),
    which: fc.nat(5),
    hours: fc.integer({ min: 0, max: 15 }),
  }),
  { minLength: 20, maxLength: 200 },
)

const agents = (): Agent[] =>
  Array.from({ length: 6 }, (_, index) => ({
    // Three agents share one identity; one of them is behind NAT.
    identity: `spiffe://td/ns/a/sa/${index < 3 ? 'shared' : index}`,
    address: `10.0.0.${index}`,
    seenAs: index === 2 ? '192.168.0.1' : `10.0.0.${index}`,
    bundle: [],
  }))

describe('a root rotation over random histories', () => {
  it('leaves no connected agent with a certificate that a peer refuses and skips no stage, with restarts at any time', () => {
    let further = 0
    fc.assert(
      fc.property(steps, (history) => {
        const model = new Model(agents())
        for (const { act, which, hours } of history) {
          const agent = model.agents[which] as Agent
          if (act === 'pass') model.pass(hours * hour)
          else if (act === 'check') model.check()
          else if (act === 'restart') model.restart(hours < 10)
          else model[act](agent)
          expect(model.refused()).to.deep.equal([])
        }
        const order = [...stages.slice(1), 'stable']
        expect(model.seen).to.deep.equal(model.seen.map((_, index) => order[index % order.length]))
        further += model.seen.length
      }),
      { numRuns: runs(600) },
    )
    expect(further, 'stages that were gone through').to.be.greaterThan(300)
  })

  it('is carried no further, and loses no key, by a wall clock that jumps, forth and back, at starts and at run time, over kills', () => {
    let further = 0
    const act = fc.constantFrom('renew', 'connect', 'leave', 'check', 'check', 'pass', 'restart', 'show', 'jump', 'jump', 'right', 'reboot')
    const jumps = fc.array(
      fc.record({ act, which: fc.nat(5), hours: fc.integer({ min: 0, max: 15 }), days: fc.integer({ min: -5000, max: 5000 }) }),
      {
        minLength: 20,
        maxLength: 150,
      },
    )
    fc.assert(
      fc.property(jumps, (history) => {
        const model = new MachineModel(agents())
        model.now = chainExpiry(rootOf('root 0').record) - 29 * 24 * hour
        model.judged()
        let sinceReboot = Number.POSITIVE_INFINITY
        for (const { act, which, hours, days } of history) {
          const agent = model.agents[which] as Agent
          const before = { state: model.state, holders: model.ledger.size, stages: model.seen.length }
          if (act === 'pass') {
            // A clock that is wrong from a start on is put right within the hour (NTP), or else it would be believed.
            const ms = Math.min(hours * 60_000, model.error === 0 ? hours * hour : confirmedAfter - 60_000 - sinceReboot)
            model.pass(Math.max(0, ms))
            sinceReboot += Math.max(0, ms)
          } else if (act === 'jump') model.error = days * 24 * hour
          else if (act === 'right') model.error = 0
          else if (act === 'reboot') {
            model.error = days > 0 ? days * 24 * hour : 0
            model.reboot(hours * 60_000)
            sinceReboot = 0
          } else if (act === 'restart') model.restart(hours < 10)
          else if (model.error === 0 || act === 'leave' || act === 'check') model[act](agent)
          if (model.error === 0) {
            sinceReboot = Number.POSITIVE_INFINITY
            expect(model.refused()).to.deep.equal([])
            continue
          }
          expect(model.seen.length, `a stage began by ${act} while the clock was wrong`).to.equal(before.stages)
          expect(model.state.authorities).to.deep.equal(before.state.authorities)
          expect(model.removed).to.deep.equal(
            model.removed.filter((id) => !model.agents.some(({ leaf }) => leaf?.root === id && leaf.notAfter > model.now)),
          )
          if (act !== 'leave') expect(model.ledger.size, 'holders are forgotten').to.be.at.least(before.holders)
        }
        further += model.seen.length
      }),
      { numRuns: runs(600) },
    )
    expect(further, 'stages that were gone through').to.be.greaterThan(runs(200))
  })

  it('completes: an agent that never renews stops blocking when its certificate has expired', () => {
    fc.assert(
      fc.property(steps, (history) => {
        const model = new Model(agents())
        for (const { act, which } of history) if (act === 'connect' || act === 'leave') model[act](model.agents[which] as Agent)
        for (const agent of model.agents) model.leave(agent)
        for (let stage = 0; stage < 5; stage++) model.check()
        model.now += life
        for (let stage = 0; stage < 5; stage++) model.check()
        expect(model.seen.slice(0, 5)).to.deep.equal([...stages.slice(1), 'stable'])
      }),
      { numRuns: 20 },
    )
  })
})
