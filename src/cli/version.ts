/** The command `version`: prints the build information. */
import { buildInfo } from './build-info.ts'
import { type FlagValues, text, toggle } from './flags.ts'
import { print } from './print.ts'

/** Flags of the command. */
export const versionFlags = {
  output: text({ value: 'json|yaml', char: 'o', default: '', description: "one of 'yaml' or 'json'" }),
  json: toggle({ description: 'the same as --output json' }),
  short: toggle({ char: 's', description: 'print the version only; --short=false prints everything' }),
}

/** Prints the build information. Throws an Error for another format than the known ones. */
export function printVersion({ output, json, short }: FlagValues<typeof versionFlags>): void {
  const { version, revision, runtime, status, tag } = buildInfo()
  const form = json ? 'json' : output
  if (output !== '' && output !== 'yaml' && output !== 'json') throw new Error("--output must be 'yaml' or 'json'")
  if (form === 'yaml')
    return print(`clientVersion:\n  golang_version: ${runtime}\n  revision: ${revision}\n  status: ${status}\n  tag: ${tag}\n  version: ${version}\n`)
  if (form === 'json') return print(JSON.stringify({ clientVersion: { version, revision, golang_version: runtime, status, tag } }, null, 2))
  if (short) return print(version)
  print(`version.BuildInfo{Version:"${version}", GitRevision:"${revision}", GolangVersion:"${runtime}", BuildStatus:"${status}", GitTag:"${tag}"}`)
}
