import { expect } from 'chai'
import { IdentityShares } from '../../../src/push/classes/identity-shares.ts'

describe('limits for each identity', () => {
  const claim = (identity: string, nodeBytes = 10) => ({ identity, nodeBytes })

  it('bound the streams, classes and node bytes of one identity independently of others', () => {
    const shares = new IdentityShares({ streams: 3, classes: 2, nodeBytes: 100 })
    const add = (name: string, identity: string, classId: string, bytes?: number) => shares.add(name, claim(identity, bytes), () => classId)
    expect([add('1', 'a', 'x'), add('2', 'a', 'y')]).to.deep.equal([undefined, undefined])
    expect(add('3', 'a', 'z')).to.equal('the streams of a belong to more than 2 classes of proxies')
    expect(add('3', 'a', 'x', 81)).to.equal('the nodes of a take more than 100 bytes in memory')
    expect(add('3', 'a', 'x')).to.equal(undefined)
    expect(add('4', 'a', 'x')).to.equal('more than 3 streams of a')
    expect(add('5', 'b', 'z')).to.equal(undefined)
    expect(shares.largest(1)).to.deep.equal([{ identity: 'a', streams: 3, classes: 2, nodeBytes: 30 }])
  })

  it('are released when streams end, whatever was refused and however often the end is reported', () => {
    const shares = new IdentityShares({ streams: 2, classes: 1, nodeBytes: 100 })
    for (let round = 0; round < 3; round++) {
      for (const name of ['1', '2', '1']) expect(shares.add(name, claim('a'), () => `class-${round}`)).to.equal(undefined)
      expect(shares.add('3', claim('a'), () => `class-${round}`)).to.equal('more than 2 streams of a')
      for (const name of ['1', '2', '2', '3']) shares.remove(name)
      expect(shares.largest(9)).to.deep.equal([])
    }
  })

  it('compute the class of a stream only if the other limits hold', () => {
    const shares = new IdentityShares({ streams: 0, classes: 1, nodeBytes: 100 })
    let asked = 0
    expect(shares.add('1', claim('a'), () => String(++asked))).to.equal('more than 0 streams of a')
    expect(asked).to.equal(0)
  })
})
