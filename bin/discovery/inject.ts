/** `pilot-discovery inject`. */
import { DiscoveryCommand } from '../../src/cli/discovery-command.ts'
import { injectFlags } from '../../src/cli/inject-flags.ts'

/** Adds the sidecar to documents. */
export class Inject extends DiscoveryCommand {
  static override summary = 'Add the sidecar to the pods of Deployments, StatefulSets, DaemonSets, Jobs, CronJobs and Pods in a file'
  static override description =
    'Prints all documents of the file, with what the injection webhook would add. Without --orchconfig and files, the configuration that is installed with this release counts.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> -f deployment.yaml | kubectl apply -f -',
    'kubectl get deployment -n shop web -o yaml | <%= config.bin %> <%= command.id %> -f - --orchconfig ~/.kube/config | kubectl apply -f -',
  ]
  static override flags = injectFlags

  override async run(): Promise<void> {
    const { flags } = await this.line(Inject)
    const { runInject } = await import('../../actors/discovery/commands/inject.ts')
    await runInject(flags)
  }
}
