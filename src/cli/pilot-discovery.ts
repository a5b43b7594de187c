/** The commands of `pilot-discovery`. */
import { request as httpRequest } from 'node:http'
import { Args, Command } from '@oclif/core'
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'
import type { LogOptions } from '../logging/levels.ts'
import { buildInfo } from './build-info.ts'
import { discoveryFlags, loggingFlags, readLogOptions, rootFlags, versionFlags } from './discovery-flags.ts'
import { type FlagTable, type FlagValues, oclifFlags, readFlags } from './flag-table.ts'

/** Runs the discovery service until it is told to stop. */
export type RunDiscovery = (options: DiscoveryOptions, log: LogOptions) => Promise<void>

const shared = { ...oclifFlags(rootFlags, 'GLOBAL'), ...oclifFlags(loggingFlags, 'LOGGING') }
/** Flag tables, for what must know flags before they are parsed. */
export const flagTables: readonly FlagTable[] = [rootFlags, loggingFlags, discoveryFlags, versionFlags]

/** The commands; the discovery service itself is started by `run`, which only `discovery` loads. */
export function discoveryCommands(run: RunDiscovery) {
  return { discovery: discoveryCommand(run), request: RequestCommand, version: VersionCommand }
}

function discoveryCommand(run: RunDiscovery) {
  return class DiscoveryCommand extends Command {
    static override summary = 'Start the proxy discovery service'
    static override description = 'Reads configuration and service registries and programs proxies over XDS.'
    static override examples = [
      '<%= config.bin %> <%= command.id %> --registries Mock',
      '<%= config.bin %> <%= command.id %> --registries Mock --configDir ./config',
    ]
    static override flags = { ...oclifFlags(discoveryFlags, ''), ...shared }

    override async run(): Promise<void> {
      const { flags, metadata } = await this.parse(DiscoveryCommand)
      const log = readLogOptions(readFlags(loggingFlags, flags))
      const given = Object.keys(flags).filter((name) => !metadata.flags[name]?.setFromDefault)
      await run(discoveryOptions({ ...readFlags(rootFlags, flags), ...readFlags(discoveryFlags, flags) }, flags, given), log)
    }
  }
}

type Values = FlagValues<typeof rootFlags> & FlagValues<typeof discoveryFlags>

function discoveryOptions(values: Values, raw: Readonly<Record<string, unknown>>, given: readonly string[]): DiscoveryOptions {
  for (const name of ['grpcAddr', 'secureGRPCAddr', 'httpAddr', 'monitoringAddr'] as const) checkAddress(name, values[name])
  if (values.grpcAddr === '') throw new Error('--grpcAddr: an empty address (gRPC on the HTTP port) is not supported')
  if (values.httpAddr === '') throw new Error('--httpAddr: an address is needed')
  const trustDomain = values['trust-domain'].replaceAll('@', '.')
  if (!/^[A-Za-z0-9._-]{0,255}$/.test(trustDomain))
    throw new Error(`--trust-domain: ${JSON.stringify(values['trust-domain'])} is not a trust domain: letters, digits, ".", "-" and "_"`)
  for (const registry of values.registries)
    if (registry !== 'Orchestrator' && registry !== 'Mock')
      throw new Error(`--registries: ${JSON.stringify(registry)} is not a registry; choose from Orchestrator, Mock`)
  const table: FlagTable = { ...rootFlags, ...discoveryFlags }
  const notices: DiscoveryOptions['notices'][number][] = given.flatMap((name) => {
    const notYet = table[name]?.notYet
    return notYet ? [{ level: 'warn' as const, message: `flag --${name} has no effect yet: ${notYet}` }] : []
  })
  if (values.registries.includes('Orchestrator'))
    notices.push({
      level: 'warn',
      message: 'registry Orchestrator has no effect yet: there is no orchestrator client yet; services come from --configDir and --registries Mock',
    })
  for (const name of ['ext_authz', 'authn', 'authz'])
    if (!values.plugins.includes(name))
      notices.push({ level: 'warn', message: `--plugins leaves ${name} out: the policies that need it are not enforced` })
  if (given.includes('secureGRPCAddr') && values.tlsCertFile === '')
    notices.push({ level: 'warn', message: 'flag --secureGRPCAddr has no effect: it needs --tlsCertFile and --tlsKeyFile' })
  return { ...values, trustDomain, notices, given: given.map((name) => `--${name}=${JSON.stringify(raw[name])}`) }
}

function checkAddress(flag: string, address: string): void {
  if (address === '') return
  const match = /^(.*):(\d+)$/.exec(address)
  if (!match || Number(match[2]) > 65_535)
    throw new Error(`--${flag}: ${JSON.stringify(address)} is not an address such as :15010 or 127.0.0.1:15010`)
}

class VersionCommand extends Command {
  static override summary = 'Print build version information'
  static override flags = { ...oclifFlags(versionFlags, ''), ...shared }

  override async run(): Promise<void> {
    const { flags } = await this.parse(VersionCommand)
    readLogOptions(readFlags(loggingFlags, flags))
    const info = buildInfo()
    const { output, short } = readFlags(versionFlags, flags)
    if (output !== '' && output !== 'yaml' && output !== 'json') throw new Error("--output must be 'yaml' or 'json'")
    if (output === 'yaml') {
      const fields = { golang_version: info.runtime, revision: info.revision, status: info.status, tag: info.tag, version: info.version }
      this.log(
        `clientVersion:\n${Object.entries(fields)
          .map(([key, value]) => `  ${key}: ${value}\n`)
          .join('')}`,
      )
    } else if (output === 'json') {
      const clientVersion = { version: info.version, revision: info.revision, golang_version: info.runtime, status: info.status, tag: info.tag }
      this.log(JSON.stringify({ clientVersion }, null, 2))
    } else if (short) this.log(info.version)
    else
      this.log(
        `version.BuildInfo{Version:"${info.version}", GitRevision:"${info.revision}", GolangVersion:"${info.runtime}", BuildStatus:"${info.status}", GitTag:"${info.tag}"}`,
      )
  }
}

/** Where the metrics and debug pages are, and how long an answer may take. */
const monitoring = { host: '127.0.0.1', port: 15_014, timeoutMs: 60_000 }

class RequestCommand extends Command {
  static override summary = "Make an HTTP request to the discovery component's metrics and debug endpoint"
  static override examples = ['<%= config.bin %> <%= command.id %> GET /debug/syncz']
  static override args = {
    method: Args.string({ description: 'HTTP method', required: true }),
    path: Args.string({ description: 'request path', required: true }),
    body: Args.string({ description: 'request body' }),
  }
  static override flags = { ...shared }

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(RequestCommand)
    readLogOptions(readFlags(loggingFlags, flags))
    const { status, body } = await send(args.method.toUpperCase(), args.path.startsWith('/') ? args.path : `/${args.path}`, args.body)
    if (status > 399 && status !== 404) throw new Error(`received unsuccessful status code ${status}: ${body}`)
    this.log(body)
  }
}

function send(method: string, path: string, body: string | undefined): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host: monitoring.host, port: monitoring.port, method, path, timeout: monitoring.timeoutMs }, (response) => {
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(parts).toString() }))
      response.on('error', reject)
    })
    request.on('timeout', () => request.destroy(new Error(`no answer within ${monitoring.timeoutMs} ms`)))
    request.on('error', reject)
    request.end(body)
  })
}
