import { string } from '@oclif/core/args'
import type { FlagInput } from '@oclif/core/interfaces'
import { expect } from 'chai'
import { duration, int, list, notYet, paths, text, toggle } from '../../../src/cli/flags.ts'
import { findCommand } from '../../../src/cli/pflag.ts'
import { parseLine } from '../../harness/command-line.ts'
import { rejected } from '../../harness/rejected.ts'

const flags = {
  name: text({ char: 'n', default: '', description: '' }),
  list: list({ default: [], description: '' }),
  path: paths({ default: [], description: '' }),
  quick: toggle({ char: 'q', description: '' }),
  fine: toggle({ char: 'f', description: '' }),
  wait: duration({ char: 'w', default: '10s', range: ['1s', '1h'], description: '' }),
}
const args = {
  first: string({ required: true, ignoreStdin: true }),
  second: string({ ignoreStdin: true }),
}
const given = ({ flags }: { flags: object }) =>
  Object.fromEntries(Object.entries(flags).filter(([name, value]) => name in standards && JSON.stringify(value) !== JSON.stringify(standards[name])))
const standards: Record<string, unknown> = { name: '', list: [], path: [], quick: false, fine: false, wait: 10_000 }
const words = (line: string) => line.split(' ').filter((word) => word !== '')

describe('a command line', () => {
  for (const [line, values, positional] of [
    ['x --name a --name b', { name: 'b' }, ['x']],
    ['x --name=a -n b', { name: 'b' }, ['x']],
    ['-nb x', { name: 'b' }, ['x']],
    ['-n=b=c x y', { name: 'b=c' }, ['x', 'y']],
    ['-n5 x', { name: '5' }, ['x']],
    ['--list a,b --list c --path p,q --path r x', { list: ['a', 'b', 'c'], path: ['p,q', 'r'] }, ['x']],
    ['--list= x', {}, ['x']],
    ['--quick --quick=false x', {}, ['x']],
    ['-q=false x --quick', { quick: true }, ['x']],
    ['-q=T -f=0 x', { quick: true }, ['x']],
    ['-qfnb x', { quick: true, fine: true, name: 'b' }, ['x']],
    ['-qf=false x', { quick: true }, ['x']],
    ['--name= x', {}, ['x']],
    ['--wait 1m30s x', { wait: 90_000 }, ['x']],
    ['-w=20s -w 30s x', { wait: 30_000 }, ['x']],
    ['--name -5 - --', { name: '-5' }, ['-']],
    ['--quick -- --name b', { quick: true }, ['--name', 'b']],
    ['-- --help', {}, ['--help']],
  ] as const)
    it(`is parsed as pflag would: ${line}`, async () => {
      const parsed = await parseLine(words(line), { flags, args })
      expect([given(parsed), Object.values(parsed.args)]).to.deep.equal([values, positional])
    })

  for (const [line, message] of [
    ['-q=perhaps x', 'invalid argument "perhaps" for "--quick": expected true or false'],
    ['x --name', 'Flag --name expects a value'],
    ['x --name --quick', 'Flag --name expects a value'],
    ['x --nmae y -z', 'Nonexistent flags: --nmae, -z; did you mean --name?'],
    ['x --nam y', 'Nonexistent flag: --nam; did you mean --name?'],
    ['x --no-quick', 'Nonexistent flag: --no-quick'],
    ['x -qz', 'invalid argument "z" for "--quick": expected true or false'],
    ['x --quick true extra', 'Unexpected argument: extra'],
    ['x --wait soon', 'invalid argument "soon" for "--wait": expected a duration such as 1m30s, from 1s to 1h'],
    ['x --wait 2h', 'invalid argument "2h" for "--wait"'],
    ['x --log_output_level nope:info', '--log_output_level: unknown scope "nope"'],
    ['', 'Missing 1 required arg:\nfirst'],
    ['x y z', 'Unexpected argument: z'],
  ] as const)
    it(`is rejected with the flag and the reason: ${line}`, async () => {
      expect(await rejected(parseLine(words(line), { flags, args }))).to.contain(message)
    })

  it('tells which flags were given, with their texts', async () => {
    const { given } = await parseLine(words('x --wait 1m -q --list a --list b,c'), { flags, args })
    expect([...given]).to.have.deep.members([
      ['wait', '1m'],
      ['quick', 'true'],
      ['list', 'a,b,c'],
    ])
  })

  it('has defaults and values of variables where flags are not given', async () => {
    const some = {
      name: text({ default: 'none', env: 'NAME', description: '' }),
      quick: toggle({ env: 'QUICK', description: '' }),
      count: int({ default: 3, range: [0, 9], env: 'COUNT', description: '' }),
    }
    const values = async (line: string, environment: NodeJS.ProcessEnv) => {
      const { flags, warnings } = await parseLine(words(line), { flags: some }, environment)
      return [flags.name, flags.quick, flags.count, warnings]
    }
    expect(await values('', {})).to.deep.equal(['none', false, 3, []])
    expect(await values('', { NAME: 'a', QUICK: '1', COUNT: '4' })).to.deep.equal(['a', true, 4, []])
    expect(await values('--name b --quick=false --count 5', { NAME: 'a', QUICK: '1', COUNT: '4' })).to.deep.equal(['b', false, 5, []])
    expect(await values('', { NAME: '', QUICK: 'perhaps', COUNT: '40' })).to.deep.equal([
      'none',
      false,
      3,
      ['environment variable QUICK: "perhaps" cannot be read; it is left out', 'environment variable COUNT: "40" cannot be read; it is left out'],
    ])
  })

  it('leaves out unknown flags with their values for a lenient command', async () => {
    const lenient = async (line: string) => {
      const {
        args: values,
        ignored,
        ...rest
      } = await parseLine(words(line), { flags, args: { first: string({ ignoreStdin: true }) }, strict: false })
      return [given(rest), Object.values(values), ignored]
    }
    expect(await lenient('--color red x --name a y -c --older=z --quick -- -d')).to.deep.equal([
      { name: 'a', quick: true },
      ['x'],
      ['--color red', '-c', '--older=z', 'y', '-d'],
    ])
    expect(await lenient('--color')).to.deep.equal([{}, [], ['--color']])
    expect(await rejected(lenient('--name'))).to.contain('Flag --name expects a value')
  })
})

