import { expect } from 'chai'
import { clockMargin, rootValidity, workloadValidity } from '../../../src/ca/lifetime.ts'

const hour = 3_600_000
const now = Date.UTC(2026, 10, 22, 8, 0, 0, 400)
const rules = { default: 24 * hour, most: 90 * 24 * hour }
const authority = { notBefore: now - 1000 * hour, notAfter: now + 10_000 * hour }
const life = (wanted: number, of = rules, by = authority) => workloadValidity(wanted, of, now, by).notAfter - now + 400

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
    expect(workloadValidity(hour, rules, now, authority).notBefore).to.equal(now - 400 - clockMargin)
    const young = { ...authority, notBefore: now - 400 - 1000 }
    expect(workloadValidity(hour, rules, now, young).notBefore).to.equal(young.notBefore)
    expect(rootValidity(hour, now)).to.deep.equal({ notBefore: now - 400 - clockMargin, notAfter: now - 400 + hour })
  })
})
