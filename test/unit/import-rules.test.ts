/** The import rules allow exactly the imports that ARCHITECTURE, "Rooms" lists. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'

const root = fileURLToPath(new URL('../..', import.meta.url))
const shared = ['runtime', 'rpc', 'http', 'grpc']
const unlisted = ['src/unlisted', 'actors/unlisted', 'bench', 'test']

/** Returns the imports that the two tables of rooms list, as `room -> room`. */
function documented(): string[] {
  const text = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')
  const rows = [...text.matchAll(/^\| `((?:src|actors|bin)\/\w*)\/?` *\|(?:[^|\n]*)\|(?: ([^|\n]*) \|)?$/gm)]
  const rooms = rows.map(([, room, imports]) => ({ room: room?.replace(/\/$/, '') as string, imports }))
  const pushPath = rooms.filter(({ imports }) => imports === undefined).map(({ room }) => room)
  const known = rooms.map(({ room }) => room)
  const named = (name: string) => {
    if (name === 'rooms of the push path') return pushPath
    return [name.includes('/') ? name : `${shared.includes(name) ? 'actors' : 'src'}/${name}`]
  }
  const allowed = (room: string, imports: string | undefined) => {
    if (imports === 'all') return known
    if (imports === 'none') return []
    return imports?.trim().split(', ').flatMap(named) ?? pushPath.slice(0, pushPath.indexOf(room))
  }
  const listed = rooms.flatMap(({ room, imports }) => allowed(room, imports).map((other) => `${room} -> ${other}`))
  const all = [...listed, 'src/push -> src/logging', ...known.map((room) => `${room} -> protocols/messages`)]
  return all.filter((line) => !line.startsWith('bin -> bin')).sort()
}

/** Returns the imports that the rules allow among files that import each other from every room to every other. */
function allowedByRules(rooms: readonly string[]): string[] {
  const dir = mkdtempSync(join(tmpdir(), 'mesh-imports-'))
  try {
    const imports: string[] = []
    for (const room of rooms) {
      mkdirSync(join(dir, room), { recursive: true })
      writeFileSync(join(dir, room, 'imported.ts'), 'export const value = 1\n')
      for (const other of rooms) {
        if (other === room) continue
        const up = '../'.repeat(room.split('/').length)
        const file = `imports-${other.replace('/', '-')}.ts`
        writeFileSync(join(dir, room, file), `import { value } from '${up}${other}/imported.ts'\nexport const own = value\n`)
        imports.push(`${room} -> ${other}`)
      }
    }
    const command = [join(root, 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs'), '--output-type', 'json']
    const config = ['--config', join(root, '.dependency-cruiser.cjs')]
    const { stdout } = spawnSync(process.execPath, [...command, ...config, 'src', 'actors', 'bin', 'protocols'], {
      cwd: dir,
      encoding: 'utf8',
      maxBuffer: 2 ** 28,
    })
    const { summary } = JSON.parse(stdout) as { summary: { totalDependenciesCruised: number; violations: { from: string; to: string }[] } }
    const room = (path: string) => path.slice(0, path.lastIndexOf('/'))
    const refused = new Set(summary.violations.map(({ from, to }) => `${room(from)} -> ${room(to)}`))
    expect(summary.totalDependenciesCruised).to.be.at.least(rooms.length * (rooms.length - 3))
    return imports.filter((line) => !refused.has(line) && !/^(bench|test) /.test(line)).sort()
  } finally {
    rmSync(dir, { recursive: true })
  }
}

describe('the import rules', () => {
  it('allow the imports between rooms that ARCHITECTURE.md lists, and no others', () => {
    const listed = documented()
    const rooms = [...new Set(listed.flatMap((line) => line.split(' -> ')))]
    expect(rooms).to.include.members(['src/names', 'src/push', 'src/dns', 'actors/agent', 'bin', 'protocols/messages'])
    expect(allowedByRules([...rooms, ...unlisted])).to.deep.equal(listed)
  })
})
