/** `pilot-discovery analyze`. */

import { analyzeArgs, analyzeFlags, analyzeOrder, clusterFlags, clusterOrder } from '../../src/cli/analyze-order.ts'
import { DiscoveryCommand } from '../../src/cli/discovery-command.ts'

/** Finds configuration that is valid and wrong beside what else there is. Needs no server. */
export class Analyze extends DiscoveryCommand {
  static override summary = 'Find mistakes in configuration: what is invalid, what names something that is not there, what has no effect'
  static override description =
    'Reads files, directories and standard input (-) as a server with them as --configDir would, and Services, workloads, Namespaces and Secrets of a cluster beside them. Of a kind of which they have no object nothing is said to be missing. Objects without a namespace count as of that of --namespace, of the context with --cluster, or, with a warning, of default; a policy without one is invalid then. With --cluster those of a cluster count too, read with the rights of the user; files override them, as if they were applied. Needs no server of the mesh. Exits with 1 when there is a finding of the level of --fail-on or above.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> config/',
    '<%= config.bin %> <%= command.id %> --fail-on warning --sarif config/ > findings.sarif',
    'cat reviews.yaml | <%= config.bin %> <%= command.id %> -',
    '<%= config.bin %> <%= command.id %> --cluster',
    '<%= config.bin %> <%= command.id %> --cluster --namespace shop config/',
  ]
  static override flags = { ...analyzeFlags, ...clusterFlags }
  static override args = analyzeArgs
  static override strict = false

  override async run(): Promise<void> {
    const { flags, args, ignored } = await this.line(Analyze)
    const order = analyzeOrder(flags, [args.path, ...ignored], false, { namespace: flags.namespace, cluster: clusterOrder(flags) })
    const { reportOn } = await import('../../actors/discovery/analysis/report-on.ts')
    await reportOn(order)
  }
}
