/** The package as a user installs it: packed, and installed into an empty directory. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

/**
 * Calls `use` with a function that returns the path of a command by name. Removes the package afterwards. `checkout` is the directory of the
 * packed sources, this project's by default.
 */
export async function withPackage<T>(use: (command: (name: string) => string) => Promise<T>, checkout = root): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-bench-package-'))
  const npm = (args: readonly string[], cwd: string) =>
    execFileSync('npm', [...args, '--no-audit', '--no-fund'], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
  try {
    const packed = JSON.parse(npm(['pack', '--json', '--silent', '--pack-destination', folder], checkout)) as { filename: string }[]
    writeFileSync(join(folder, 'package.json'), '{"private": true}')
    npm(['install', '--prefer-offline', join(folder, packed[0]?.filename ?? '')], folder)
    return await use((name) => join(folder, 'node_modules/.bin', name))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
