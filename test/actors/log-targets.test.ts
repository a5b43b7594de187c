import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect } from 'chai'
import { openLog } from '../../actors/runtime/log.ts'
import { LogTarget } from '../../actors/runtime/log-target.ts'
import { RotatingFile } from '../../actors/runtime/rotating-file.ts'
import type { LogRecord } from '../../protocols/messages/log.ts'
import { until } from '../harness/until.ts'

const day = 86_400_000
const record = (message: string): LogRecord => ({ time: 0, level: 'info', scope: 'default', message, labels: {} })
const levels = { fallback: 'info', scopes: {} } as const

describe('the log', () => {
  let dir = ''
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'mesh-log-'))
  })
  afterEach(() => rmSync(dir, { recursive: true, force: true }))
  const path = (name: string) => join(dir, name)
  const read = (name: string) => readFileSync(path(name), 'utf8')
  const backups = () => readdirSync(dir).filter((name) => /^a-\d{4}-.*\.log$/.test(name))
  const open = (targets: string[], rotate?: string) =>
    openLog({
      output: levels,
      stackTrace: levels,
      callers: [],
      asJson: false,
      targets,
      rotate: rotate === undefined ? undefined : { path: rotate, maxSizeMb: 1, maxAgeDays: 0, maxBackups: 0 },
    })

  describe('rotation', () => {
    const half = Buffer.alloc(600_000, 'x')
    const problems: string[] = []
    const rotating = (limits: { maxAgeDays?: number; maxBackups?: number } = {}, now?: () => number) =>
      new RotatingFile({ path: path('a.log'), maxSizeMb: 1, maxAgeDays: 0, maxBackups: 0, ...limits }, (problem) => problems.push(problem), now)
    beforeEach(() => problems.splice(0))

    it('renames the file before it exceeds its size, also after a restart', () => {
      const first = rotating()
      first.write(half)
      first.write(half)
      first.close()
      const second = rotating()
      second.write(half)
      second.close()
      expect(backups()).to.have.length(2)
      expect(read('a.log')).to.have.length(half.length)
      expect(backups()[0]).to.match(/^a-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}\.log$/)
    })

    it('keeps the configured number of backups, and never deletes files of others', () => {
      const others = ['a-2020-01-01T00-00-00.000.log', 'a-notes.log', 'a-2019-01-01T00-00-00.000.log']
      for (const name of others) writeFileSync(path(name), 'mine')
      mkdirSync(path('a-2018-01-01T00-00-00.000.log'))
      const file = rotating({ maxBackups: 2, maxAgeDays: 1 })
      for (let count = 0; count < 6; count++) file.write(half)
      for (const name of others) expect(read(name)).to.equal('mine')
      expect(backups().filter((name) => !others.includes(name) && !name.startsWith('a-2018'))).to.have.length(2)
      expect(problems).to.deep.equal([])
    })

    it('deletes its expired backups', () => {
      let now = Date.UTC(2026, 0, 1)
      const file = rotating({ maxAgeDays: 3 }, () => now)
      for (let count = 0; count < 3; count++) {
        file.write(half)
        now += day
      }
      expect(backups()).to.have.length(2)
      now += 2 * day
      rotating({ maxAgeDays: 3 }, () => now).prune()
      expect(backups()).to.deep.equal(['a-2026-01-03T00-00-00.000.log'])
    })

    it('continues in the same file with one log line if it cannot be renamed', () => {
      mkdirSync(path('.a.log.backups'))
      const file = rotating()
      for (let count = 0; count < 4; count++) file.write(half)
      expect(read('a.log')).to.have.length(4 * half.length)
      expect(problems.filter((problem) => problem.includes('cannot be rotated'))).to.have.length(1)
    })

    it('leaves a directory in the place of a recorded backup alone', () => {
      const name = 'a-2018-01-01T00-00-00.000.log'
      mkdirSync(path(name))
      writeFileSync(path('.a.log.backups'), `${name}\n../outside\n`)
      const file = rotating({ maxBackups: 1, maxAgeDays: 1 })
      for (let count = 0; count < 3; count++) file.write(half)
      expect(existsSync(path(name))).to.equal(true)
      expect(problems).to.deep.equal([])
    })
  })

  describe('a target that cannot be written', () => {
    it('(a full disk) is reported once by the others, and logs the number of lost lines later', async () => {
      symlinkSync('/dev/full', path('full.log'))
      const log = open([path('good.log'), path('full.log')], path('full.log'))
      for (const message of ['one', 'two', 'three']) log.write(record(message))
      expect(read('good.log').match(/cannot write the log to .*: ENOSPC/g)).to.have.length(2)
      rmSync(path('full.log'))
      log.reopen()
      log.write(record('four'))
      await log.flush()
      expect(read('full.log'))
        .to.match(/3 log lines for --log_target .* were dropped: .*ENOSPC.*\n/)
        .and.to.match(/four\n/)
    })

    it('(a directory in its place) is reported in the others', () => {
      mkdirSync(path('taken'))
      const log = open([path('good.log'), path('taken')], path('taken'))
      log.write(record('one'))
      expect(read('good.log')).to.contain('one\n').and.to.contain('EISDIR')
    })

    it('(a directory that cannot be created) is reported in the others', () => {
      writeFileSync(path('file'), '')
      const log = open([path('good.log'), path('file/below.log')], path('file/rotating.log'))
      log.write(record('one'))
      expect(read('good.log')).to.contain('one\n').and.to.contain('file/below.log').and.to.contain('file/rotating.log')
    })

    it('is written again as soon as possible', async () => {
      mkdirSync(path('taken'))
      const log = open([path('taken')])
      log.write(record('one'))
      rmSync(path('taken'), { recursive: true })
      await until('the word about the lost line', () => /1 log line for .* was dropped/.test(read('taken')))
      log.write(record('two'))
      expect(read('taken')).to.match(/two\n$/)
    })
  })

  describe('a slow log reader', () => {
    const parts = { lostLine: (count: number) => Buffer.from(`lost ${count}\n`), failed: () => {} }

    it('gets every line in order, in pieces of any size', async () => {
      let taken = ''
      let room = 0
      const target = new LogTarget(
        {
          write(bytes) {
            if (room === 0) throw Object.assign(new Error('later'), { code: 'EAGAIN' })
            const part = bytes.subarray(0, room)
            room -= part.length
            taken += part
            return part.length
          },
          close() {},
        },
        parts,
      )
      target.write(Buffer.from('one\n'))
      target.write(Buffer.from('two\n'))
      room = 6
      await until('what there was room for', () => taken === 'one\ntw')
      room = 100
      await target.flush(5000)
      expect(taken).to.equal('one\ntwo\n')
    })

    it('gets the last lines of a process while it blocks, which waits no longer than for one second', () => {
      let refusals = 3
      let taken = ''
      const target = new LogTarget(
        {
          write(bytes) {
            if (refusals-- > 0) throw Object.assign(new Error('later'), { code: 'EAGAIN' })
            taken += bytes
            return bytes.length
          },
          close() {},
        },
        parts,
      )
      target.write(Buffer.from('last\n'))
      target.flushSync(1000)
      expect(taken).to.equal('last\n')
      refusals = Number.POSITIVE_INFINITY
      target.write(Buffer.from('lost\n'))
      target.flushSync(20)
      expect(taken).to.equal('last\n')
    })

    it('loses lines when it is too far behind, and gets their number', async () => {
      let taken = ''
      let open = false
      const target = new LogTarget(
        {
          write(bytes) {
            if (!open) throw Object.assign(new Error('later'), { code: 'EAGAIN' })
            taken += bytes
            return bytes.length
          },
          close() {},
        },
        parts,
      )
      const line = Buffer.from(`${'x'.repeat(99_999)}\n`)
      for (let count = 0; count < 15; count++) target.write(line)
      open = true
      await until('the lines that were kept', () => taken.length >= 10 * line.length)
      target.write(Buffer.from('after\n'))
      await until('the rest', () => taken.endsWith('after\n'))
      expect(taken.slice(10 * line.length)).to.equal('lost 5\nafter\n')
    })
  })

  it('gets every line of a process that ends with a fatal one, also when more of them wait than fit into the pipe', async () => {
    const script = `
      import { openLog } from ${JSON.stringify(import.meta.resolve('../../actors/runtime/log.ts'))}
      const levels = { fallback: 'info', scopes: {} }
      const opened = openLog({ output: levels, stackTrace: levels, callers: [], asJson: true, targets: ['stdout'] })
      const record = { time: 0, level: 'info', scope: 'default', message: 'x'.repeat(1000), labels: {} }
      for (let count = 0; count < 300; count++) opened.write(record)
      opened.fatal(new Error('the last'))
      process.exit(1)`
    // A pipe of the shell, because the sockets that this process makes of its own take more; its reader is late.
    const reader = spawn('sh', ['-c', '"$0" --input-type=module --eval "$1" | { sleep 0.2; cat; }', process.execPath, script])
    const lines = (await text(reader.stdout)).trimEnd().split('\n')
    expect(lines).to.have.length(301)
    expect(JSON.parse(lines.at(-1) ?? '')).to.include({ level: 'fatal', msg: 'the last' })
  })

  it('gets a moved file reopened on request', () => {
    const log = open([path('a.log')])
    log.write(record('one'))
    rmSync(path('a.log'))
    log.reopen()
    log.write(record('two'))
    expect(read('a.log')).to.match(/two\n$/)
  })
})
