import { expect } from 'chai'
import fc from 'fast-check'
import { CollectedBytes } from '../../../src/model/collected-bytes.ts'
import '../../harness/seed.ts'

describe('collected bytes', () => {
  it('are those of all pieces, whatever becomes of these, and begin anew once they are taken', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 40 })), fc.nat({ max: 40 }), (pieces, takenAfter) => {
        const collected = new CollectedBytes()
        let wanted = Buffer.alloc(0)
        for (const [index, piece] of pieces.entries()) {
          wanted = Buffer.concat([wanted, piece])
          collected.add(piece)
          piece.fill(0)
          expect([collected.length, collected.bytes]).to.deep.equal([wanted.length, wanted])
          if (index !== takenAfter) continue
          const taken = collected.take()
          collected.add(Buffer.from('other'))
          expect(taken).to.deep.equal(wanted)
          wanted = Buffer.from('other')
        }
      }),
    )
  })
})
