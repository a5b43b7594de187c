/** What replicas of discovery tell each other, as far as it is pure (docs/operation.md, A1, A4, A5). */
import { expect } from 'chai'
import fc from 'fast-check'
import { excessOf, isAnswerOf } from '../../../src/orchestrator/replica-answers.ts'
import { readCursors, writeCursors } from '../../../src/orchestrator/replica-cursors.ts'
import { runs } from '../../harness/seed.ts'

describe('cursors of several replicas', () => {
  it('are read as they were written', () => {
    const cursors = fc.dictionary(fc.stringMatching(/^[a-z0-9-]{1,40}$/), fc.stringMatching(/^[a-f0-9]{1,16}(\.\d{1,9}){2}$/), { maxKeys: 64 })
    fc.assert(
      fc.property(cursors, (made) => {
        expect(Object.fromEntries(readCursors(writeCursors(Object.entries(made))))).to.deep.equal({ ...made })
      }),
      { numRuns: runs(200) },
    )
  })

  it('are none in any other text, which is read up to a bound', () => {
    for (const text of ['', 'a1.2.3', '=', 'a=', '=b', ',,']) expect([...readCursors(text)], text).to.deep.equal([])
    const many = writeCursors(Array.from({ length: 1000 }, (_, index) => [`replica-${index}`, '1.2.3'] as const))
    expect(readCursors(many).size).to.equal(64)
  })
})

describe('answers of other replicas', () => {
  const shares = [{ identity: 'spiffe://a/ns/b/sa/c', streams: 1, classes: 1, nodeBytes: 10 }]

  it('are taken in the form that readers rely on, and in no other', () => {
    expect(isAnswerOf('shares', shares)).to.equal(true)
    expect(isAnswerOf('shares', [{ ...shares[0], streams: -1 }])).to.equal(false)
    expect(isAnswerOf('shares', shares[0])).to.equal(false)
    expect(isAnswerOf('pushes', { cursor: '', dropped: 0, pushes: [] })).to.equal(true)
    expect(isAnswerOf('pushes', { cursor: '', dropped: 0, pushes: [{}] })).to.equal(false)
    const presented = { serial: '0a', root: 'b', notAfter: 1 }
    const stream = { node: 'sidecar~10.0.0.1~a.b~b.svc', identities: ['spiffe://a/ns/b/sa/c'], presented }
    expect(isAnswerOf('streams', [stream, { ...stream, identities: [], presented: undefined }])).to.equal(true)
    expect(isAnswerOf('streams', [{ ...stream, presented: { ...presented, notAfter: '1' } }])).to.equal(false)
    expect(isAnswerOf('streams', [{ ...stream, identities: 'a' }])).to.equal(false)
    expect(isAnswerOf('ofProxy', null)).to.equal(false)
  })
})

describe('the text of an answer of a replica', () => {
  it('is read up to a number of values and a depth, whatever its strings have in them', () => {
    const list = (values: number) => `[${'{},'.repeat(values)}{}]`
    expect(excessOf(list(999_998))).to.equal(undefined)
    expect(excessOf(list(1_000_000))).to.equal('it has more than 2000000 values')
    const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
    expect([excessOf(nested(64)), excessOf(`[${nested(2)},${nested(63)}]`)]).to.deep.equal([undefined, undefined])
    expect(excessOf(nested(65))).to.equal('its values are nested more than 64 deep')
    const odd = JSON.stringify(['['.repeat(3_000_000), '\\"[[['.repeat(100), '\\', { '"': '\\\\' }])
    expect(excessOf(odd)).to.equal(undefined)
    expect([excessOf('"' + '['.repeat(100)), excessOf('')], 'is no JSON').to.deep.equal([undefined, undefined])
  })
})
