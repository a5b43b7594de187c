/**
 * The exchange of the root over replicas that share their state, with a virtual clock: the one that takes the next stage is killed at each moment of each
 * stage, and another goes on (docs/certificates.md, R1 to R14, K10, K12).
 */
import { expect } from 'chai'
import { RootRotation } from '../../actors/discovery/authority/root-rotation.ts'
import { type CaStorage, StaleVersionError, StorageAwayError } from '../../actors/discovery/authority/storage.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import type { StreamsElsewhere } from '../../protocols/messages/replicas.ts'
import { type AuthorityState, emptyState, type Stage, stages } from '../../src/ca/state.ts'
import { rootOf, signedBy } from '../harness/authorities.ts'
import { until } from '../harness/until.ts'

const day = 86_400_000
const settleMs = 17_000

/** What replicas share. */
class Shared {
  state: AuthorityState = emptyState
  version = 0
  readonly notes = new Map<string, string>()
  readonly followers = new Set<() => void>()
  readonly replicas: Replica[] = []
  now = Date.now()
  made = 0
  serials = 0
  /** The stages as they were written. */
  readonly written: Stage[] = []
}

/** When a replica is killed: before or after the state is written, or before or after the ledger is. */
const moments = ['before the state', 'after the state', 'before the ledger', 'after the ledger'] as const
type Moment = (typeof moments)[number]

/** A replica, which is dead from the moment on at which it is killed: nothing that it writes then arrives. */
class Replica {
  killedAt: Moment | undefined
  isDead = false
  /** Whether notes can be written. */
  notesFail = false
  readonly #shared: Shared
  rotation!: RootRotation
  /** The notes as this replica last wrote them. */
  readonly #wrote = new Map<string, string>()

  constructor(shared: Shared) {
    this.#shared = shared
  }

  static async start(shared: Shared): Promise<Replica> {
    const replica = new Replica(shared)
    replica.rotation = await RootRotation.open({
      storage: replica.#storage(),
      settings: { checkInterval: 0, jitter: false, gracePercent: 20, workloadLife: day },
      async makeRoot(before) {
        const root = rootOf(`root ${shared.made++}`)
        const signer =
          before && Array.from({ length: shared.made }, (_, index) => rootOf(`root ${index}`)).find(({ record }) => record.id === before.id)
        return { ...root.record, cross: signer ? signedBy(signer, root) : '' }
      },
      changed: () => undefined,
      elsewhere: async () => replica.#elsewhere(),
      clocks: () => ({ wall: shared.now, boot: shared.now, bootId: 'boot' }),
      random: () => 0,
      log: () => ({ debug() {}, info() {}, warn() {}, error() {} }),
      metrics: new MetricRegistry(),
    })
    await replica.rotation.useOwn()
    shared.replicas.push(replica)
    return replica
  }

  #elsewhere(): StreamsElsewhere {
    const others = this.#shared.replicas.filter((other) => other !== this)
    const replicas = others.map(({ isDead }, index) => ({ name: String(index), answered: !isDead, reason: isDead ? 'it is dead' : '' }))
    return { streams: others.filter(({ isDead }) => !isDead).flatMap(({ rotation }) => rotation.ledger.streams()), replicas }
  }

  #reach(moment?: Moment): void {
    if (moment !== undefined && moment === this.killedAt) this.isDead = true
    if (this.isDead) throw new StorageAwayError('the replica is dead')
  }

  #storage(): CaStorage {
    const shared = this.#shared
    return {
      described: 'shared',
      ledgerDelay: { least: day, each: 0 },
      settleMs,
      keys: { kind: 'tasks' },
      follow: (changed) => void shared.followers.add(() => (this.isDead ? undefined : changed())),
      read: async () => {
        this.#reach()
        return { state: shared.state, version: String(shared.version) }
      },
      write: async (state, version) => {
        this.#reach('before the state')
        if (version !== String(shared.version)) throw new StaleVersionError('another one was faster')
        if (state.stage !== shared.state.stage) shared.written.push(state.stage)
        shared.state = state
        shared.version++
        for (const follower of shared.followers) follower()
        this.#reach('after the state')
        return String(shared.version)
      },
      noteAt: (name) => `the note ${name}`,
      readNote: async (name) => {
        this.#reach()
        return shared.notes.get(name)
      },
      writeNote: async (name, pieces, others) => {
        const isLedger = name === 'ledger'
        this.#reach(isLedger ? 'before the ledger' : undefined)
        if (this.notesFail && isLedger) throw new StorageAwayError('notes cannot be written')
        const present = shared.notes.get(name)
        if (present !== undefined && present !== this.#wrote.get(name)) others?.(present)
        const text = [...pieces].join('')
        shared.notes.set(name, text)
        this.#wrote.set(name, text)
        this.#reach(isLedger ? 'after the ledger' : undefined)
      },
      keepKeys: async () => this.#reach(),
      close: async () => undefined,
    }
  }

  /** Issues a certificate behind a gateway, with a token or in place of the one that is renewed. Returns its serial number. */
  issue(identity: string, renews?: string): string {
    const root = this.rotation.material()?.workloads.id ?? ''
    const serial = String(this.#shared.serials++)
    const { now } = this.#shared
    this.rotation.issued({ identities: [identity], serial, root, issuedAt: now, notAfter: now + day, peer: '10.0.0.1:4000', renews })
    return serial
  }
}

