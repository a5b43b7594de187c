import { expect } from 'chai'
import { regexFault } from '../../../src/config/patterns.ts'
import { programSize } from '../../../src/config/program-size.ts'
import { countedSizes } from '../../harness/program-sizes.ts'

const faultOf = (pattern: string) => regexFault(pattern, { faults: [], warnings: [] })

describe('regular expressions of users', () => {
  it('are estimated at no less than the program size that each Envoy release computes', () => {
    for (const [pattern, oldest, newest] of countedSizes) expect(programSize(pattern), pattern).to.be.at.least(Math.max(oldest, newest))
  })

  it('are estimated at exactly that program size in most cases', () => {
    const exact = countedSizes.filter(([pattern, oldest, newest]) => programSize(pattern) === Math.max(oldest, newest))
    expect(exact.length).to.be.above(countedSizes.length * 0.7)
  })

  for (const [pattern, reason] of [
    ['', /empty pattern/],
    ['(?=a)', /not a valid RE2 pattern/],
    ['(?<=a)b', /not a valid RE2 pattern/],
    ['a{1001}', /not a valid RE2 pattern/],
    ['a{300}b{300}c{300}d{300}', /program size 1202 or more; proxies allow 1024/],
    ['\\x{100}', /do not know \\x\{100\}/],
    ['[a\\x{2028}]', /do not know \\x\{2028\}/],
    ['\\p{Emoji}', /do not know \\p\{Emoji\}/],
    ['\\P{^Kirat_Rai}', /do not know \\P\{\^Kirat_Rai\}/],
  ] as const)
    it(`${JSON.stringify(pattern)} is rejected`, () => {
      expect(faultOf(pattern)).to.match(reason)
    })

  it('are accepted if they only resemble unsupported syntax', () => {
    for (const pattern of ['\\x{ff}', '\\\\x{100}', '\\Q\\x{100}\\E', '\\p{Greek}', '\\p{^Sc}', '(?<name>a)', 'a{1000}', '[\\x{0}-\\x{ff}]'])
      expect(faultOf(pattern), pattern).to.equal(undefined)
  })
})
