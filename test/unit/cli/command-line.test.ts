import { expect } from 'chai'
import { type CommandSpec, readCommandLine } from '../../../src/cli/command-line.ts'
import type { FlagTable } from '../../../src/cli/flag-table.ts'

const table: FlagTable = {
  name: { type: 'string', char: 'n', default: '', about: '' },
  list: { type: 'slice', default: [], about: '' },
  path: { type: 'array', default: [], about: '' },
  quick: { type: 'switch', char: 'q', default: false, about: '' },
}
const other: FlagTable = { color: { type: 'string', default: '', about: '' } }
const command = (flags: FlagTable, args: CommandSpec['args'] = []): CommandSpec => ({
  summary: '',
  examples: [],
  args,
  flags: [{ heading: '', table: flags }],
  run: async () => {},
})
const commands = {
  run: command(table, [
    { name: 'first', about: '', required: true },
    { name: 'second', about: '', required: false },
  ]),
  paint: command(other),
  'paint walls': command(other, [{ name: 'which', about: '', required: false }]),
}
const read = (line: string) => readCommandLine(line.split(' '), commands)?.line

describe('the parser of command lines', () => {
  it('finds a command of two words, with flags between them', () => {
    for (const line of ['paint walls all --color red', 'paint --color red walls all']) {
      const found = readCommandLine(line.split(' '), commands)
      expect(found?.command).to.equal(commands['paint walls'])
      expect(found?.line).to.deep.equal({ flags: { color: 'red' }, args: ['all'] })
    }
    expect(readCommandLine(['paint', '--color', 'walls'], commands)?.command).to.equal(commands.paint)
  })

  for (const [line, flags, args] of [
    ['run x --name a --name b', { name: 'b' }, ['x']],
    ['run x --name=a -n b', { name: 'b' }, ['x']],
    ['run -nb x', { name: 'b' }, ['x']],
    ['run -n=b=c x y', { name: 'b=c' }, ['x', 'y']],
    ['--name run run x', { name: 'run' }, ['x']],
    ['run --list a,b --list c --path p,q --path r x', { list: ['a', 'b', 'c'], path: ['p,q', 'r'] }, ['x']],
    ['run --quick --quick=false x', { quick: false }, ['x']],
    ['run -q=false x --quick', { quick: true }, ['x']],
    ['run --name= x', { name: '' }, ['x']],
    ['run --name -5 - --', { name: '-5' }, ['-']],
    ['run --quick -- --name b', { quick: true }, ['--name', 'b']],
    ['run -- --help', {}, ['--help']],
  ] as const)
    it(`parses "${line}"`, () => {
      expect(read(line)).to.deep.equal({ flags, args })
    })

  it('leaves out unknown flags with their values for a lenient command', () => {
    const lenient = { ...command(table, [{ name: 'first', about: '', required: false }]), ignoresUnknown: true as const }
    const readLenient = (line: string) => readCommandLine(line.split(' '), { ...commands, lenient })?.line
    expect(readLenient('lenient --color red x --name a y -c --older=z --quick -- -d')).to.deep.equal({
      flags: { name: 'a', quick: true },
      args: ['x'],
      ignored: ['--color red', '-c', '--older=z', 'y', '-d'],
    })
    expect(readLenient('--name lenient lenient --name=b')).to.deep.equal({ flags: { name: 'b' }, args: [], ignored: [] })
    expect(readLenient('lenient --color')).to.deep.equal({ flags: {}, args: [], ignored: ['--color'] })
    expect(() => readLenient('lenient --name')).to.throw('Flag --name expects a value')
  })

  it('resolves a short flag that two commands define to the flag of the given command', () => {
    const twice = { ...commands, print: command({ neat: { type: 'switch', char: 'n', default: false, about: '' } }) }
    expect(readCommandLine(['print', '-n'], twice)?.line.flags).to.deep.equal({ neat: true })
    expect(readCommandLine(['run', 'x', '-n', 'a'], twice)?.line.flags).to.deep.equal({ name: 'a' })
  })

  for (const line of ['help run', 'help -n run', '--help', 'run --help', '--version', 'walk --name x', '', 'constructor'])
    it(`leaves ${JSON.stringify(line)} to the command-line library`, () => {
      expect(read(line)).to.equal(undefined)
    })

  for (const [line, message] of [
    ['run -q=perhaps x', 'invalid argument "perhaps" for "--quick": expected true or false'],
    ['run x --name', 'Flag --name expects a value'],
    ['run x --name --quick', 'Flag --name expects a value'],
    ['run x --nmae y -z', 'Nonexistent flags: --nmae, -z'],
    ['run x --color red', 'Nonexistent flag: --color'],
    ['paint -q -nb', 'Nonexistent flags: -q, -n'],
    ['run', 'missing argument for "run": first'],
    ['run x y z', 'unexpected argument "z" for "run"'],
  ] as const)
    it(`rejects ${line}`, () => {
      expect(() => read(line)).to.throw(message)
    })
})
