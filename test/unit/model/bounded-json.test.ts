import { expect } from 'chai'
import fc from 'fast-check'
import { parseBounded } from '../../../src/model/bounded-json.ts'
import { OwnTime } from '../../harness/own-time.ts'
import '../../harness/seed.ts'

describe('bounded JSON', () => {
  it('is parsed as any JSON is, whatever its strings contain', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 10 }), (value) => {
        const text = JSON.stringify(value)
        expect(parseBounded(text)).to.deep.equal(JSON.parse(text))
      }),
    )
    const brackets = { a: '['.repeat(1000), ['{'.repeat(100)]: ['"', '\\', '\\"', ','.repeat(100_000)] }
    expect(parseBounded(JSON.stringify(brackets))).to.deep.equal(brackets)
    for (const text of ['', '"', '"\\', '{', ']', '[1,]', 'x']) expect(() => parseBounded(text), text).to.throw(/^not JSON$/)
  })

  it('may have 256 levels and 50,000 values', () => {
    const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`
    expect(parseBounded(deep(256))).to.be.an('array')
    expect(() => parseBounded(deep(257))).to.throw(/^nested in more than 256 levels$/)
    const wide = (values: number) => `[${Array(values).fill('1').join()}]`
    expect(parseBounded(wide(49_999))).to.have.length(49_999)
    expect(() => parseBounded(wide(50_000))).to.throw(/^more than 50000 values$/)
  })

  it('costs little for a megabyte that is deep or has many values', () => {
    const time = new OwnTime()
    const texts = [
      '['.repeat(1_048_576),
      `[${'{},'.repeat(349_000)}{}]`,
      `{"keys":[${'{"kty":"RSA"},'.repeat(74_000)}{}]}`,
      `"${'\\"'.repeat(524_000)}"`,
    ]
    for (const text of texts.slice(0, 3)) for (let round = 0; round < 20; round++) expect(() => parseBounded(text)).to.throw()
    expect(parseBounded(texts[3] as string)).to.have.length(524_000)
    expect(time.ms() / 61, 'milliseconds a text').to.be.below(20)
  })
})
