import { expect } from 'chai'
import { knownValues } from '../../../../src/cli/completion/fixed-values.ts'
import { type CompletedCommand, candidateLines, soughtIn } from '../../../../src/cli/completion/typed-line.ts'
import { levels } from '../../../../src/logging/levels.ts'

const global = { log: { type: 'option', multiple: true, helpValue: 'file', helpGroup: 'LOGGING', description: 'where it logs' } } as const
const commands: CompletedCommand[] = [
  {
    id: 'ask',
    summary: 'Ask',
    args: { method: {}, path: {} },
    flags: {
      ...global,
      form: { type: 'option', char: 'f', helpValue: 'a|b' },
      quick: { type: 'boolean' },
      secret: { type: 'boolean', hidden: true },
    },
  },
  { id: 'look', summary: 'Look', args: { path: {} }, flags: { ...global, list: { type: 'option', multiple: true, helpValue: 'x|y' } } },
  { id: 'root:show', summary: 'Show', args: {}, flags: global },
  { id: 'root:hide', summary: 'Hide', args: {}, flags: global },
  { id: 'unseen', hidden: true, args: {}, flags: { inner: { type: 'option' } } },
]
const sought = (line: string) => soughtIn(line.split(' '), commands, { root: 'Roots' })
const words = (line: string) => sought(line).candidates.map(({ word }) => word)

describe('completion of a line', () => {
  for (const [line, expected] of [
    ['', ['ask', 'look', 'root', 'help']],
    ['lo', ['ask', 'look', 'root', 'help']],
    ['root ', ['show', 'hide']],
    ['--log x root ', ['show', 'hide']],
    ['help ', ['ask', 'look', 'root']],
    ['help root ', ['show', 'hide']],
    ['ask --', ['--form', '--quick', '--log', '--help']],
    ['ask --quick --form a --log x -', ['--log', '--help']],
    ['--', ['--log', '--help']],
    ['root show ', []],
    ['unknown ', []],
  ] as const)
    it(`of ${JSON.stringify(line)} knows ${expected.join(', ') || 'nothing'}`, () => {
      expect(words(line)).to.deep.equal(expected)
    })

  for (const [line, value, kept] of [
    ['ask --form ', 'a|b', ''],
    ['ask -f ', 'a|b', ''],
    ['ask --form=', 'a|b', '--form='],
    ['ask --quick=', 'true|false', '--quick='],
    ['look --list x,', 'x|y', 'x,'],
    ['look --list=x,y,', 'x|y', '--list=x,y,'],
    ['ask --log=a,b', 'file', '--log='],
    ['ask ', 'ask method', ''],
    ['ask GET ', 'ask path', ''],
    ['ask --form a GET --quick ', 'ask path', ''],
    ['ask GET x y ', 'ask path', ''],
    ['look -- --list=', 'look path', ''],
    ['look a b ', 'look path', ''],
  ] as const)
    it(`of ${JSON.stringify(line)} looks for ${value}, after ${JSON.stringify(kept)}`, () => {
      const found = sought(line)
      expect([found.value, found.kept, found.candidates]).to.deep.equal([value, kept, []])
    })

  it('has the flags that are given', () => {
    expect(sought('ask --form=a --log x --quick ').given).to.deep.equal({ form: 'a', log: 'x', quick: '' })
  })

  it('knows the values of scopes, levels and lists of texts, and leaves files to the shell', () => {
    const known = (value: string, typed = '') => knownValues(value, typed, { scopes: ['ads', 'ca'], levels })?.map(({ word }) => word)
    expect(known('scope')).to.deep.equal(['ads', 'ca'])
    expect(known('scope:level')).to.deep.equal(['ads:', 'ca:'])
    expect(known('scope:level', 'ca:')).to.include.members(['ads:debug', 'ca:none'])
    expect(known('http|tcp')).to.deep.equal(['http', 'tcp'])
    expect(known('file')).to.deep.equal([])
    expect(known('look proxy')).to.equal(undefined)
  })

  it('prints a line each, without what a terminal would obey', () => {
    const candidates = [
      { word: 'web', about: 'first line\nsecond' },
      { word: 'we\x1b[2J', about: '' },
      { word: 'well', about: 'x'.repeat(1000) },
      { word: 'other', about: '' },
    ]
    expect(candidateLines(candidates, 'we')).to.deep.equal(['web\tfirst line', `well\t${'x'.repeat(99)}…`])
  })
})
