/** `pilot-discovery validate`. */

import { analyzeArgs, analyzeFlags, analyzeOrder } from '../../src/cli/analyze-order.ts'
import { DiscoveryCommand } from '../../src/cli/discovery-command.ts'

/** Checks configuration as a server does that reads it. Needs no server. */
export class Validate extends DiscoveryCommand {
  static override summary = 'Check configuration as a server does that reads it: each object by itself'
  static override description =
    'Reads files, directories and standard input (-) as a server with them as --configDir would. Needs no server. Exits with 1 when an object is invalid, or has a warning with --fail-on warning. What is valid by itself and wrong beside other objects is found by analyze.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> config/',
    '<%= config.bin %> <%= command.id %> --json reviews.yaml',
    'cat reviews.yaml | <%= config.bin %> <%= command.id %> -',
  ]
  static override flags = analyzeFlags
  static override args = analyzeArgs
  static override strict = false

  override async run(): Promise<void> {
    const { flags, args, ignored } = await this.line(Validate)
    const order = analyzeOrder(flags, [args.path, ...ignored], true)
    const { reportOn } = await import('../../actors/discovery/analysis/report-on.ts')
    await reportOn(order)
  }
}
