/** The command `version`: prints the build information. */
import { buildInfo } from './build-info.ts'
import type { CommandLine, CommandSpec } from './command-line.ts'
import { type FlagTable, readFlags } from './flag-table.ts'
import { print } from './print.ts'

const versionFlags = {
  output: { type: 'string', char: 'o', default: '', about: "one of 'yaml' or 'json'" },
  short: { type: 'switch', char: 's', default: false, about: 'print the version only; --short=false prints everything' },
} as const satisfies FlagTable

/** Returns the command. `shared` are the flags of every command of the binary, which `readShared` validates. */
export function versionCommand(shared: CommandSpec['flags'], readShared: (flags: CommandLine['flags']) => unknown): CommandSpec {
  return {
    summary: 'Print build version information',
    examples: [],
    args: [],
    flags: [{ heading: '', table: versionFlags }, ...shared],
    async run({ flags }) {
      readShared(flags)
      printVersion(flags)
    },
  }
}

function printVersion(flags: CommandLine['flags']): void {
  const { output, short } = readFlags(versionFlags, flags)
  const { version, revision, runtime, status, tag } = buildInfo()
  if (output !== '' && output !== 'yaml' && output !== 'json') throw new Error("--output must be 'yaml' or 'json'")
  if (output === 'yaml')
    return print(`clientVersion:\n  golang_version: ${runtime}\n  revision: ${revision}\n  status: ${status}\n  tag: ${tag}\n  version: ${version}\n`)
  if (output === 'json') return print(JSON.stringify({ clientVersion: { version, revision, golang_version: runtime, status, tag } }, null, 2))
  if (short) return print(version)
  print(`version.BuildInfo{Version:"${version}", GitRevision:"${revision}", GolangVersion:"${runtime}", BuildStatus:"${status}", GitTag:"${tag}"}`)
}
