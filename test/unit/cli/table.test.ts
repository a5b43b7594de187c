/** Tables of commands. */
import { expect } from 'chai'
import { table } from '../../../src/cli/table.ts'

describe('table', () => {
  const rows = [
    ['a', 'short'],
    ['long-name', 'the reason is a text of several words, and a-name-without-any-space-that-is-longer-than-the-column'],
  ]

  it('leaves lines as long as they are where there is no terminal', () => {
    expect(table(['NAME', 'BECAUSE'], rows)).to.equal(`NAME       BECAUSE\na          short\nlong-name  ${rows[1]?.[1]}`)
  })

  it('folds the last column at the width of the terminal, and cuts words only where they are longer', () => {
    const shown = table(['NAME', 'BECAUSE'], rows, false, 40)
    expect(shown.split('\n')).to.deep.equal([
      'NAME       BECAUSE',
      'a          short',
      'long-name  the reason is a text of',
      '           several words, and',
      '           a-name-without-any-space-that',
      '           -is-longer-than-the-column',
    ])
  })

  it('leaves twenty characters to the last column of a narrow terminal, and colours each cell', () => {
    const shown = table(['NAME', 'STATUS'], [['x'.repeat(50), { text: 'REJECTED by its own proxy', means: 'bad' }]], true, 30)
    expect(shown.split('\n').slice(1)).to.deep.equal([`${'x'.repeat(50)}  \u001b[31mREJECTED by its own\u001b[0m`, `${' '.repeat(52)}proxy`])
  })
})
