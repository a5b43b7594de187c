import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'

const root = fileURLToPath(new URL('../..', import.meta.url))
const state = 'let known = 1\nexport function next(): number {\n  let sum = known\n  sum += known++\n  return sum\n}\n'
const refused = [
  ['setTimeout(() => {}, 1)', 'Do not use the global variable setTimeout'],
  ['setInterval(() => {}, 1)', 'Do not use the global variable setInterval'],
  ["import { setTimeout as pause } from 'node:timers/promises'\nawait pause(1)", 'actors/runtime/timers.ts'],
  ["import { createServer } from 'node:http'\ncreateServer()", 'actors/http/http-server.ts'],
  ["import { createServer as secure } from 'node:https'\nsecure()", 'actors/http/http-server.ts'],
  ["import { request } from 'node:http'\nrequest('http://a')", 'actors/http/single-request.ts'],
  ["import { get as ask } from 'node:https'\nask('https://a')", 'actors/http/single-request.ts'],
  ['export const at = Date.now()', 'monotonicMs()'],
  ['export const at = new Date()', 'monotonicMs()'],
  ['export const at = performance.now()', 'monotonicMs()'],
  ['export const of = Math.random', 'monotonicMs()'],
] as const
const hasty = [
  "expect(service.output.soFar()).to.contain('x')",
  "expect(service.output.soFar(), 'why').to.match(/x/)",
  "expect(service.output.soFar().includes('x')).to.equal(true)",
  "expect(service.output.soFar().length, 'why').to.equal(1)",
] as const
const brief = ["await until('it', () => true, 500)", "await until('it', async () => true, 50_000)", "await until('it', () => true, 190_000)"] as const

describe('the linter', () => {
  let findings = ''
  before(() => {
    const dir = mkdtempSync(join(tmpdir(), 'mesh-lint-'))
    const write = (path: string, code: string) => {
      mkdirSync(dirname(join(dir, path)), { recursive: true })
      writeFileSync(join(dir, path), `${code}\n`)
    }
    try {
      for (const name of ['biome.json', '.gitignore', 'lint']) cpSync(join(root, name), join(dir, name), { recursive: true })
      for (const room of ['src', 'actors']) {
        for (const [index, [code]] of refused.entries()) write(`${room}/example-${index}.ts`, code)
        write(`${room}/state.ts`, state)
      }
      for (const [index, code] of hasty.entries()) write(`test/hasty-${index}.ts`, code)
      for (const [index, code] of brief.entries()) write(`test/brief-${index}.ts`, code)
      write('test/long.ts', "await until('it', () => true)\nawait until('it', () => true, 200_000)\nawait until('it', () => true, 1_000_000)")
      write('test/waits.ts', "await service.output.says('ready')\nexpect(await service.output.whole()).to.equal('')")
      findings = spawnSync(join(root, 'node_modules/.bin/biome'), ['lint', '--reporter=github', '--max-diagnostics=none', 'src', 'actors', 'test'], {
        cwd: dir,
        encoding: 'utf8',
      }).stdout
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
  })
  const of = (path: string) => findings.split('\n').filter((line) => line.includes(path))

  for (const [index, [code, words]] of refused.entries())
    it(`rejects ${code} in src/ and actors/`, () => {
      for (const room of ['src', 'actors']) expect(of(`${room}/example-${index}.ts`).join('\n'), room).to.contain(words)
    })

  it('rejects module-level state in src/', () => {
    expect(of('src/state.ts')).to.have.length(1)
    expect(of('src/state.ts')[0]).to.contain('keep no state')
    expect(of('actors/state.ts')).to.deep.equal([])
  })

  for (const [index, code] of hasty.entries())
    it(`rejects ${code} in tests`, () => expect(of(`test/hasty-${index}.ts`).join('\n')).to.contain('is waited for'))

  for (const [index, code] of brief.entries())
    it(`refuses ${code} in tests`, () => expect(of(`test/brief-${index}.ts`).join('\n')).to.contain('Leave the deadline of until() out'))

  it('accepts deadlines of until() that are not shorter than the default', () => expect(of('test/long.ts').join('\n')).not.to.contain('deadline'))

  it('accepts tests that wait for the output of a process', () => expect(of('test/waits.ts').join('\n')).not.to.contain('is waited for'))
})
