/**
 * The authority's own root over its lifetime, with a real directory: created once, rotated in stages, across restarts, by force, and with
 * failures.
 */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { type FileStorage, openFileStorage } from '../../actors/discovery/authority/file-storage.ts'
import { storeKey } from '../../actors/discovery/authority/key-storage.ts'
import { RootRotation, type RotationSettings } from '../../actors/discovery/authority/root-rotation.ts'
import { rotate } from '../../actors/discovery/authority/shown-authority.ts'
import { MetricRegistry } from '../../actors/runtime/metrics.ts'
import { stages } from '../../src/ca/state.ts'
import { rootOf, signedBy } from '../harness/authorities.ts'
import { until } from '../harness/until.ts'

const day = 86_400_000
const workload = 'spiffe://td/ns/a/sa/b'
const node = 'sidecar~10.0.0.1~x.a~a.svc'

describe('the own root of the certificate authority', () => {
  let directory: string
  let made: number
  let now: number
  let elapsed: number
  let bootId: string
  let changes: number
  let lines: string[]
  let delay: PromiseWithResolvers<void> | undefined
  let storage: FileStorage
  const opened: RootRotation[] = []

  const settings: RotationSettings = { checkInterval: 0, jitter: false, gracePercent: 20, workloadLife: day }
  const log = (scope: string) => {
    const line = (message: string) => void lines.push(`${scope} ${message}`)
    return { debug: line, info: line, warn: line, error: line }
  }
  const open = async (change: Partial<RotationSettings> = {}, plugged: string[] = [], random = 0): Promise<RootRotation> => {
    storage = await openFileStorage(directory)
    const rotation = await RootRotation.open({
      storage,
      settings: { ...settings, ...change },
      async makeRoot(before) {
        await delay?.promise
        const root = rootOf(`made ${made++}`)
        const signer = before && Array.from({ length: made }, (_, index) => rootOf(`made ${index}`)).find(({ record }) => record.id === before.id)
        storeKey(storage.keys, root.record.id, root.key)
        return { ...root.record, cross: signer ? signedBy(signer, root) : '' }
      },
      changed: () => changes++,
      clocks: () => ({ wall: now, boot: elapsed, bootId }),
      random: () => random,
      log,
      metrics: new MetricRegistry(),
    })
    opened.push(rotation)
    await (plugged.length > 0 ? rotation.usePlugged(plugged) : rotation.useOwn())
    return rotation
  }
  const ids = (rotation: RootRotation) => rotation.state.authorities.map(({ id }) => id)
  const keys = () => readdirSync(join(directory, 'keys')).map((name) => name.replace('.pem', ''))
  /** Lets time pass on all clocks. */
  const pass = (ms: number) => {
    now += ms
    elapsed += ms
  }
  /** Shows that a client uses a certificate of the root that signs. */
  const use = (rotation: RootRotation) => {
    const root = rotation.material()?.workloads.id ?? ''
    rotation.connected('xds-writer/0/1', { node, identities: [workload], presented: { serial: 'used', root, notAfter: now + day } })
    return until('the use to be recorded', () => rotation.state.inUse.includes(root))
  }
  let issues = 0
  let serial: string | undefined
  /** Issues a certificate to a workload, in place of the one that it has. */
  const issue = (rotation: RootRotation, life = day) => {
    const root = rotation.material()?.workloads.id ?? ''
    const renews = serial
    serial = `ab${issues++}`
    rotation.issued({ identities: [workload], serial, root, issuedAt: now, notAfter: now + life, peer: '10.0.0.1:4000', renews })
  }

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'mesh-ca-'))
    delay = undefined
    serial = undefined
    ;[made, now, elapsed, bootId, changes, lines] = [0, Date.now(), 0, 'boot', 0, []]
  })
  afterEach(async () => {
    for (const rotation of opened.splice(0)) await rotation.close().catch(() => undefined)
    rmSync(directory, { recursive: true, force: true })
  })

  it('is created once, and is the same after restarts', async () => {
    const first = await open()
    expect(ids(first)).to.deep.equal([rootOf('made 0').record.id])
    await first.close()
    const again = await open()
    expect(ids(again)).to.deep.equal([rootOf('made 0').record.id])
    expect(made).to.equal(1)
    expect(keys()).to.deep.equal(ids(again))
  })

  it('is left as it is once it is closed: a step in progress is finished, nothing begins after it', async () => {
    delay = Promise.withResolvers()
    const opening = open({ checkInterval: 5 })
    await until('the root to be made', () => opened.length === 1)
    const rotation = opened[0] as RootRotation
    const next = rotation.advance(true).catch((error: Error) => error.message)
    const closed = rotation.close()
    delay.resolve()
    await Promise.all([opening, closed])
    expect(rotation.state.authorities).to.have.length(1)
    expect(await next).to.equal('the certificate authority is being closed')
    const done: string[] = []
    storage.write = () => Promise.reject(new Error(String(done.push('state'))))
    storage.writeNote = () => Promise.reject(new Error(String(done.push('ledger'))))
    rotation.ledger.sweep = () => void done.push('check')
    issue(rotation)
    rotation.connected('xds-writer/0/1', { node, identities: [workload], presented: { serial: 'used', root: 'ab', notAfter: now + day } })
    await rotation.check()
    // The same steps of another authority come later than those of the closed one would.
    const other = await open({ checkInterval: 5 })
    const writeNote = storage.writeNote.bind(storage)
    let kept = 0
    storage.writeNote = (...note) => {
      kept++
      return writeNote(...note)
    }
    issue(other)
    await until('the ledger of another authority to be stored', () => kept > 0)
    expect(done).to.deep.equal([])
    expect(lines.filter((line) => line.includes('failed'))).to.deep.equal([])
  })

  it('is rotated although unused keys cannot be removed, which is logged and retried at the next start', async () => {
    const rotation = await open()
    const [old] = ids(rotation)
    for (const _ of stages.slice(1)) await rotation.advance(true)
    await use(rotation)
    storage.keepKeys = () => Promise.reject(new Error('the disk is read-only'))
    const before = changes
    expect(await rotation.advance(true)).to.include({ went: 'stable', from: 'retire' })
    expect(changes).to.equal(before + 1)
    expect(lines.join('\n')).to.contain('cannot be removed before the next start: the disk is read-only')
    expect(keys()).to.include(old)
    await rotation.close()
    const again = await open()
    expect(keys()).to.deep.equal(ids(again)).and.not.include(old)
  })

  it('is rotated stage by stage across restarts, waiting for workloads that have not renewed', async () => {
    let rotation = await open()
    const seen: string[] = []
    for (const stage of [...stages.slice(1), 'stable']) {
      if (stage !== 'announce') {
        issue(rotation)
        await rotation.close()
        rotation = await open()
      }
      rotation.connected('xds-writer/0/1', { node, identities: [workload], presented: undefined })
      if (stage === 'stable') await use(rotation)
      const answer = await rotation.advance(false)
      expect(answer).to.include({ went: stage })
      seen.push(`${stage} ${ids(rotation).length} ${keys().length}`)
      const refused = await rotation.advance(false)
      if (stage === 'stable') break
      expect(refused).to.have.property(
        'refused',
        `the rotation stays in stage ${stage}: 1 holder of certificates is not ready; --force continues without them`,
      )
      const [blocker] = rotation.status().blockers
      if (stage === 'announce') expect(blocker).to.deep.include({ identity: workload, proxies: [node], why: 'not known' })
      else expect(blocker).to.deep.include({ identity: workload, proxies: [node], why: 'not issued since' })
    }
    expect(seen).to.deep.equal(['announce 2 2', 'trust-both 2 2', 'sign-with-new 2 2', 'retire 2 2', 'stable 1 1'])
    expect(lines.filter((line) => line.startsWith('rootcertrotator the root rotation goes from'))).to.have.length(6)
  })

  it('is reported as being rotated if its key takes long to generate', async () => {
    const rotation = await open()
    delay = Promise.withResolvers<void>()
    const answer = await rotate(rotation, false, () => undefined, 10)
    expect(answer).to.have.property('refused').that.includes('has not been reached yet')
    expect(rotation.status().stage).to.equal('stable')
    delay.resolve()
    expect(await rotate(rotation, false, () => undefined)).to.deep.equal({ from: 'announce', went: 'trust-both', forcedOver: [] })
  })

  it('is rotated by force, with a log of the affected identities', async () => {
    const rotation = await open()
    issue(rotation)
    await rotation.advance(false)
    const answer = await rotation.advance(true)
    expect(answer).to.deep.include({ from: 'announce', went: 'trust-both' })
    expect('went' in answer && answer.forcedOver.map(({ identity }) => identity)).to.deep.equal([workload])
    expect(lines.join('\n')).to.include(`stage announce was ended by force although ${workload} is not connected from 10.0.0.1`)
  })

  it('is rotated without waiting for proxies on the plaintext port, which are listed', async () => {
    const rotation = await open()
    rotation.connected('xds-writer/0/1', { node, identities: [], presented: undefined })
    await rotation.advance(false)
    expect(rotation.status()).to.deep.include({ plaintext: [node], blockers: [] })
    expect(await rotation.advance(false)).to.include({ went: 'trust-both' })
  })

  it('is checked at every interval, and rotated automatically near its expiry', async () => {
    const rotation = await open({ checkInterval: 10 })
    await until('two checks', () => rotation.ledger.size === 0)
    expect(rotation.status().stage).to.equal('stable')
    pass(25 * day)
    await until('a rotation', () => rotation.status().stage !== 'stable')
    // The new root of the test is as old as the first.
    now -= 25 * day
    await rotation.clock.accept()
    await until('the whole rotation', () => rotation.status().stage === 'stable')
    expect(ids(rotation)).to.deep.equal([rootOf('made 1').record.id])
    expect(changes).to.equal(5)
    expect(lines.join('\n')).to.include('less than 20 % of the life of root')
  })

  it('is not checked with an interval of 0, and first after a random part of the interval with jitter', async () => {
    now += 25 * day
    elapsed += 25 * day
    const rotation = await open()
    expect(lines.join('\n')).to.include('is not above zero')
    expect(rotation.status().stage).to.equal('stable')
    await rotation.close()
    const late = await open({ checkInterval: 3_600_000, jitter: true }, [], 0.5)
    expect(late.status().stage).to.equal('stable')
    await late.close()
    const soon = await open({ checkInterval: 3_600_000, jitter: true }, [], 0)
    await until('the first check', () => soon.status().stage === 'announce')
  })

  it('is replaced at once after it expired, since nothing that it signed is valid', async () => {
    const first = await open()
    issue(first, 40 * day)
    await first.close()
    pass(31 * day)
    const rotation = await open()
    expect(ids(rotation)).to.deep.equal([rootOf('made 1').record.id])
    expect(rotation.state.authorities[0]?.cross, 'an expired root signs nothing').to.equal('')
    expect(rotation.status().stage).to.equal('stable')
    expect(keys(), 'its key stays until the new root was seen in use').to.have.length(2)
    await use(rotation)
    await until('the key to be removed', () => keys().length === 1)
  })

  describe('with a clock that is wrong', () => {
    const jump = 4000 * day
    const checked = { checkInterval: 10, gracePercent: 100 }

    it('begins no stage and forgets nobody while the wall clock is ahead in no time, although all certificates seem to have expired', async () => {
      const rotation = await open()
      const [root] = ids(rotation)
      issue(rotation)
      await rotation.advance(false)
      now += jump
      for (let check = 0; check < 10; check++) await rotation.check()
      expect(rotation.status()).to.deep.include({ stage: 'announce' }).and.property('blockers').has.length(1)
      expect(rotation.ledger.size).to.equal(1)
      for (const force of [false, true]) {
        const answer = await rotation.advance(force)
        expect('refused' in answer && answer.refused).to.match(
          /^the rotation stays in stage announce: the wall clock \(20[34].*\) contradicts the recorded time plus the elapsed time \(20.*"pilot-discovery ca accept-time"$/,
        )
      }
      expect(keys()).to.have.length(2)
      expect(rotation.material()?.workloads.id, 'goes on signing').to.equal(root)
      expect(
        lines.filter((line) => line.includes('certificates go on being signed')),
        'said once',
      ).to.have.length(1)
      now -= jump
      expect(rotation.status().waits).to.equal(undefined)
      expect(lines.at(-1)).to.equal('ca the wall clock agrees with the recorded time')
      expect((await rotation.advance(false)) satisfies object)
        .to.have.property('refused')
        .that.includes('is not ready')
    })

    for (const [name, bootOf] of [
      ['process', () => bootId],
      ['machine', () => `${bootId}+`],
    ] as const)
      it(`keeps its root over a start of the ${name} with the wrong time, with checks, kills, and starts in between`, async () => {
        let rotation = await open()
        issue(rotation)
        await rotation.advance(false)
        const { stage, authorities } = rotation.state
        await rotation.close()
        bootId = bootOf()
        now += jump
        for (let start = 0; start < 3; start++) {
          rotation = await open(checked)
          const before = rotation.state
          for (let check = 0; check < 10; check++) await rotation.check()
          expect(rotation.state).to.equal(before)
          expect(rotation.status().waits).not.to.equal(undefined)
          // A process that is killed stores nothing more.
          storage.writeNote = () => Promise.resolve()
          await rotation.close()
        }
        now -= jump
        rotation = await open({ ...checked, checkInterval: 0 })
        expect(rotation.state.stage).to.equal(stage)
        expect(ids(rotation)).to.deep.equal(authorities.map(({ id }) => id))
        expect(keys()).to.have.length(2)
        expect(rotation.status()).to.deep.include({ waits: undefined })
        expect(rotation.ledger.size).to.equal(1)
      })

    it('signs while it waits after the machine was off, and goes on after an hour or by command', async () => {
      const first = await open()
      issue(first)
      await first.close()
      bootId = 'next'
      ;[elapsed, now] = [0, now + 3 * day]
      const rotation = await open()
      expect(rotation.clock.judge()).to.include({ verdict: 'unconfirmed', believed: now })
      expect(await rotation.advance(true))
        .to.have.property('refused')
        .that.includes('the machine was off since')
        .and.includes('for 60 min')
      expect(rotation.ledger.size, 'expired, and still known').to.equal(1)
      pass(3_590_000)
      expect(rotation.status().waits).to.include('for 1 min')
      pass(20_000)
      expect(rotation.status().waits).to.equal(undefined)
      expect(await rotation.advance(false)).to.include({ went: 'announce' })
      now += jump
      expect(rotation.clock.dispute()).not.to.equal(undefined)
      await rotation.clock.accept()
      expect(rotation.clock.judge()).to.include({ verdict: 'agreed', believed: now })
      expect(await rotation.advance(false)).to.include({ went: 'trust-both' })
    })

    it('goes by what state and ledger record when the record of the clock is missing or damaged', async () => {
      for (const text of [undefined, '{"format":1,"bootId":"a","wall":"x"}']) {
        const first = await open()
        await first.close()
        rmSync(join(directory, 'clock.json'))
        if (text !== undefined) writeFileSync(join(directory, 'clock.json'), text)
        now += jump
        const ahead = await open(checked)
        expect(ahead.clock.judge().verdict).to.equal('unconfirmed')
        await ahead.close()
        now -= 2 * jump
        rmSync(join(directory, 'clock.json'))
        const behind = await open()
        expect(behind.clock.judge().verdict).to.equal('disputed')
        await behind.close()
        now += jump
        rmSync(join(directory, 'clock.json'))
      }
      expect(lines.join('\n')).to.include('the record of the clock cannot be read and begins anew: boot: is not a number')
    })

    it('keeps the key of the old root until a client was seen to use the new one, by a connection or by a renewal in time', async () => {
      for (const proof of ['connection', 'renewal']) {
        const rotation = await open()
        for (const _ of [...stages, 'stable'].slice(1)) await rotation.advance(true)
        expect(rotation.state.stage).to.equal('stable')
        const root = ids(rotation)[0] as string
        expect(keys()).to.have.length(2)
        if (proof === 'connection') await use(rotation)
        else {
          issue(rotation)
          pass(day / 8)
          issue(rotation)
          expect(rotation.state.inUse, 'asked again too soon').to.deep.equal([])
          pass(day / 2)
          issue(rotation)
        }
        await until('the old key to be removed', () => keys().length === 1)
        expect(keys()).to.deep.equal([root])
        expect(rotation.state).to.deep.include({ inUse: [root], retired: [] })
        await rotation.close()
      }
    })

    it('takes no use for a proof while the time is disputed', async () => {
      const rotation = await open()
      for (const _ of [...stages, 'stable'].slice(1)) await rotation.advance(true)
      const root = ids(rotation)[0] as string
      now += jump
      const presented = { serial: 'used', root, notAfter: now + day }
      rotation.connected('xds-writer/0/1', { node, identities: [workload], presented })
      await rotation.check()
      expect(rotation.state.inUse).to.deep.equal([])
      expect(keys()).to.have.length(2)
      now -= jump
      rotation.connected('xds-writer/0/1', { node, identities: [workload], presented })
      await until('the old key to be removed', () => keys().length === 1)
    })
  })

  it('stays in its stage if the new stage cannot be saved', async () => {
    const rotation = await open()
    const path = join(directory, 'state.json')
    const text = readFileSync(path, 'utf8')
    writeFileSync(path, 'damaged')
    const failed = await rotation.advance(false).catch((error: Error) => error.message)
    expect(failed).to.include('is damaged and stays as it is')
    expect(rotation.status().stage).to.equal('stable')
    expect(changes).to.equal(0)
    writeFileSync(path, text)
    expect(await rotation.advance(false)).to.include({ went: 'announce' })
  })

  it('has its ledger stored again after a failure, without another certificate', async () => {
    const rotation = await open()
    const writeNote = storage.writeNote.bind(storage)
    let failures = 0
    storage.writeNote = (...note) => (failures++ === 0 ? Promise.reject(new Error('the server is away')) : writeNote(...note))
    issue(rotation)
    await until('the ledger to be stored', () => readFileSync(join(directory, 'ledger.json'), 'utf8').includes('"serial":"ab'))
    expect(lines.filter((line) => line.includes('cannot be saved: the server is away'))).to.have.length(1)
  })

  it('is taken from the saved state if another process has written it', async () => {
    const rotation = await open()
    const { state, version } = await storage.read()
    await storage.write({ ...state, authorities: [rootOf('theirs').record] }, version)
    expect(await rotation.advance(false)).to.include({ refused: 'another replica has changed the rotation meanwhile, which is in stage stable' })
    expect(ids(rotation)).to.deep.equal([rootOf('theirs').record.id])
    expect(changes).to.equal(1)
  })

  it('stays trusted for some time when a plugged-in root replaces it, and vice versa', async () => {
    const own = await open()
    issue(own, 2 * day)
    await own.close()
    const other = rootOf('plugged').record.root
    const plugged = await open({}, [other])
    expect(await plugged.advance(true)).to.have.property('refused')
    expect(plugged.formerRoots()).to.deep.equal([{ certificate: rootOf('made 0').record.root, until: now + 2 * day }])
    await plugged.close()
    const back = await open()
    expect(back.formerRoots()).to.deep.equal([{ certificate: other, until: now + day }])
    expect(made).to.equal(1)
    pass(1.5 * day)
    await back.check()
    expect(back.formerRoots()).to.deep.equal([])
    expect(changes).to.equal(1)
  })

  it('is rotated without a damaged ledger, waiting for identities that the new ledger does not know', async () => {
    const first = await open()
    await first.advance(false)
    await first.close()
    const [path, damaged] = [join(directory, 'ledger.json'), '{"format":1,"completeSince":"x"}']
    writeFileSync(path, damaged)
    const rotation = await open()
    expect(lines.join('\n')).to.include(`${path}: completeSince: is not a number`)
    rotation.connected('xds-writer/0/1', { node, identities: [workload], presented: undefined })
    const others = {
      identity: '(others)',
      reason: 'may hold certificates of an earlier stage that are not in the ledger, which was lost or written by an earlier version',
    }
    expect(rotation.status().blockers.map(({ identity }) => identity)).to.deep.equal([workload, others.identity])
    rotation.ledger.disconnected('xds-writer/0/1')
    expect(rotation.status().blockers.map(({ identity, reason }) => ({ identity, reason }))).to.deep.equal([others])
    pass(day)
    expect(rotation.status().blockers).to.deep.equal([])
    // It is kept until somebody has decided.
    await rotation.close()
    expect(readFileSync(path, 'utf8')).to.equal(damaged)
    rmSync(path)
    await (await open()).close()
    expect(readFileSync(path, 'utf8')).to.contain('completeSince')
  })

  it('waits for holders that are not connected although the ledger could not be read, also after another start', async () => {
    const first = await open()
    await first.advance(false)
    await first.close()
    const ledger = join(directory, 'ledger.json')
    rmSync(ledger)
    mkdirSync(ledger)
    const second = await open()
    expect(lines.join('\n')).to.include('ledger.json: is not a file')
    rmdirSync(ledger)
    expect(await second.advance(false)).to.have.nested.property('status.blockers[0].identity', '(others)')
    await second.close()
    const third = await open()
    expect(third.status().blockers.map(({ identity }) => identity)).to.deep.equal(['(others)'])
    pass(day)
    expect(await third.advance(false)).to.include({ went: 'trust-both' })
  })
})
