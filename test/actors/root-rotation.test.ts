/**
 * The authority's own root over its lifetime, with a real directory: created once, rotated in stages, across restarts, by force, and with
 * failures.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { openFileStorage } from '../../actors/discovery/authority/file-storage.ts'
import { storeKey } from '../../actors/discovery/authority/key-storage.ts'
import { RootRotation, type RotationSettings } from '../../actors/discovery/authority/root-rotation.ts'
import { rotate } from '../../actors/discovery/authority/shown-authority.ts'
import type { CaStorage } from '../../actors/discovery/authority/storage.ts'
import { Registry } from '../../actors/runtime/metrics.ts'
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
  let changes: number
  let lines: string[]
  let delay: PromiseWithResolvers<void> | undefined
  let storage: CaStorage
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
      now: () => now,
      monotonic: () => elapsed,
      random: () => random,
      log,
      metrics: new Registry(),
    })
    opened.push(rotation)
    await (plugged.length > 0 ? rotation.usePlugged(plugged) : rotation.useOwn())
    return rotation
  }
  const ids = (rotation: RootRotation) => rotation.state.authorities.map(({ id }) => id)
  const keys = () => readdirSync(join(directory, 'keys')).map((name) => name.replace('.pem', ''))
  const issue = (rotation: RootRotation, life = day) => {
    const root = rotation.material()?.workloads.id ?? ''
    rotation.issued({ identities: [workload], serial: 'ab', root, issuedAt: now, notAfter: now + life, peer: '10.0.0.1:4000' })
  }

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'mesh-ca-'))
    delay = undefined
    ;[made, now, elapsed, changes, lines] = [0, Date.now(), 0, 0, []]
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

  it('is rotated although unused keys cannot be removed, which is logged and retried at the next start', async () => {
    const rotation = await open()
    const [old] = ids(rotation)
    for (const _ of stages.slice(1)) await rotation.advance(true)
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
    now += 25 * day
    await until('a rotation', () => rotation.status().stage !== 'stable')
    // The new root of the test is as old as the first.
    now -= 25 * day
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
    now += 31 * day
    const rotation = await open()
    expect(ids(rotation)).to.deep.equal([rootOf('made 1').record.id])
    expect(rotation.state.authorities[0]?.cross, 'an expired root signs nothing').to.equal('')
    expect(rotation.status().stage).to.equal('stable')
  })

  it('is not rotated early by a clock that jumps ahead, nor blocked by one that goes back', async () => {
    const rotation = await open()
    issue(rotation)
    await rotation.advance(false)
    now += 2 * day
    expect(rotation.status().blockers, 'two days ahead in no time').to.have.length(1)
    elapsed += 2 * day
    expect(rotation.status().blockers, 'two days later').to.have.length(0)
    now -= 10 * day
    issue(rotation)
    expect(rotation.status().blockers, 'issued in this stage, whatever the time').to.have.length(0)
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

  it('is taken from the saved state if another process has written it', async () => {
    const rotation = await open()
    const { state, version } = await storage.read()
    await storage.write({ ...state, authorities: [rootOf('theirs').record] }, version)
    const failed = await rotation.advance(false).catch((error: Error) => error.name)
    expect(failed).to.equal('StaleVersionError')
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
    now += 1.5 * day
    await back.check()
    expect(back.formerRoots()).to.deep.equal([])
    expect(changes).to.equal(1)
  })

  it('is rotated without a damaged ledger, waiting for identities that the new ledger does not know', async () => {
    const first = await open()
    await first.advance(false)
    await first.close()
    writeFileSync(join(directory, 'ledger.json'), '{"format":1,"completeSince":"x"}')
    const rotation = await open()
    expect(lines.join('\n')).to.include('begins anew: completeSince: is not a number')
    rotation.connected('xds-writer/0/1', { node, identities: [workload], presented: undefined })
    expect(rotation.status().blockers.map(({ why }) => why)).to.deep.equal(['not known'])
    now += day
    elapsed += day
    expect(rotation.status().blockers).to.deep.equal([])
  })
})
