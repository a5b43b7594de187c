import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { openLog } from '../../../actors/runtime/log.ts'
import { createLogger } from '../../../actors/runtime/logger.ts'
import type { LogRecord } from '../../../protocols/messages/log.ts'
import { discoveryScopes, type LogOptions, parseScopeLevels } from '../../../src/logging/levels.ts'

const record: LogRecord = {
  time: Date.UTC(2021, 2, 4, 5, 6, 7) + 123.456,
  level: 'warn',
  scope: 'ads',
  message: 'one\nline',
  labels: { proxy: 'p', count: 2, isLast: true },
}
const levels = (text: string, fallback: 'info' | 'none' = 'info') => parseScopeLevels(text, discoveryScopes, fallback)

describe('the log', () => {
  let dir = ''
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'mesh-log-'))
  })
  afterEach(() => rmSync(dir, { recursive: true, force: true }))
  const open = (options: Partial<LogOptions> = {}) =>
    openLog({
      ...{ output: levels(''), stackTrace: levels('', 'none'), callers: [], asJson: false, rotate: undefined },
      targets: [join(dir, 'log')],
      ...options,
    })
  const written = () => readFileSync(join(dir, 'log'), 'utf8')

  it('has the documented console layout, and escapes line breaks in user-supplied text', () => {
    const log = open()
    log.write(record)
    log.write({ ...record, scope: 'default', labels: {}, caller: 'a/b.ts:1', stack: 'at x\nat y' })
    expect(written().split('\n')).to.deep.equal([
      '2021-03-04T05:06:07.123456Z\twarn\tads\tone\\u000aline\tproxy=p count=2 isLast=true',
      '2021-03-04T05:06:07.123456Z\twarn\ta/b.ts:1\tone\\u000aline',
      'at x',
      'at y',
      '',
    ])
  })

  it('has the documented fields in JSON, in their order, and labels as typed fields', () => {
    const log = open({ asJson: true })
    log.write({ ...record, caller: 'a/b.ts:1', stack: 'at x' })
    log.write({ ...record, scope: 'default', message: 'a %s is not replaced', labels: {} })
    const time = '"time":"2021-03-04T05:06:07.123456Z"'
    expect(written().split('\n')).to.deep.equal([
      `{"level":"warn",${time},"scope":"ads","caller":"a/b.ts:1","msg":"one\\nline","proxy":"p","count":2,"isLast":true,"stack":"at x"}`,
      `{"level":"warn",${time},"msg":"a %s is not replaced"}`,
      '',
    ])
  })

  it('filters by scope, and captures callers and stack traces where configured', () => {
    const seen: LogRecord[] = []
    const log = createLogger(
      {
        output: levels('ads:debug,model:none'),
        stackTrace: parseScopeLevels('ads:error', discoveryScopes, 'none'),
        callers: ['ads'],
      },
      (line) => seen.push(line),
    )
    log('ads').debug('a')
    log('ads').error('b')
    log('model').error('c')
    log('default').debug('d')
    log('default').info('e')
    expect(seen.map((line) => line.message)).to.deep.equal(['a', 'b', 'e'])
    expect(seen[0]?.caller).to.match(/^runtime\/log\.test\.ts:\d+$/)
    expect([seen[0]?.stack, seen[1]?.stack?.includes('log.test.ts')]).to.deep.equal([undefined, true])
  })

  it('changes the level of each scope at run time, for lines of this thread and for records of others', () => {
    const opened = open({ output: levels('ca:none') })
    const say = (round: number) => {
      for (const scope of ['ads', 'ca', 'model']) {
        opened.log(scope).debug(`own ${scope} debug ${round}`)
        for (const level of ['debug', 'error'] as const) opened.write({ ...record, scope, level, message: `${scope} ${level} ${round}`, labels: {} })
      }
    }
    say(1)
    opened.setLevels({ ...opened.levels, output: levels('ads:debug,ca:error,model:none') })
    say(2)
    opened.setLevels({ ...opened.levels, output: levels('all:none') })
    say(3)
    const messages = written().trimEnd().split('\n')
    expect(messages.map((line) => line.split('\t').at(-1))).to.deep.equal([
      ...['ads error 1', 'model error 1'],
      ...['own ads debug 2', 'ads debug 2', 'ads error 2', 'ca error 2'],
    ])
  })

  it('writes the error that ends the process with its stack, as the last line', () => {
    const opened = open({ asJson: true })
    opened.fatal(new TypeError('a bug'))
    opened.fatal('thrown text')
    const lines = written().trimEnd().split('\n')
    const [first, second] = lines.map((line) => JSON.parse(line))
    expect(first).to.include({ level: 'fatal', msg: 'a bug' })
    expect(first.stack).to.match(/^TypeError: a bug\n +at /)
    expect(second).to.include({ level: 'fatal', msg: 'thrown text' })
  })

  it('parses levels: a bare level is for the default scope, and `all` ends the list', () => {
    expect(levels('debug')).to.deep.equal({ fallback: 'info', scopes: { default: 'debug' } })
    expect(levels('all:error,ads:debug')).to.deep.equal({ fallback: 'error', scopes: {} })
  })

  it('rotates by size, keeps the configured number of backups, and deletes its own expired ones', async () => {
    const old = join(dir, 'mesh-2020-01-01T00-00-00.000.log')
    writeFileSync(old, 'old')
    writeFileSync(join(dir, '.mesh.log.backups'), 'mesh-2020-01-01T00-00-00.000.log\n')
    writeFileSync(join(dir, 'mesh-2020-01-02T00-00-00.000.log'), 'somebody else wrote this')
    const log = open({ targets: [], rotate: { path: join(dir, 'mesh.log'), maxSizeMb: 1, maxAgeDays: 1, maxBackups: 2 } })
    for (let line = 0; line < 5000; line++) log.write({ ...record, message: 'x'.repeat(1000) })
    await log.flush()
    const backups = readdirSync(dir).filter((name) => /^mesh-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}\.log$/.test(name))
    expect(backups).to.include('mesh-2020-01-02T00-00-00.000.log').and.to.have.length(3)
    expect(readdirSync(dir)).not.to.include('mesh-2020-01-01T00-00-00.000.log')
    expect(statSync(join(dir, 'mesh.log')).size).to.be.lessThan(2 * 1024 * 1024)
    expect(readFileSync(join(dir, backups[2] as string), 'utf8').startsWith('2021-')).to.equal(true)
  })
})
