import { expect } from 'chai'
import {
  advance,
  announce,
  chainExpiry,
  hasOldRootExpired,
  isDue,
  keptKeys,
  materialOf,
  noteRoots,
  withFirstRoot,
  withUse,
} from '../../../src/ca/rotation.ts'
import { type AuthorityState, emptyState, readState, stages } from '../../../src/ca/state.ts'
import { rootOf, signedBy } from '../../harness/authorities.ts'

const day = 86_400_000

describe('a root rotation', () => {
  const old = rootOf('old').record
  const next = { ...rootOf('new').record, cross: signedBy(rootOf('old'), rootOf('new'), 20) }
  const end = chainExpiry(old)
  const begun = end - 30 * day
  const now = begun + day
  const first = withFirstRoot(emptyState, old, now)

  it('passes its stages in order, each with its own signers, served roots and trusted roots', () => {
    let state = announce(first, next, now)
    const seen: Record<string, unknown> = {}
    const name = (pem: string) => (pem === old.root ? 'old' : pem === next.root ? 'new' : pem === next.cross ? 'cross' : pem)
    for (const stage of [...stages.slice(1), 'stable']) {
      const { workloads, serving, bundle, trusted } = materialOf(state, now) ?? expect.fail('nothing in force')
      const chain = ({ certificate, intermediates }: typeof workloads) => `${name(certificate)} ${name(intermediates)}`.trim()
      seen[stage] = [bundle.map(name).join(), trusted.map(name).join(), chain(workloads), chain(serving)]
      expect(state.stage).to.equal(stage)
      if (stage !== 'stable') state = advance(state, now)
    }
    expect(seen).to.deep.equal({
      announce: ['old,new', 'old,new', 'old', 'old'],
      'trust-both': ['old,new', 'old,new', 'old', 'new cross'],
      'sign-with-new': ['new,old', 'old,new', 'new cross', 'new cross'],
      retire: ['new', 'old,new', 'new cross', 'new cross'],
      stable: ['new', 'new', 'new', 'new cross'],
    })
    expect(state.epoch).to.equal(first.epoch + 5)
    expect(materialOf(state, now + 20 * day)?.serving.intermediates, 'a cross certificate that has expired').to.equal('')
  })

  it('is rejected without a root, to the root in force, and while another rotation is in progress', () => {
    expect(() => announce(emptyState, next, now)).to.throw('there is no root to replace')
    expect(() => announce(first, old, now)).to.throw('this root is in force already')
    expect(() => announce(announce(first, next, now), rootOf('third').record, now)).to.throw('a rotation is under way, in stage announce')
    expect(() => advance(first, now)).to.throw('no rotation is under way')
    expect(() => withFirstRoot(first, next, now)).to.throw('there is a root already')
    expect(materialOf(emptyState, now)).to.equal(undefined)
  })

  it("is due if less than the configured share of the root's lifetime is left and no rotation is in progress", () => {
    expect(isDue(first, 20, end - 7 * day)).to.equal(false)
    expect(isDue(first, 20, end - 5 * day)).to.equal(true)
    expect(isDue(first, 20, end + day)).to.equal(true)
    expect(isDue(announce(first, next, now), 20, end)).to.equal(false)
    expect(isDue(emptyState, 20, now)).to.equal(false)
  })

  it('no longer waits once nothing that the old root signed is valid', () => {
    const state = announce(first, next, now)
    expect(hasOldRootExpired(state, end - 1)).to.equal(false)
    expect(hasOldRootExpired(state, end)).to.equal(true)
    expect(hasOldRootExpired(first, end)).to.equal(false)
  })

  it('considers the expiry of intermediates and cross certificates', () => {
    const intermediate = signedBy(rootOf('old'), rootOf('new'), 20)
    expect(chainExpiry({ ...next, certificate: intermediate, root: old.root }) / day).to.be.closeTo(begun / day + 20, 0.01)
    expect(chainExpiry({ ...old, intermediates: intermediate }) / day).to.be.closeTo(begun / day + 20, 0.01)
  })

  describe('the key of an old root', () => {
    const whole = (begun: AuthorityState) => stages.slice(1).reduce((state) => advance(state, now), begun)
    const done = whole(announce(first, next, now))

    it('is kept until the new root was seen in use, in the rotation or after it', () => {
      expect([done.stage, keptKeys(done)]).to.deep.equal(['stable', [next.id, old.id]])
      expect(keptKeys(withUse(done, old.id)), 'no root of this authority any more').to.deep.equal([next.id, old.id])
      const used = withUse(done, next.id)
      expect([used.inUse, keptKeys(used)]).to.deep.equal([[next.id], [next.id]])
      expect(withUse(used, next.id)).to.equal(used)
      const early = withUse(withUse(announce(first, next, now), old.id), next.id)
      expect([early.inUse, keptKeys(early)]).to.deep.equal([
        [old.id, next.id],
        [old.id, next.id],
      ])
      expect(keptKeys(whole(early))).to.deep.equal([next.id])
      expect(keptKeys(whole(withUse(announce(first, next, now), old.id)))).to.deep.equal([next.id, old.id])
    })

    it('is kept over rotations that nobody took part in, of which the last eight count', () => {
      const roots = Array.from({ length: 10 }, (_, index) => rootOf(`next ${index}`).record)
      const state = roots.reduce((before, root) => whole(announce(before, root, now)), first)
      expect(state.retired.map(({ id }) => id)).to.deep.equal(roots.slice(1, 9).map(({ id }) => id))
      expect(keptKeys(withUse(state, roots.at(-1)?.id ?? ''))).to.deep.equal([roots.at(-1)?.id])
    })

    it('is part of the stored state, which may be one of an earlier version', () => {
      expect(readState(JSON.parse(JSON.stringify(done)))).to.deep.equal(done)
      const { inUse, retired, distrusted, ...earlier } = done
      expect(readState(earlier)).to.deep.equal({ ...done, retired: [] })
      expect(() => readState({ ...done, retired: [{ ...old, id: 'x' }] })).to.throw('retired[0].id: is not the fingerprint of the certificate')
      expect(() => readState({ ...done, distrusted: ['x'] })).to.throw('distrusted[0]: is not a certificate in PEM')
      expect(() => readState({ ...done, inUse: [1] })).to.throw('inUse[0]: is not a text')
    })
  })

  describe('roots that are replaced outside of a rotation', () => {
    const lives = (lastExpiry: number) => ({ lastExpiry: () => lastExpiry, atLeast: now + day })
    const noted = (state: AuthorityState, roots: string[], expiry: number, ended: string[] = [], at = now) =>
      noteRoots(state, roots, ended, lives(expiry), at)
    const both = noted(noted(first, [old.root], 0), [next.root], now + 3 * day)

    it('stay trusted until their last certificate has expired, without being prolonged', () => {
      expect(both.formerRoots).to.deep.equal([{ certificate: old.root, until: now + 3 * day }])
      expect(noted(both, [next.root], now + 5 * day), 'it is not prolonged').to.equal(both)
      expect(noted(both, [next.root], 0, [], now + 4 * day).formerRoots).to.deep.equal([])
    })

    it('stay trusted for a minimum time, but not beyond their own expiry', () => {
      const before = noted(first, [old.root], 0)
      expect(noted(before, [next.root], 0).formerRoots[0]?.until).to.equal(now + day)
      expect(noted(before, [next.root], end + day).formerRoots[0]?.until).to.equal(end)
    })

    it('are not trusted any more if they were taken out beside another one that stays', () => {
      const beside = noted(noted(first, [old.root], 0), [old.root, next.root], 0)
      expect(noted(beside, [next.root], now + 3 * day)).to.deep.include({ formerRoots: [], inForce: [next.root] })
      const third = rootOf('third').record.root
      expect(noted(beside, [next.root, third], now + 3 * day).formerRoots).to.deep.equal([])
      expect(
        noted(beside, [third], now + 3 * day).formerRoots.map(({ certificate }) => certificate),
        'replaced',
      ).to.deep.equal([old.root, next.root])
    })

    it('are dropped if a rotation has ended them or if they are in force again', () => {
      expect(noted(noted(first, [old.root], 0), [next.root], now + 3 * day, [old.id]).formerRoots).to.deep.equal([])
      const again = noted(both, [old.root], now + 3 * day)
      expect(again.formerRoots.map(({ certificate }) => certificate)).to.deep.equal([next.root])
    })
  })
})
