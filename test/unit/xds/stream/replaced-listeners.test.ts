/** Listeners that a proxy cannot change in place (docs/xds-protocol.md, S11, D10). */
import { expect } from 'chai'
import { listenerType } from '../../../../src/xds/type-urls.ts'
import { contentOf, Stream } from '../../../harness/protocol-stream.ts'

const ab = { a: '1', b: '1' }

describe('the rules of the xDS protocol', () => {
  for (const isDelta of [false, true])
    it(`${isDelta ? 'D10, delta' : 'S11, SotW'}: a listener that the proxy cannot change is removed and sent again, each version once; other refusals are reported`, () => {
      const stream = new Stream(isDelta, { [listenerType]: ab })
      const refuse = (...lines: string[]) => {
        const detail = `Error adding/updating listener(s) ${lines.join('\n')}\n`
        const nonce = stream.session.watches.get(listenerType)?.nonce as string
        stream.ask(listenerType, { nonce, refused: detail })
        return stream.session.refused(listenerType, nonce, detail)?.resources.map(({ name }) => name)
      }
      const stuck = (name: string) => `${name}: Listener ${name}: reuse port cannot be changed during an update`
      stream.ask(listenerType, {})
      stream.next()
      stream.ask(listenerType, { nonce: 'last' })
      for (const content of ['2', '3']) {
        stream.set(listenerType, { a: content, b: '1' })
        expect(contentOf(stream.next())).to.equal(isDelta ? `a=${content}` : `a=${content} b=1`)
        expect(refuse(stuck('a')), 'not reported').to.equal(undefined)
        expect(stream.session.isDue()).to.equal(true)
        expect(contentOf(stream.next()), 'the removal').to.equal(isDelta ? '-a' : 'b=1')
        stream.ask(listenerType, { nonce: 'last' })
        expect(contentOf(stream.next()), 'again').to.equal(isDelta ? `a=${content}` : `a=${content} b=1`)
        expect(stream.next()).to.equal(undefined)
      }
      expect(refuse(stuck('a')), 'the second time').to.deep.equal(['a'])
      expect(stream.next()).to.equal(undefined)
      stream.set(listenerType, { a: '4', b: '2' })
      stream.next()
      expect(refuse(stuck('a'), 'b: no filter'), 'beside another').to.deep.equal(['b'])
      expect(contentOf(stream.next())).to.equal(isDelta ? '-a' : 'b=2')
      expect(contentOf(stream.next())).to.equal(isDelta ? 'a=4' : 'a=4 b=2')
      expect(stream.next()).to.equal(undefined)
    })
})
