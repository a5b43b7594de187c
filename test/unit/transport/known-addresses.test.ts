import { expect } from 'chai'
import { KnownAddresses, knownAddressWords } from '../../../src/transport/known-addresses.ts'
import { cpuMs } from '../../harness/own-time.ts'

const dayMs = 86_400_000

describe('known addresses', () => {
  it('are known for a day after their last credential, to all that share the memory, and not after a costly handshake', () => {
    const words = knownAddressWords()
    const [one, other] = [new KnownAddresses(words, 'key'), new KnownAddresses(words, 'key')]
    one.at('10.0.0.1').add(0)
    expect([other.at('10.0.0.1').has(dayMs - 1), other.at('10.0.0.2').has(0), other.at('10.0.0.1').has(dayMs)]).to.deep.equal([true, false, false])
    other.at('10.0.0.1').add(dayMs)
    expect(one.at('10.0.0.1').has(2 * dayMs - 1)).to.equal(true)
    one.at('10.0.0.1').delete()
    expect(other.at('10.0.0.1').has(dayMs)).to.equal(false)
  })

  it('are at most 16,384; the ones with the latest credentials stay', () => {
    const known = new KnownAddresses(knownAddressWords(), 'key')
    for (let index = 0; index < 40_000; index++) known.at(`a${index}`).add(index * 60_000)
    const now = 40_000 * 60_000
    const kept = Array.from({ length: 40_000 }, (_, index) => index).filter((index) => known.at(`a${index}`).has(now))
    // A credential is valid for 1,440 of these minutes.
    expect(kept.length).to.be.within(1400, 1440)
    const many = new KnownAddresses(knownAddressWords(), 'key')
    for (let index = 0; index < 40_000; index++) many.at(`a${index}`).add(0)
    const there = Array.from({ length: 40_000 }, (_, index) => index).filter((index) => many.at(`a${index}`).has(0))
    expect(there.length).to.be.within(16_000, 16_384)
  })
  it('are looked up within a microsecond when they were asked for before', () => {
    const known = new KnownAddresses(knownAddressWords(), 'key')
    const addresses = Array.from({ length: 1000 }, (_, index) => `10.0.${index >> 8}.${index & 255}`)
    for (const address of addresses) known.at(address).add(0)
    const lookUp = () => addresses.filter((address) => known.at(address).has(1)).length
    expect(cpuMs(() => Array.from({ length: 300 }, lookUp))).to.be.below(300)
  })
})
