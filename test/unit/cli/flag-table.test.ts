import { expect } from 'chai'
import { type FlagTable, normalizeArguments } from '../../../src/cli/flag-table.ts'

const table: FlagTable = {
  name: { type: 'string', char: 'n', default: '', about: '' },
  list: { type: 'slice', default: [], about: '' },
  path: { type: 'array', default: [], about: '' },
  quick: { type: 'switch', char: 'q', default: false, about: '' },
}

describe('command lines', () => {
  for (const [given, expected] of [
    ['run --name a --name b', 'run --name=b'],
    ['run --name=a -n b', 'run --name=b'],
    ['run -nb', 'run --name=b'],
    ['run -n=b x', 'run --name=b x'],
    ['--name run run', 'run --name=run'],
    ['run --list a,b --list c --path p --path q', 'run --list=a,b --list=c --path=p --path=q'],
    ['run --quick --quick=false', 'run'],
    ['run -q=false --quick -q', 'run --quick'],
    ['run --name', 'run --name'],
    ['run --name --quick', 'run --name --quick'],
    ['run --other --name a -- --name b', 'run --other --name=a -- --name b'],
    ['help -n run', 'help -n run'],
    ['--version', '--version'],
  ] as const)
    it(`${given} -> ${expected}`, () => {
      expect(normalizeArguments(given.split(' '), ['run'], [table]).join(' ')).to.equal(expected)
    })

  it('names a switch that is neither true nor false', () => {
    expect(() => normalizeArguments(['run', '-q=perhaps'], ['run'], [table])).to.throw(
      'invalid argument "perhaps" for "--quick": expected true or false',
    )
  })
})
