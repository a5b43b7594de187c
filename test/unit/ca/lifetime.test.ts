import { expect } from 'chai'
import { clockMargin, rootValidity, validityWithin, workloadValidity } from '../../../src/ca/lifetime.ts'

const hour = 3_600_000
const now = Date.UTC(2026, 10, 22, 8, 0, 0, 400)
const rules = { default: 24 * hour, most: 90 * 24 * hour }
const authority = { notBefore: now - 1000 * hour, notAfter: now + 10_000 * hour }
const present = { wall: now, believed: now }
const life = (wanted: number, of = rules, by = authority) => workloadValidity(wanted, of, present, by).notAfter - now + 400

describe('the lifetime of a certificate', () => {
  it('is the requested one, or the default; a longer one than the maximum is rejected', () => {
    expect(life(hour)).to.equal(hour)
    for (const wanted of [0, -1, -1e18]) expect(life(wanted), String(wanted)).to.equal(24 * hour)
    expect(life(rules.most)).to.equal(rules.most)
    for (const wanted of [rules.most + 1000, 9.2e21])
      expect(() => life(wanted), String(wanted)).to.throw('is greater than the max allowed TTL 2160h0m0s')
    expect(life(0, { default: 100 * hour, most: hour })).to.equal(hour)
  })

  it('ends no later than that of the authority', () => {
    expect(life(24 * hour, rules, { ...authority, notAfter: now + hour })).to.equal(hour)
  })

  it('begins earlier by a margin for slow clocks, but not before that of the authority', () => {
    expect(workloadValidity(hour, rules, present, authority).notBefore).to.equal(now - 400 - clockMargin)
    const young = { ...authority, notBefore: now - 400 - 1000 }
    expect(workloadValidity(hour, rules, present, young).notBefore).to.equal(young.notBefore)
    expect(rootValidity(hour, now)).to.deep.equal({ notBefore: now - 400 - clockMargin, notAfter: now - 400 + hour })
  })

  it('holds by both clocks while the wall clock is disputed, as long as that makes it no longer than the maximum', () => {
    const at = (ahead: number) => {
      const { notBefore, notAfter } = workloadValidity(24 * hour, rules, { wall: now + ahead, believed: now }, authority)
      return [(notBefore + clockMargin + 400 - now) / hour, (notAfter + 400 - now) / hour]
    }
    expect(at(0)).to.deep.equal([0, 24])
    expect(at(48 * hour), 'the wall clock is ahead').to.deep.equal([0, 72])
    expect(at(-48 * hour), 'the wall clock is behind').to.deep.equal([-48, 24])
    expect(at(66 * 24 * hour)).to.deep.equal([0, 67 * 24])
    expect(at(90 * 24 * hour), 'more than the maximum, by the time that counts').to.deep.equal([0, 24])
    expect(at(-90 * 24 * hour)).to.deep.equal([-1000 + 1 / 12, 24])
    const serving = validityWithin(hour, { wall: now + hour, believed: now }, authority)
    expect(serving.notAfter + 400 - now).to.equal(hour)
  })
})
