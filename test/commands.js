// The commands as they are installed, for tests of whole processes: built code starts in half the time of the sources.
import { spawnSync } from 'node:child_process'
import { copyFileSync, cpSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'

const folder = join(import.meta.dirname, '../.cache/commands')

/** Builds the commands, and returns the folder in which they are. */
export function buildCommands() {
  const root = join(import.meta.dirname, '..')
  const { status, stderr } = spawnSync(process.execPath, ['protocols/build.js'], { cwd: root, encoding: 'utf8' })
  if (status !== 0) throw new Error(`the commands cannot be built: ${stderr}`)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(join(folder, 'bin'), { recursive: true })
  for (const name of ['package.json', 'bin/pilot-agent.js', 'bin/pilot-discovery.js', 'bin/runtime.js'])
    copyFileSync(join(root, name), join(folder, name))
  cpSync(join(root, 'examples'), join(folder, 'examples'), { recursive: true })
  cpSync(join(root, 'dist'), join(folder, 'dist'), { recursive: true })
  return join(folder, 'bin')
}
