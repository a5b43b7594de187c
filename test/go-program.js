// Builds a Go program of the tests, once for each state of its sources, into the cache of this user.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'

/**
 * A program: its name, the folder of its module, the files there that decide what it is, and what `go build` is told besides.
 *
 * @typedef {{ readonly name: string, readonly root: string, readonly sources: readonly string[], readonly build: readonly string[] }} GoProgram
 */

/** @param {GoProgram} program */
const cacheOf = ({ name }) => join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), `mesh-${name}`)

/**
 * The path of a program for its present sources.
 *
 * @param {GoProgram} program
 */
function pathOf(program) {
  const hash = createHash('sha256')
  for (const source of program.sources) hash.update(`${source}\0`).update(readFileSync(join(program.root, source)))
  return join(cacheOf(program), hash.digest('hex').slice(0, 16), program.name)
}

/**
 * Whether a program is there, or can be built.
 *
 * @param {GoProgram} program
 */
export function canHaveProgram(program) {
  return existsSync(pathOf(program)) || !spawnSync('go', ['env', 'GOVERSION']).error
}

/**
 * Builds a program if it is not there yet. Returns its path. Throws an Error with what Go says.
 *
 * @param {GoProgram} program
 */
export function buildProgram(program) {
  const path = pathOf(program)
  if (existsSync(path)) return path
  const cache = cacheOf(program)
  mkdirSync(cache, { recursive: true })
  // Built beside its place, so that nobody finds a part of it.
  const made = mkdtempSync(join(cache, 'build-'))
  const { status, stderr } = spawnSync('go', ['build', '-buildvcs=false', '-o', join(made, program.name), ...program.build], {
    cwd: program.root,
    encoding: 'utf8',
    env: { ...process.env, CGO_ENABLED: '0' },
  })
  if (status !== 0) throw new Error(`go build: ${stderr}`)
  try {
    renameSync(made, dirname(path))
  } catch {
    // Another process was faster.
    rmSync(made, { recursive: true })
  }
  return path
}
