import { expect } from 'chai'
import { checkTrust, keptInTrust, type RootUses, rootNamed, rootsOfKey, withoutDistrusted } from '../../../src/ca/distrust.ts'
import { rootOf, signedBy } from '../../harness/authorities.ts'

const [one, other] = [rootOf('one').record, rootOf('other').record]

describe('a root that is distrusted by command', () => {
  it('is named by the first digits of its fingerprint', () => {
    const named = (id: string, roots = [one.root, other.root, one.root]) => rootNamed(id, roots)
    for (const id of [one.id, one.id.slice(0, 16), one.id.slice(0, 8), one.id.slice(0, 9).toUpperCase()]) expect(named(id)).to.equal(one.root)
    for (const id of ['', '4', one.id.slice(0, 7), `${one.id}0`, 'xyzxyzxy', `${one.id.slice(0, 8)}\n`, '../../../'])
      expect(() => named(id), id).to.throw(' does not name a root: at least 8 digits of its fingerprint are needed, as "ca show" prints them')
    expect(() => named('00000000')).to.throw(`no root begins with 00000000; there are: ${one.id.slice(0, 16)}, ${other.id.slice(0, 16)}`)
    expect(() => named('00000000', [])).to.throw('there are: none')
  })

  it('is none that signs, nor the one that a rotation goes to', () => {
    const uses: RootUses = { source: 'own', workloads: 'a', serving: 'b', last: 'b', stage: 'trust-both' }
    expect(keptInTrust('a', uses)).to.match(/^root a signs workload certificates: take the rotation to the stage sign-with-new first/)
    expect(keptInTrust('b', uses)).to.match(/^root b signs the serving certificates of this process: take the rotation/)
    expect(keptInTrust('b', { ...uses, serving: 'a', stage: 'announce' })).to.equal('root b is the one that the rotation goes to, and signs next')
    expect(keptInTrust('a', { ...uses, workloads: 'b', stage: 'retire' })).to.equal(undefined)
    expect(keptInTrust('c', uses)).to.equal(undefined)
    const plugged: RootUses = { source: 'plugged-in', workloads: 'a', serving: 'a', last: undefined, stage: 'stable' }
    expect(keptInTrust('a', plugged)).to.match(/^root a signs workload certificates: plug in an authority of another root first/)
    expect(keptInTrust('b', plugged)).to.equal(undefined)
  })

  it('takes others of its key with it', () => {
    const again = signedBy(rootOf('one'), rootOf('one'))
    expect(rootsOfKey(one.root, [again, other.root, one.root, again])).to.deep.equal([again, one.root])
    expect(withoutDistrusted([again, other.root, one.root, other.root], [one.root])).to.deep.equal([other.root])
    expect(withoutDistrusted([again, one.root, again], [])).to.deep.equal([again, one.root])
    expect(() => checkTrust(again, [one.root])).to.throw(' is distrusted, and nothing is signed with it')
  })

  it('does not sign', () => {
    expect(() => checkTrust(one.root, [other.root])).not.to.throw()
    expect(() => checkTrust(one.root, [other.root, one.root])).to.throw(`root ${one.id.slice(0, 16)} is distrusted, and nothing is signed with it`)
  })
})