describe('the command in a command line', () => {
  const other: FlagInput = { color: text({ default: '', description: '' }) }
  const commands = [
    { id: 'run', flags },
    { id: 'paint', flags: other },
    { id: 'paint:walls', flags: other },
  ] as unknown as Parameters<typeof findCommand>[1]
  const find = (line: string) => findCommand(words(line), commands)

  it('may have two words, and flags before and between them', () => {
    for (const line of ['paint walls --color red all', 'paint --color red walls all', '--color red paint walls all'])
      expect(find(line), line).to.deep.equal({ id: 'paint:walls', argv: ['--color', 'red', 'all'] })
    expect(find('paint --color walls')).to.deep.equal({ id: 'paint', argv: ['--color', 'walls'] })
    expect(find('--name run run x')).to.deep.equal({ id: 'run', argv: ['--name', 'run', 'x'] })
    expect(find('run -- --help')).to.deep.equal({ id: 'run', argv: ['--', '--help'] })
  })

  for (const line of ['help run', 'help -n run', '--help', 'run --help', 'run -h', '--version', 'walk --name x', '', 'constructor'])
    it(`is none of ours in ${JSON.stringify(line)}`, () => {
      expect(find(line)).to.equal(undefined)
    })
})

describe('a flag without effect', () => {
  it('says so in help', () => {
    expect(notYet('there is no oven', text({ default: '', description: 'temperature' })).description).to.equal(
      'temperature; it has no effect yet: there is no oven',
    )
  })
})
