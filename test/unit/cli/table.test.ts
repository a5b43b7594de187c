/** Tables of commands. */
import { expect } from 'chai'
import fc from 'fast-check'
import { foldedLines } from '../../../src/cli/folding.ts'
import { table } from '../../../src/cli/table.ts'
import { runs } from '../../harness/seed.ts'

describe('table', () => {
  const rows = [
    ['a', 'short'],
    ['long-name', 'the reason is a text of several words, and a-name-without-any-space-that-is-longer-than-the-column'],
  ]

  it('leaves lines as long as they are where there is no terminal', () => {
    expect(table(['NAME', 'BECAUSE'], rows)).to.equal(`NAME       BECAUSE\na          short\nlong-name  ${rows[1]?.[1]}`)
  })

  it('folds the widest column at the width of the terminal, and cuts words only where they are longer, after a mark', () => {
    const shown = table(['NAME', 'BECAUSE'], rows, false, 40)
    expect(shown.split('\n')).to.deep.equal([
      'NAME       BECAUSE',
      'a          short',
      'long-name  the reason is a text of',
      '           several words, and',
      '           a-name-without-any-space-',
      '           that-is-longer-than-the-',
      '           column',
    ])
  })

  it('folds columns in the middle too, the widest ones first, and colours each part of a cell', () => {
    const cells = ['outbound|9080||reviews.shop.svc.cluster.local', { text: 'REJECTED by its own proxy', means: 'bad' as const }, 'yes']
    expect(table(['CLUSTER', 'STATUS', 'SENT'], [cells], true, 46).split('\n')).to.deep.equal([
      'CLUSTER              STATUS               SENT',
      'outbound|9080||      \u001b[31mREJECTED by its own\u001b[0m  yes',
      'reviews.shop.svc.    \u001b[31mproxy\u001b[0m',
      'cluster.local',
    ])
  })

  it('gives the last cell of a row that is shorter than the head the place of the columns that are left', () => {
    const lines = [
      ['one', 'a', 'b'],
      ['two', 'a type within it is not known'],
    ]
    expect(table(['NAME', 'A', 'B'], lines, false, 24).split('\n')).to.deep.equal([
      'NAME  A                B',
      'one   a                b',
      'two   a type within it',
      '      is not known',
    ])
  })

  it('lists the cells of each row where the columns have no place beside each other', () => {
    const head = ['PROXY', 'STATUS', 'LISTENERS', 'CLUSTERS']
    const lines = [
      ['web-0.shop', { text: 'SYNCED', means: 'good' as const }, 'SYNCED', 'it has refused all of these'],
      ['', '', '', 'and others'],
      ['cart-0.shop', 'STALE', 'STALE', 'SYNCED'],
    ]
    expect(table(head, lines, false, 30).split('\n')).to.deep.equal([
      ...[
        'PROXY      web-0.shop',
        'STATUS     SYNCED',
        'LISTENERS  SYNCED',
        'CLUSTERS   it has refused all',
        '           of these',
        'CLUSTERS   and others',
        '',
      ],
      ...['PROXY      cart-0.shop', 'STATUS     STALE', 'LISTENERS  STALE', 'CLUSTERS   SYNCED'],
    ])
  })

  it('has no line that is longer than the terminal, whatever is in it', () => {
    const text = fc.array(fc.stringMatching(/^[a-z./|-]{1,40}$/), { maxLength: 6 }).map((words) => words.join(' '))
    const rows = fc.array(fc.tuple(text, text, text, text), { minLength: 1, maxLength: 4 })
    fc.assert(
      fc.property(rows, fc.integer({ min: 40, max: 120 }), (cells, width) => {
        const shown = table(['NAME', 'STATUS', 'VERSION', 'BECAUSE'], cells, false, width)
        expect(shown.split('\n').filter((line) => line.length > width)).to.deep.equal([])
        expect(shown.replaceAll(/\s/g, '').length).to.be.at.least(cells.flat().join('').replaceAll(' ', '').length)
      }),
      { numRuns: runs(200) },
    )
  })
})

describe('lines of text on a terminal', () => {
  it('are folded at spaces, further in, and those that are short enough are as they were', () => {
    expect(foldedLines('short\n  gateway.demo asks for kubernetes://nosecret, which does not exist', 30).split('\n')).to.deep.equal([
      'short',
      '  gateway.demo asks for',
      '    kubernetes://nosecret,',
      '    which does not exist',
    ])
  })

  it('are as long as they are where there is no terminal', () => {
    expect(foldedLines('x '.repeat(200))).to.equal('x '.repeat(200))
  })

  it('count no colours', () => {
    expect(foldedLines('\u001b[31mFAILS\u001b[0m: the connection is closed', 30)).to.equal('\u001b[31mFAILS\u001b[0m: the connection is\n  closed')
  })
})
