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
  leaf?: { serial: string; root: string; notAfter: number }
  bundle: readonly string[]
  /** The open stream, and the number of the replica that has it. */
  stream?: string
  replica?: number
}

/** The authority, of one or several replicas, and its agents. Roots are represented by their ids. */
class Model {
  now = 1_000 * hour
  state: AuthorityState = withFirstRoot(emptyState, rootOf('root 0').record, this.now)
  readonly ledgers: Ledger[]
  /** What replicas have stored. */
  #stored = ''
  readonly seen: Stage[] = []
  readonly agents: readonly Agent[]
  #made = 0
  #streams = 0
  #serials = 0

  constructor(agents: readonly Agent[], replicas = 1) {
    this.agents = agents
    this.ledgers = Array.from({ length: replicas }, () => new Ledger(this.now, life))
  }

  get ledger(): Ledger {
    return this.ledgers[0] as Ledger
  }

  /** Requests a certificate with the present one, if the servers accept it, else with a token. */
  renew(agent: Agent, replica = 0): void {
    this.request(agent, replica, this.#accepted(agent)?.serial)
  }

  request(agent: Agent, replica = 0, renews?: string): void {
    const material = materialOf(this.state, this.now) ?? expect.fail('nothing in force')
    const notAfter = this.now + life
    agent.leaf = { serial: String(this.#serials++), root: material.workloads.id, notAfter }
    agent.bundle = material.bundle.map((pem) => this.#idOf(pem))
    const certificate = {
      identities: [agent.identity],
      ...agent.leaf,
      issuedAt: this.now,
      peer: `${agent.seenAs}:4321`,
      renews,
    }
    this.ledgers[replica]?.issued(certificate, this.state.epoch)
  }

  /** Presents the agent's certificate if the servers accept it, else a token. An agent without a valid certificate requests one. */
  connect(agent: Agent, replica = 0): void {
    this.leave(agent)
    const stream = `xds-writer/${replica}/${this.#streams++}`
    Object.assign(agent, { stream, replica })
    const proxy = { node: `sidecar~${agent.address}~a.b~c`, identities: [agent.identity], presented: this.#accepted(agent) }
    this.ledgers[replica]?.connected(stream, proxy, stageOf(this.state))
    if (!agent.leaf || agent.leaf.notAfter <= this.now) this.request(agent, replica)
  }

  leave(agent: Agent): void {
    if (agent.stream) this.ledgers[agent.replica ?? 0]?.disconnected(agent.stream)
    agent.stream = undefined
  }

  /** The agent begins anew without what it kept. */
  lose(agent: Agent): void {
    this.leave(agent)
    agent.leaf = undefined
  }

  /** A replica takes over what others have stored, and stores it with its own. */
  exchange(replica: number, inOrder = false): void {
    const ledger = this.ledgers[replica] as Ledger
    if (this.#stored !== '') {
      const { head, holders } = readLedger(this.#stored)
      ledger.merge(head, holders)
    }
    this.#stored = [...ledgerLines(ledger, inOrder)].join('')
  }

  /** Restarts a replica with the persisted state only. Its agents reconnect if `comeBack` is set. */
  restart(comeBack: boolean, replica = 0): void {
    this.state = readState(JSON.parse(JSON.stringify(this.state)))
    const isAlone = this.ledgers.length === 1
    this.exchange(replica, isAlone)
    const { inOrder, head, holders } = readLedger(this.#stored)
    if (isAlone) this.#stored = ''
    const ledger = new Ledger(this.now, life)
    ledger.restore(head, holders, inOrder, this.now)
    this.ledgers[replica] = ledger
    for (const agent of this.agents) {
      if (!agent.stream || agent.replica !== replica) continue
      agent.stream = undefined
      if (comeBack) this.connect(agent, replica)
    }
  }

  /** The root that the next rotation goes to; undefined when there were enough. */
  nextRoot() {
    return this.#made < rotations ? rootOf(`root ${++this.#made}`).record : undefined
  }

  check(replica = 0): void {
    const ledger = this.ledgers[replica] as Ledger
    ledger.sweep(this.now)
    if (this.ledgers.length > 1) this.exchange(replica)
    if (this.state.stage === 'stable') {
      const next = this.nextRoot()
      if (!next) return
      this.state = announce(this.state, next, this.now)
    } else {
      if (ledger.blockers(stageOf(this.state), this.now).length > 0) return
      this.state = advance(this.state, this.now)
    }
    this.seen.push(this.state.stage)
    // No stage ends before all replicas had the time to store what they issued before it began (K12).
    if (this.ledgers.length > 1) for (const each of this.ledgers.keys()) this.exchange(each)
  }

  pass(ms: number): void {
    this.now += ms
    // A connected agent renews before its certificate expires.
    for (const agent of this.agents) if (agent.stream && agent.leaf && agent.leaf.notAfter <= this.now) this.request(agent, agent.replica)
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

  /** The certificate of an agent, if it is valid and the servers accept it. */
  #accepted({ leaf }: Agent) {
    const trusted = materialOf(this.state, this.now)?.trusted.map((pem) => this.#idOf(pem)) ?? []
    return leaf && leaf.notAfter > this.now && trusted.includes(leaf.root) ? leaf : undefined
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

  it('leaves nobody behind where machines of one identity share an address and ask any of three replicas, which start anew at times', () => {
    const gateway = { identity: 'spiffe://td/ns/a/sa/shared', address: '10.0.0.1', seenAs: '192.168.0.1' }
    const other = { identity: 'spiffe://td/ns/a/sa/other', address: '10.0.0.2', seenAs: '10.0.0.2' }
    const acts = ['renew', 'renew', 'renew', 'request', 'lose', 'connect', 'connect', 'leave', 'check', 'check', 'pass', 'restart'] as const
    const step = fc.record({ act: fc.constantFrom(...acts), which: fc.nat(4), replica: fc.nat(2), hours: fc.nat(15) })
    let further = 0
    fc.assert(
      fc.property(fc.array(step, { minLength: 50, maxLength: 300 }), (history) => {
        const behind = (): Agent => ({ ...gateway, bundle: [] })
        const model = new Model([behind(), behind(), behind(), behind(), { ...other, bundle: [] }], 3)
        for (const { act, which, replica, hours } of history) {
          const agent = model.agents[which] as Agent
          if (act === 'pass') model.pass(hours * hour)
          else if (act === 'check') model.check(replica)
          else if (act === 'restart') model.restart(hours < 10, replica)
          else model[act](agent, replica)
          expect(model.refused()).to.deep.equal([])
        }
        further += model.seen.length
      }),
      { numRuns: runs(600) },
    )
    expect(further, 'stages that were gone through').to.be.greaterThan(runs(300))
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
