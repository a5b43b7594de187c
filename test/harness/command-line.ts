import type { Config } from '@oclif/core/config'
import type { ArgInput, FlagInput } from '@oclif/core/interfaces'
import { loggingFlags } from '../../src/cli/logging-flags.ts'
import { type Line, MeshCommand } from '../../src/cli/mesh-command.ts'

const logging = loggingFlags(['default'])

/** What a command declares, apart from the logging flags. */
interface Declared<Flags extends FlagInput> {
  readonly flags: Flags
  readonly args?: ArgInput
  readonly strict?: boolean
}

class Probe extends MeshCommand {
  protected override readonly scopes = ['default']

  read<Flags extends FlagInput>(declared: Declared<Flags>, environment: NodeJS.ProcessEnv): Promise<Line<Flags & typeof logging, object>> {
    return this.line({ ...declared, baseFlags: logging }, environment)
  }

  override async run(): Promise<void> {}
}

/** Parses the command line of a command with these flags as the commands do. */
export function parseLine<Flags extends FlagInput>(argv: readonly string[], declared: Declared<Flags>, environment: NodeJS.ProcessEnv = {}) {
  const config = { bin: 'test', runHook: async () => ({ successes: [], failures: [] }) } as unknown as Config
  return new Probe([...argv], config).read(declared, environment)
}
