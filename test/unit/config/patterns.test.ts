import { expect } from 'chai'
import { PatternChecks, regexFault, writtenOut } from '../../../src/config/patterns.ts'
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

describe('regular expressions that are long when their repetitions are written out', () => {
  it('are told from usual ones without compiling them', () => {
    for (const [pattern, size] of [
      ['', 0],
      ['abc', 3],
      ['a{3}', 3],
      ['a{2,}b', 3],
      ['(ab){1,10}', 20],
      ['((ab){10}c){10}', 210],
      ['(a|b{5})+\\{2}', 11],
      ['x{1,1000}{1,1000}', 1_000_000],
      [')){9}(', 10],
    ] as const)
      expect(writtenOut(pattern), pattern).to.equal(size)
    const uuid = '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}'
    for (const usual of [uuid, '^/api/v[0-9]{1,3}/(users|orders)/[^/]{1,64}$', '(.*\\.)?example\\.com', '[0-9]{1,3}(\\.[0-9]{1,3}){3}'])
      expect(writtenOut(usual), usual).to.be.lessThan(200)
  })

  it('exceed a limit at once, and are not compiled', () => {
    const checks = new PatternChecks(25, () => 0, 2000)
    expect([checks.fault('(?=a)'), checks.isExhausted]).to.have.nested.property('[1]', false)
    expect([checks.fault(`(${'x{1,100}|'.repeat(80)}y){1,10}(?=a)`), checks.isExhausted]).to.deep.equal([undefined, true])
    const unlimited = new PatternChecks()
    expect([unlimited.fault('(x{1,100}){1,30}'), unlimited.isExhausted][1]).to.equal(false)
  })
})
