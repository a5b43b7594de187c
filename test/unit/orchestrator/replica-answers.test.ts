/** What replicas of discovery tell each other, as far as it is pure (docs/operation.md, A1, A4, A5). */
import { expect } from 'chai'
import fc from 'fast-check'
import { isAnswerOf } from '../../../src/orchestrator/replica-answers.ts'
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
    expect(isAnswerOf('ofProxy', null)).to.equal(false)
  })
})
