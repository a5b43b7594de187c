import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { until } from '../harness/until.ts'
import { batchesOf, idleFor, inSlots } from '../schedule.js'

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
      expect(lines.at(-2)).to.match(/^\d+\.\d s of .*probe\.test\.ts$/)
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

describe('npm test', () => {
  it('runs every file once: long files alone and first, short ones of a layer together', () => {
    const layers = [
      { layer: 'unit', files: Array.from({ length: 45 }, (_, index) => `u${index}`) },
      { layer: 'system', files: ['a', 'b', 'c', 'd'] },
    ]
    const batches = batchesOf(layers, { a: 90, b: 18, c: 18, d: 12, gone: 100 })
    expect(batches.flatMap(({ files }) => files).sort()).to.deep.equal(layers.flatMap(({ files }) => files).sort())
    const named = batches.map(({ layer, files }) => (layer === 'unit' ? `${files.length} of unit` : files.join()))
    expect(named).to.deep.equal(['a', '30 of unit', 'b,d', 'c', '15 of unit'])
  })

  it('has the files with clusters take turns with the others', () => {
    const layers = [
      { layer: 'orchestrator', files: ['x', 'y', 'z'] },
      { layer: 'system', files: ['a', 'b'] },
    ]
    const batches = batchesOf(layers, { x: 90, y: 80, z: 70, a: 40, b: 31 })
    expect(batches.flatMap(({ files }) => files)).to.deep.equal(['x', 'a', 'y', 'b', 'z'])
  })

  it('keeps all its processes busy, and begins in order', async () => {
    const begun: string[] = []
    const gates = new Map(['long', 'first', 'second', 'third'].map((name) => [name, Promise.withResolvers<void>()]))
    const all = inSlots(2, gates.keys(), async (name) => {
      begun.push(name)
      await gates.get(name)?.promise
    })
    for (const name of ['first', 'second', 'third']) {
      expect(begun.at(-1)).to.equal(name)
      gates.get(name)?.resolve()
      for (let turn = 0; turn < 20; turn++) await Promise.resolve()
    }
    gates.get('long')?.resolve()
    await all
    expect(begun).to.deep.equal(['long', 'first', 'second', 'third'])
  })

  it('runs more processes while there is room, and as many as before when there is none any more', async () => {
    const begun: number[] = []
    const gates = Array.from({ length: 6 }, () => Promise.withResolvers<void>())
    let room = 0
    const more = { most: 4, everyMs: 1, hasRoom: () => room-- > 0 }
    const all = inSlots(
      2,
      gates.keys(),
      async (index) => {
        begun.push(index)
        await gates[index]?.promise
      },
      more,
    )
    expect(begun).to.deep.equal([0, 1])
    room = 1
    await until('a third one', () => begun.length === 3)
    await until('no room', () => room < -3)
    room = 100
    await until('a fourth one', () => begun.length === 4)
    await until('no room for more than four at a time', () => room < 50)
    expect(begun).to.deep.equal([0, 1, 2, 3])
    await until('no room', () => room < -3)
    gates[3]?.resolve()
    await until('time to pass', () => room < -10)
    expect(begun, 'its place was given back').to.have.length(4)
    for (const { resolve } of gates) resolve()
    await all
    expect(begun).to.deep.equal([0, 1, 2, 3, 4, 5])
  })

  it('sees the idle share of the processors since it last looked', () => {
    let times = { user: 100, idle: 100 }
    const isIdle = idleFor(0.3, () => [{ times }])
    expect(isIdle()).to.equal(false)
    times = { user: 106, idle: 104 }
    expect(isIdle()).to.equal(true)
    times = { user: 114, idle: 106 }
    expect(isIdle()).to.equal(false)
  })
})
