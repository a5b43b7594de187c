import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'

const root = fileURLToPath(new URL('../..', import.meta.url))
const pinned = join(root, 'node_modules', '.bin', 'node')

/** Runs `npx mocha` for a user whose PATH has the system's Node and none of the project's tools. */
function mocha(...args: string[]): string {
  const path = (process.env.PATH ?? '').split(delimiter).filter((folder) => !folder.endsWith(join('node_modules', '.bin')))
  const env = { ...process.env, PATH: path.join(delimiter) }
  // The list of all tests has more than the megabyte that is kept by default.
  return spawnSync('npx', ['--no-install', 'mocha', ...args], { cwd: root, encoding: 'utf8', env, maxBuffer: 64 * 1024 * 1024 }).stdout
}

/** Returns the test files that a run with these arguments executes. */
function filesOf(...args: string[]): string[] {
  const output = mocha('--dry-run', '--reporter', 'json', ...args)
  const { tests } = JSON.parse(output.slice(output.indexOf('{'))) as { tests: { file: string }[] }
  return [...new Set(tests.map(({ file }) => relative(root, file)))].sort()
}

describe('npx mocha', () => {
  it("runs on the Node of the lock file with the project's options, and ends although a timer is pending", () => {
    const dir = mkdtempSync(join(tmpdir(), 'mesh-mocha-'))
    try {
      const file = join(dir, 'probe.test.ts')
      const code = 'setTimeout(() => console.log("still running"), 10_000)\n    console.log(JSON.stringify([process.execPath, this.timeout()]))'
      writeFileSync(file, `describe('a probe', () => {\n  it('prints', function (this: Mocha.Context): void {\n    ${code}\n  })\n})\n`)
      const lines = mocha(file).trim().split('\n')
      const [node, timeout] = JSON.parse(lines.find((line) => line.startsWith('[')) ?? '[]') as [string?, number?]
      expect(lines.at(-1)).to.equal('1 passed, 0 failed')
      expect(timeout).to.equal(400_000)
      if (existsSync(pinned)) expect(node).to.equal(realpathSync(pinned))
    } finally {
      rmSync(dir, { recursive: true, force: true })
    }
  })

  it('runs only the files and folders that are named', () => {
    expect(filesOf('test/unit/push/planner.test.ts')).to.deep.equal(['test/unit/push/planner.test.ts'])
    const layers = ['test/fuzz', 'test/unit']
    const all = layers.flatMap((layer) => readdirSync(join(root, layer), { recursive: true, encoding: 'utf8' }).map((name) => join(layer, name)))
    expect(filesOf(...layers)).to.deep.equal(all.filter((name) => name.endsWith('.test.ts')).sort())
  })
})
