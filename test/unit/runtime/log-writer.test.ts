import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { openLog } from '../../../actors/runtime/log-writer.ts'
import { createLogger } from '../../../actors/runtime/logger.ts'
import type { LogRecord } from '../../../protocols/messages/log.ts'
import { jsonLine, plainLine } from '../../../src/logging/layout.ts'
import { discoveryScopes, parseScopeLevels } from '../../../src/logging/levels.ts'

const record: LogRecord = {
  time: Date.UTC(2021, 2, 4, 5, 6, 7) + 123.456,
  level: 'warn',
  scope: 'ads',
  message: 'one\nline',
  labels: { proxy: 'p', count: 2 },
}
const levels = (text: string) => parseScopeLevels(text, discoveryScopes, 'info')

describe('the log', () => {
  it('has the documented layouts, and escapes line breaks in user-supplied text', () => {
    expect(plainLine(record)).to.equal('2021-03-04T05:06:07.123456Z\twarn\tads\tone\\u000aline\tproxy=p count=2\n')
    expect(JSON.parse(jsonLine(record))).to.deep.equal({
      level: 'warn',
      time: '2021-03-04T05:06:07.123456Z',
      scope: 'ads',
      msg: 'one\nline',
      proxy: 'p',
      count: 2,
    })
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
    expect(seen[0]?.caller).to.match(/^runtime\/log-writer\.test\.ts:\d+$/)
    expect([seen[0]?.stack, seen[1]?.stack?.includes('log-writer.test.ts')]).to.deep.equal([undefined, true])
  })

  it('parses levels: a bare level is for the default scope, and `all` ends the list', () => {
    expect(levels('debug')).to.deep.equal({ fallback: 'info', scopes: { default: 'debug' } })
    expect(levels('all:error,ads:debug')).to.deep.equal({ fallback: 'error', scopes: {} })
  })

  it('rotates by size, keeps the configured number of backups, and deletes its own expired ones', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'mesh-rotate-'))
    try {
      const old = join(dir, 'mesh-2020-01-01T00-00-00.000.log')
      writeFileSync(old, 'old')
      writeFileSync(join(dir, '.mesh.log.backups'), 'mesh-2020-01-01T00-00-00.000.log\n')
      writeFileSync(join(dir, 'mesh-2020-01-02T00-00-00.000.log'), 'somebody else wrote this')
      const log = openLog({
        output: levels(''),
        stackTrace: levels(''),
        callers: [],
        asJson: false,
        targets: [],
        rotate: { path: join(dir, 'mesh.log'), maxSizeMb: 1, maxAgeDays: 1, maxBackups: 2 },
      })
      for (let line = 0; line < 5000; line++) log.write({ ...record, message: 'x'.repeat(1000) })
      await log.flush()
      const backups = readdirSync(dir).filter((name) => /^mesh-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}\.log$/.test(name))
      expect(backups).to.include('mesh-2020-01-02T00-00-00.000.log').and.to.have.length(3)
      expect(readdirSync(dir)).not.to.include('mesh-2020-01-01T00-00-00.000.log')
      expect(statSync(join(dir, 'mesh.log')).size).to.be.lessThan(2 * 1024 * 1024)
      expect(readFileSync(join(dir, backups[2] as string), 'utf8').startsWith('2021-')).to.equal(true)
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
  })
})
