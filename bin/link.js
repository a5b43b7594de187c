// Links the commands of a clone into node_modules/.bin, where npm has those of installed packages, so that one PATH is right for both. On Windows, where
// scripts are not run by links, `npx` finds them.
import { mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const folder = fileURLToPath(new URL('../node_modules/.bin', import.meta.url))

if (process.platform !== 'win32') {
  mkdirSync(folder, { recursive: true })
  for (const name of ['pilot-discovery', 'pilot-agent']) {
    rmSync(join(folder, name), { force: true })
    symlinkSync(`../../bin/${name}.js`, join(folder, name))
  }
}
