/** The commands of `pilot-agent` that create and remove the redirect rules. */
import { readAgentFeatures } from '../config/agent-features.ts'
import type { RedirectOrder } from '../iptables/order.ts'
import type { CommandLine, CommandSpec } from './command-line.ts'
import { cleanFlags, isDryClean, redirectFlags, redirectOrder } from './redirect-flags.ts'

/** The implementations of the commands. */
export interface RedirectWork {
  /** Applies the redirect rules and validates them, as the order says. */
  readonly redirect: (order: RedirectOrder) => Promise<void>
  /** Removes the redirect rules. A dry run only prints the commands. */
  readonly clean: (isDryRun: boolean) => Promise<void>
}

/** Returns the commands. `shared` are the flags of every command of the binary, which `readShared` validates. */
export function redirectCommands(
  work: RedirectWork,
  shared: CommandSpec['flags'],
  readShared: (flags: CommandLine['flags']) => unknown,
): Readonly<Record<string, CommandSpec>> {
  return {
    'mesh-clean-iptables': {
      summary: 'Remove the rules that redirect traffic to the proxy',
      description: 'Removes all that mesh-iptables makes, and nothing else.',
      examples: ['', '--dry-run'],
      args: [],
      flags: [{ heading: '', table: cleanFlags }, ...shared],
      async run({ flags }) {
        readShared(flags)
        await work.clean(isDryClean(flags, process.env))
      },
    },
    'mesh-iptables': {
      summary: 'Redirect traffic to the proxy',
      description:
        'Sets up port forwarding for the sidecar with iptables, in one transaction for each table. Rules of an earlier run are replaced. Each flag has an environment variable of its name (--proxy-port: PROXY_PORT), which counts when the flag is not given.',
      examples: ['-p 15001 -z 15006 -u 1337 -m REDIRECT -i "*" -b "*" -d 15090,15021,15020', '-i "*" -b "*" --dry-run --restore-format'],
      args: [],
      flags: [{ heading: '', table: redirectFlags }, ...shared],
      async run({ flags }) {
        readShared(flags)
        await work.redirect(redirectOrder(flags, process.env, readAgentFeatures(process.env).features))
      },
    },
  }
}
