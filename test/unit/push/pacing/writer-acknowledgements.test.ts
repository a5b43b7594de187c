import { expect } from 'chai'
import { WriterAcknowledgements } from '../../../../src/push/pacing/writer-acknowledgements.ts'

describe('writers that must acknowledge a push', () => {
  it('are all writers, and acknowledgements of earlier pushes do not count', () => {
    const acknowledgements = new WriterAcknowledgements()
    acknowledgements.begin(7, ['a', 'b'])
    expect([
      acknowledgements.acknowledged('a', 6),
      acknowledgements.acknowledged('a', 7),
      acknowledgements.waiting,
      acknowledgements.acknowledged('b', 8),
      acknowledgements.waiting,
    ]).to.deep.equal([false, false, true, true, false])
    expect(acknowledgements.acknowledged('b', 8)).to.equal(false)
  })

  it('exclude a writer that has ended', () => {
    const acknowledgements = new WriterAcknowledgements()
    acknowledgements.begin(1, ['a', 'b'])
    acknowledgements.acknowledged('a', 1)
    expect([acknowledgements.gone('b'), acknowledgements.gone('b'), acknowledgements.waiting]).to.deep.equal([true, false, false])
  })

  it('exclude a writer that missed the timeout of a push, until it has acknowledged the last push', () => {
    const acknowledgements = new WriterAcknowledgements()
    acknowledgements.begin(1, ['hung', 'prompt'])
    acknowledgements.acknowledged('prompt', 1)
    acknowledgements.timedOut()
    expect(acknowledgements.waiting).to.equal(false)
    acknowledgements.begin(2, ['hung', 'prompt'])
    expect(acknowledgements.acknowledged('prompt', 2)).to.equal(true)
    acknowledgements.acknowledged('hung', 1)
    acknowledgements.begin(3, ['hung', 'prompt'])
    acknowledgements.acknowledged('hung', 3)
    acknowledgements.begin(4, ['hung', 'prompt'])
    expect([acknowledgements.acknowledged('prompt', 4), acknowledgements.acknowledged('hung', 4)]).to.deep.equal([false, true])
  })

  it('are all writers if none keeps up', () => {
    const acknowledgements = new WriterAcknowledgements()
    acknowledgements.begin(1, ['a'])
    acknowledgements.timedOut()
    acknowledgements.begin(2, ['a'])
    expect([acknowledgements.waiting, acknowledgements.acknowledged('a', 2)]).to.deep.equal([true, true])
  })
})
