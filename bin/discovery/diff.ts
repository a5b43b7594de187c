/** `pilot-discovery diff`. */
import { DiscoveryCommand } from '../../src/cli/discovery-command.ts'
import { reportTrouble } from '../../src/cli/exit-status.ts'
import { checkNamespace } from '../../src/cli/flags.ts'
import { diffArgs, diffFlags } from '../../src/cli/server-flags.ts'

/** Prints what files would change for the connected proxies. */
export class Diff extends DiscoveryCommand {
  static override summary = 'Show what each connected proxy would get if files were applied: a dry run'
  static override description =
    'The server makes the configuration of all connected proxies with the objects of the files on top of what it has: objects of the same kind, namespace and name are replaced, others stay; with --replace others are removed. Nothing is applied. Tells which clusters, endpoints, listeners, routes and secrets would be added, removed or changed, and the fields, by proxies that see the same. Exits with 0 when no proxy would see a difference, 1 when some would, and 2 when a document cannot be used or the server does not answer.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> reviews.yaml',
    '<%= config.bin %> <%= command.id %> config/ --replace',
    'cat reviews.yaml | <%= config.bin %> <%= command.id %> - --json',
  ]
  static override flags = diffFlags
  static override args = diffArgs
  static override strict = false

  override async run(): Promise<void> {
    await reportTrouble(async () => {
      const { flags, args, ignored } = await this.line(Diff)
      checkNamespace(flags.namespace)
      const { diff } = await import('../../actors/discovery/commands/diff.ts')
      await diff(flags, [args.path, ...ignored])
    })
  }
}
