/** `npm run check`, `npm run format` and git read no directory in which the commands of the project keep keys and tokens. */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { agentVariables } from '../../src/config/agent-features.ts'
import { variables } from '../../src/config/features.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const settings = ['package.json', 'biome.json', 'lint', '.gitignore', 'knip.json', 'tsconfig.json', '.dependency-cruiser.cjs']
const scripts = ['types', 'lint', 'unused', 'imports', 'format']
const secret = 'a-key-that-nobody-may-see'

/** Where the commands are started: the top folder, a workload of an example, and the configuration of one. */
const started = ['.', 'examples/two-workloads/stock', 'examples/two-workloads/mesh', 'test/unit']
/** The default directories of state, of the variables and of the files beside them. */
const state = [
  ...Object.values({ ...variables, ...agentVariables }).flatMap(({ default: value }: { default?: unknown }) =>
    typeof value === 'string' && value.startsWith('./') ? [value.replace(/\/[^/]*\.[^/]*$/, '')] : [],
  ),
  'var/run/secrets/mesh',
  'var/run/secrets/tokens',
  'var/run/secrets/workload-spiffe-credentials',
  'etc/certs',
  'etc/mesh/proxy',
]

describe('state directories', () => {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-state-'))
  after(() => rmSync(dir, { recursive: true, force: true }))
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(dir, path)), { recursive: true })
    writeFileSync(join(dir, path), text)
  }
  const keys = started.flatMap((from) => state.map((at) => join(from, at)))

  before(() => {
    for (const name of settings) cpSync(join(root, name), join(dir, name), { recursive: true })
    symlinkSync(join(root, 'node_modules'), join(dir, 'node_modules'))
    for (const room of ['src', 'actors', 'bin', 'protocols/messages', 'bench']) write(`${room}/seen.ts`, `export const seen:   number = 'seen'\n`)
    for (const at of keys) {
      write(`${at}/state.json`, `{"key":   "${secret}"}\n`)
      write(`${at}/state.ts`, `export const key:   number = '${secret}'\n`)
      write(`${at}/state.js`, `export const key   = '${secret}' // debugger\n`)
    }
  })

  it('are those of the variables too', () => expect(state).to.include.members(['./var/lib/mesh/ca', './var/lib/mesh/data', './var/run/mesh']))

  it('are ignored by git', () => {
    spawnSync('git', ['init', '--quiet'], { cwd: dir })
    const { stdout } = spawnSync('git', ['ls-files', '--others', '--exclude-standard'], { cwd: dir, encoding: 'utf8' })
    expect(stdout.split('\n')).to.include('src/seen.ts')
    expect(stdout).not.to.match(/\/state\./)
  })

  for (const script of scripts)
    it(`are not read by npm run ${script}`, () => {
      const { stdout, stderr } = spawnSync('npm', ['run', script], { cwd: dir, encoding: 'utf8' })
      expect(stdout + stderr).not.to.contain(secret)
      if (script === 'format') expect(readFileSync(join(dir, 'src/seen.ts'), 'utf8')).to.contain('seen: number')
      else if (script !== 'imports') expect(stdout + stderr, 'the script reads the sources').to.contain('seen')
      for (const at of keys) expect(readFileSync(join(dir, at, 'state.json'), 'utf8'), at).to.contain('   ')
    })
})