const holder = 'spiffe://td/ns/a/sa/b'
const refusal = (answer: object) => ('refused' in answer ? String(answer.refused) : JSON.stringify(answer))

describe('the exchange of the root over replicas', () => {
  /** Begins an exchange and takes it to a stage; no certificate was issued. */
  const at = async (stage: Stage, shared: Shared): Promise<void> => {
    const one = await Replica.start(shared)
    while (shared.state.stage !== stage) {
      shared.now += settleMs + 1
      expect(await one.rotation.advance(false)).to.have.property('went')
    }
    shared.now += settleMs + 1
    one.isDead = true
  }

  for (const stage of stages)
    for (const moment of moments)
      it(`loses and skips nothing when the replica that ends stage ${stage} is killed ${moment} is written`, async () => {
        const shared = new Shared()
        await at(stage, shared)
        const before = shared.written.length
        const [one, two] = [await Replica.start(shared), await Replica.start(shared)]
        shared.now += settleMs + 1
        one.killedAt = moment
        await one.rotation.advance(false).catch(() => undefined)
        // Without others that could have issued something the ledger is not exchanged.
        if (stage !== 'stable' || !moment.includes('ledger')) expect(one.isDead, 'killed').to.equal(true)
        const position = stages.indexOf(shared.state.stage)
        const [here, next] = [stages.indexOf(stage), (stages.indexOf(stage) + 1) % stages.length]
        expect([here, next]).to.include(position)
        await until('the stage at the other replica', () => two.rotation.state.epoch === shared.state.epoch)
        // The other replica goes on to the end, one stage after the other.
        while (shared.state.stage !== 'stable' || shared.written.length === before) {
          shared.now += settleMs + 1
          expect(await two.rotation.advance(false), `from ${shared.state.stage}`).to.have.property('went')
        }
        for (const [index, written] of shared.written.entries()) expect(written).to.equal(stages[(index + 1) % stages.length], shared.written.join())
        expect(two.rotation.state.authorities).to.have.length(1)
      })

  it('waits for the holder of a certificate that a replica issued which was killed since, as soon as that has stored it', async () => {
    const shared = new Shared()
    const [one, two] = [await Replica.start(shared), await Replica.start(shared)]
    one.issue(holder)
    expect(await one.rotation.advance(false)).to.include({ went: 'announce' })
    shared.now += settleMs + 1
    // It stores its ledger with the attempt.
    await one.rotation.advance(false)
    one.isDead = true
    await until('the stage at the other replica', () => two.rotation.state.stage === shared.state.stage)
    shared.now += settleMs + 1
    const answer = await two.rotation.advance(false)
    expect(refusal(answer)).to.contain('1 holder of certificates is not ready')
  })

  it('is held up by the same holders with the same proxies, whichever replica is asked and whichever the proxies are connected to', async () => {
    const shared = new Shared()
    const replicas = [await Replica.start(shared), await Replica.start(shared), await Replica.start(shared)] as const
    const [one, two, three] = replicas
    const root = one.rotation.material()?.workloads.id ?? ''
    const node = (index: number) => `sidecar~10.0.0.${index}~x.b~b.svc`
    for (const [index, replica] of replicas.entries()) {
      const presented = { serial: replica.issue(`${holder}${index}`), root, notAfter: shared.now + day }
      replica.rotation.connected('w 1', { node: node(index), identities: [`${holder}${index}`], presented })
      replica.rotation.connected('w 2', { node: node(index + 10), identities: [] })
    }
    expect(await one.rotation.advance(false)).to.include({ went: 'announce' })
    shared.now += settleMs + 1
    for (const { rotation } of replicas) await until('the stage', () => rotation.state.stage === 'announce')
    for (const { rotation } of replicas) await rotation.advance(false)
    const asked = async ({ rotation }: Replica) => {
      await rotation.refresh()
      const { blockers, plaintext } = rotation.status()
      return { proxies: blockers.map(({ proxies }) => proxies), plaintext: [...plaintext].sort() }
    }
    const all = { proxies: [[node(0)], [node(1)], [node(2)]], plaintext: [node(10), node(11), node(12)] }
    for (const replica of replicas) expect(await asked(replica)).to.deep.equal(all)
    const answer = await two.rotation.advance(false)
    expect('status' in answer && answer.status.blockers.map(({ proxies }) => proxies)).to.deep.equal(all.proxies)
    three.isDead = true
    expect((await asked(one)).proxies).to.deep.equal([[node(0)], [node(1)], []])
    expect(one.rotation.replicas.map(({ answered }) => answered)).to.deep.equal([true, false])
    expect(one.rotation.status().blockers[2]?.reason).to.contain('is not known to be connected from')
  })

  it('waits for each machine behind one address, whichever replica renews, and all replicas name the same', async () => {
    const shared = new Shared()
    const replicas = [await Replica.start(shared), await Replica.start(shared), await Replica.start(shared)] as const
    const [one, two, three] = replicas
    const certificates = [one.issue(holder), two.issue(holder), three.issue(holder)]
    expect(await one.rotation.advance(false)).to.include({ went: 'announce' })
    for (const { rotation } of replicas) await until('the stage', () => rotation.state.stage === 'announce')
    shared.now += settleMs + 1
    const advance = async (by: Replica) => {
      // Each replica stores its ledger with an attempt, and takes over those of the others when it is asked.
      for (const { rotation } of replicas) await rotation.advance(false)
      for (const { rotation } of replicas) await rotation.refresh()
      const named = replicas.map(({ rotation }) => rotation.status().blockers.map(({ reason }) => reason))
      expect(named[1]).to.deep.equal(named[0])
      expect(named[2]).to.deep.equal(named[0])
      return refusal(await by.rotation.advance(false))
    }
    expect(await advance(two)).to.contain('1 holder of certificates is not ready')
    three.issue(holder, certificates[0])
    three.issue(holder, certificates[1])
    expect(await advance(one), 'the third machine has not renewed').to.contain('1 holder of certificates is not ready')
    expect(one.rotation.status().blockers[0]?.reason).to.contain(`where it holds certificate ${certificates[2]} of an earlier stage`)
    two.issue(holder)
    expect(await advance(one), 'a request with a token may be of any machine').to.contain('1 holder of certificates is not ready')
    two.issue(holder, certificates[2])
    for (const { rotation } of replicas) await rotation.advance(false)
    expect(shared.state.stage).to.equal('trust-both')
  })

  it('goes no stage further while the ledger cannot be exchanged, unless by force', async () => {
    const shared = new Shared()
    const one = await Replica.start(shared)
    expect(await one.rotation.advance(false)).to.include({ went: 'announce' })
    shared.now += settleMs + 1
    one.notesFail = true
    expect(refusal(await one.rotation.advance(false))).to.contain('the ledger cannot be exchanged with them')
    expect(await one.rotation.advance(true)).to.include({ went: 'trust-both' })
    shared.now += settleMs + 1
    one.notesFail = false
    expect(await one.rotation.advance(false)).to.include({ went: 'sign-with-new' })
    // What another replica has stored and this one cannot read may have holders.
    shared.notes.set('ledger', 'damaged')
    shared.now += settleMs + 1
    expect(refusal(await one.rotation.advance(false))).to.contain('the ledger cannot be exchanged with them')
    // It is not overwritten, however often it is tried, until somebody has decided.
    expect(refusal(await one.rotation.advance(false))).to.contain('the ledger cannot be exchanged with them')
    expect(shared.notes.get('ledger')).to.equal('damaged')
    shared.notes.delete('ledger')
    expect(await one.rotation.advance(false)).to.include({ went: 'retire' })
    expect(shared.notes.get('ledger')).to.contain('completeSince')
  })

  it('distrusts a root at every replica at once', async () => {
    const shared = new Shared()
    const [one, two] = [await Replica.start(shared), await Replica.start(shared)]
    const other = rootOf('distrusted').record.root
    await one.rotation.setTrust(other, false)
    await until('the root at the other replica', () => two.rotation.state.distrusted.includes(other))
    await two.rotation.setTrust(other, true)
    await until('the root at the first replica', () => one.rotation.state.distrusted.length === 0)
  })
})
