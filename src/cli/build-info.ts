/** Build information: version, revision and state of the source. */
// biome-ignore lint/style/noRestrictedImports: reads a file of this package
import { readFileSync } from 'node:fs'

/** The commit that the code was built from (`protocols/build.js`); not declared where sources run, and undefined where it was built outside a clone. */
declare const BUILT_REVISION: string | undefined

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
    revision: process.env.MESH_BUILD_REVISION ?? (typeof BUILT_REVISION === 'string' ? BUILT_REVISION : cloneRevision()) ?? 'unknown',
    runtime: `node ${process.version}`,
    status: process.env.MESH_BUILD_STATUS ?? 'Source',
    tag: version,
  }
}

/**
 * Returns the commit that a clone is at, when its sources are what runs; changes of them since are not looked for. Undefined elsewhere, for built code too,
 * which may be of an earlier commit: it has its own.
 */
function cloneRevision(): string | undefined {
  if (!import.meta.url.endsWith('/src/cli/build-info.ts')) return undefined
  const inGit = (name: string) => readFileSync(new URL(`../../.git/${name}`, import.meta.url), 'utf8').trim()
  try {
    const head = inGit('HEAD')
    const branch = head.startsWith('ref: ') ? head.slice('ref: '.length) : ''
    const commit = branch === '' ? head : (textOf(() => inGit(branch)) ?? packed(inGit('packed-refs'), branch))
    return /^[0-9a-f]{40,64}$/.test(commit) ? commit : undefined
  } catch {
    // It is no clone, or one of several folders of it.
    return undefined
  }
}

/** Returns the commit of a branch in the file of those that have none of their own. */
const packed = (text: string, branch: string): string =>
  text
    .split('\n')
    .find((line) => line.endsWith(` ${branch}`))
    ?.split(' ')[0] ?? ''

function textOf(read: () => string): string | undefined {
  try {
    return read()
  } catch {
    return undefined
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
