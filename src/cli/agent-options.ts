/** The options of the commands `proxy` and `wait`, from their flags. */
import type { FlagInput } from '@oclif/core/interfaces'
import type { ProxyOptions, WaitSettings } from '../../protocols/messages/agent-options.ts'
import { roleOf } from '../bootstrap/node.ts'
import { agentLogging, proxyFlags, type waitFlags } from './agent-flags.ts'
import type { FlagValues } from './flags.ts'
import type { Line } from './mesh-command.ts'

/** Returns how `wait` asks. Throws an Error when the URL is none of HTTP. */
export function waitSettings({ url, periodMillis, requestTimeoutMillis, timeoutSeconds }: FlagValues<typeof waitFlags>): WaitSettings {
  const protocol = URL.canParse(url) ? new URL(url).protocol : undefined
  if (protocol !== 'http:' && protocol !== 'https:') throw new Error(`--url: ${JSON.stringify(url.slice(0, 200))} is not an HTTP URL`)
  return { url, periodMs: periodMillis, requestTimeoutMs: requestTimeoutMillis, timeoutMs: timeoutSeconds * 1000 }
}

type ProxyLine = Line<typeof proxyFlags & typeof agentLogging, { readonly role?: string | undefined }>

/** Returns the options of the agent. Throws an Error for an unknown role. */
export function proxyOptions({ flags, args, given, ignored }: ProxyLine): ProxyOptions {
  const role = roleOf(args.role === undefined ? [] : [args.role])
  return { ...flags, role, logAsJson: flags.log_as_json, flags: shownFlags({ ...proxyFlags, ...agentLogging }, given), ignored }
}

/** Returns `--name="value"` for every flag, with its default where it is not given, sorted by name. */
function shownFlags(flags: FlagInput, given: ReadonlyMap<string, string>): string[] {
  const standard = (value: unknown) => (Array.isArray(value) ? `[${value.join(',')}]` : String(value ?? false))
  return Object.keys(flags)
    .sort()
    .map((name) => `--${name}=${JSON.stringify(given.get(name) ?? standard(flags[name]?.default))}`)
}
