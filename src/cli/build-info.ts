/** Build information: version, revision and state of the source. */
// biome-ignore lint/style/noRestrictedImports: reads a file of this package
import { readFileSync } from 'node:fs'

/** Build information as `version` prints it. */
export interface BuildInfo {
  readonly version: string
  readonly revision: string
  readonly runtime: string
  readonly status: string
  readonly tag: string
}

/** Returns the build information, from the package and from the variables that a build sets. */
export function buildInfo(): BuildInfo {
  const version = packageVersion()
  return {
    version,
    revision: process.env.MESH_BUILD_REVISION ?? 'unknown',
    runtime: `node ${process.version}`,
    status: process.env.MESH_BUILD_STATUS ?? 'Source',
    tag: version,
  }
}

function packageVersion(): string {
  for (const path of ['../../package.json', '../../../package.json']) {
    try {
      return (JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8')) as { version: string }).version
    } catch {
      // In built packages package.json is one folder further up.
    }
  }
  return 'unknown'
}
