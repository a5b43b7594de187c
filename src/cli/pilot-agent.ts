/** The commands of `pilot-agent`. */
import type { ProxyOptions, ProxyRequest, WaitSettings } from '../../protocols/messages/agent-options.ts'
import { roleOf } from '../bootstrap/node.ts'
import { agentScopes, type LogOptions } from '../logging/levels.ts'
import { agentLogging, proxyFlags, waitFlags } from './agent-flags.ts'
import type { CommandLine, CommandSpec } from './command-line.ts'
import { type FlagTable, readFlags } from './flag-table.ts'
import { readLogOptions } from './logging-flags.ts'
import { printPage } from './print.ts'
import { type RedirectWork, redirectCommands } from './redirect.ts'
import { versionCommand } from './version.ts'

/** The implementations of the commands. Each is imported only by its command. */
export interface AgentWork extends RedirectWork {
  /** Runs the proxy and the agent's servers until they have ended. */
  readonly proxy: (options: ProxyOptions, log: LogOptions) => Promise<void>
  /** Sends a request to the proxy's admin port. */
  readonly request: (request: ProxyRequest) => Promise<{ readonly status: number; readonly body: string }>
  /** Waits until the proxy is ready. Rejects after the timeout. */
  readonly wait: (settings: WaitSettings, log: LogOptions) => Promise<void>
}

const shared = [{ heading: 'LOGGING', table: agentLogging }]
const logOptions = (flags: CommandLine['flags']) => readLogOptions(readFlags(agentLogging, flags), agentScopes)

/** Returns the commands. */
export function agentCommands(work: AgentWork): Readonly<Record<string, CommandSpec>> {
  return {
    ...redirectCommands(work, shared, logOptions),
    proxy: {
      summary: 'Run the proxy and everything that serves it',
      description:
        'Starts the proxy, watches it, and serves its certificates and configuration. The role is sidecar, beside one workload, or router, a gateway. Flags and further arguments that are not known are ignored, for command lines of other releases.',
      examples: ['sidecar', 'router --proxyLogLevel info', 'sidecar --serviceCluster cart.shop --log_output_level default:debug'],
      args: [{ name: 'role', about: 'sidecar (default) or router', required: false }],
      flags: [{ heading: '', table: proxyFlags }, ...shared],
      ignoresUnknown: true,
      run: async (line) => work.proxy(proxyOptions(line), logOptions(line.flags)),
    },
    request: {
      summary: 'Make an HTTP request to the proxy admin API',
      description: 'The port is that of the proxy configuration of the environment, 15000 unless it says another.',
      examples: ['GET /stats', 'POST /logging?level=debug'],
      args: [
        { name: 'method', about: 'HTTP method', required: true },
        { name: 'path', about: 'request path', required: true },
        { name: 'body', about: 'request body', required: false },
      ],
      flags: shared,
      async run({ flags, args: [method = '', path = '', body] }) {
        logOptions(flags)
        printPage(await work.request({ method: method.toUpperCase(), path: path.startsWith('/') ? path : `/${path}`, body }))
      },
    },
    wait: {
      summary: 'Wait until the proxy is ready',
      description: 'Asks the URL until it answers with status 200. Meant to hold an application back until its proxy is ready.',
      examples: ['', '--timeoutSeconds 120'],
      args: [],
      flags: [{ heading: '', table: waitFlags }, ...shared],
      async run({ flags }) {
        const { url, periodMillis, requestTimeoutMillis, timeoutSeconds } = readFlags(waitFlags, flags)
        const times = { periodMs: periodMillis, requestTimeoutMs: requestTimeoutMillis, timeoutMs: timeoutSeconds * 1000 }
        await work.wait({ url: checkedUrl(url), ...times }, logOptions(flags))
      },
    },
    version: versionCommand(shared, logOptions),
  }
}

function checkedUrl(url: string): string {
  const protocol = URL.canParse(url) ? new URL(url).protocol : undefined
  if (protocol !== 'http:' && protocol !== 'https:') throw new Error(`--url: ${JSON.stringify(url.slice(0, 200))} is not an HTTP URL`)
  return url
}

function proxyOptions({ flags, args, ignored = [] }: CommandLine): ProxyOptions {
  const role = roleOf(args)
  const { log_as_json: logAsJson } = readFlags(agentLogging, flags)
  return { ...readFlags(proxyFlags, flags), role, logAsJson, flags: shownFlags({ ...proxyFlags, ...agentLogging }, flags), ignored }
}

/** Returns `--name="value"` for every flag, with its default where it is not given, sorted by name. */
function shownFlags(table: FlagTable, given: CommandLine['flags']): string[] {
  const shown = (value: unknown) => JSON.stringify(Array.isArray(value) ? `[${value.join(',')}]` : String(value))
  return Object.keys(table)
    .sort()
    .map((name) => `--${name}=${shown(given[name] ?? table[name]?.default)}`)
}
