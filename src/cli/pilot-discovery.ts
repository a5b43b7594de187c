/** The commands of `pilot-discovery`. */
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'
import type { TokenOrder } from '../../protocols/messages/identity.ts'
import { canonicalTrustDomain, trustDomainFault } from '../config/trust-domain.ts'
import { isAccount, isNamespace } from '../identity/spiffe-id.ts'
import { discoveryScopes, type LogOptions } from '../logging/levels.ts'
import { type CaWork, caCommands } from './ca.ts'
import type { CommandLine, CommandSpec } from './command-line.ts'
import { discoveryFlags, discoveryLogging, plugins, rootFlags, tokenFlags, unbuiltPlugin } from './discovery-flags.ts'
import { type FlagTable, type FlagValues, readFlags } from './flag-table.ts'
import { readLogOptions } from './logging-flags.ts'
import { print, printPage } from './print.ts'
import { versionCommand } from './version.ts'

/** Runs the discovery service until it is stopped. */
export type RunDiscovery = (options: DiscoveryOptions, log: LogOptions) => Promise<void>

/** Issues a token for a workload, and writes it to the file that the order names, if any. */
export type IssueToken = (order: TokenOrder) => Promise<string>

const shared = [
  { heading: 'GLOBAL', table: rootFlags },
  { heading: 'LOGGING', table: discoveryLogging },
]

/** Returns the commands. The implementations are passed as functions, and each is imported only by its command. */
export function discoveryCommands(run: RunDiscovery, issueToken: IssueToken, loadCa: () => Promise<CaWork>): Readonly<Record<string, CommandSpec>> {
  return {
    ...caCommands(loadCa, shared, readShared),
    discovery: {
      summary: 'Start the proxy discovery service',
      description: 'Reads configuration and service registries and programs proxies over XDS.',
      examples: ['--registries Mock', '--registries Mock --configDir ./config'],
      args: [],
      flags: [{ heading: '', table: discoveryFlags }, ...shared],
      async run({ flags }) {
        const values = { ...readShared(flags), ...readFlags(discoveryFlags, flags) }
        await run(discoveryOptions(values, flags), logOptions(flags))
      },
    },
    request: {
      summary: "Make an HTTP request to the discovery component's metrics and debug endpoint",
      description: 'Asks the server whose admin socket is at ./var/run/mesh/admin.sock, or where MESHD_ADMIN_SOCKET says.',
      examples: ['GET /debug/syncz', 'POST /debug/adsz push=true'],
      args: [
        { name: 'method', about: 'HTTP method', required: true },
        { name: 'path', about: 'request path', required: true },
        { name: 'body', about: 'request body: a form such as name=value&other=value', required: false },
      ],
      flags: shared,
      run: request,
    },
    token: {
      summary: 'Make a token for a workload, which the discovery service of this machine accepts',
      description:
        'Signs with a key of its own in ./var/lib/mesh/ca, or where MESHD_CA_STATE_DIR says: a service with the same directory accepts the token without further configuration, unless it runs in an orchestrator. The key is made when there is none; whoever can read it can be any workload.',
      examples: ['--namespace shop --service-account cart', '-n shop --ttl 1h -o ./var/run/secrets/tokens/mesh-token'],
      args: [],
      flags: [{ heading: '', table: tokenFlags }, ...shared],
      async run({ flags }) {
        readShared(flags)
        const order = tokenOrder(readFlags(tokenFlags, flags))
        const token = await issueToken(order)
        if (order.output === '') print(token)
      },
    },
    version: versionCommand(shared, readShared),
  }
}

/** Validates the flags that every command has, so that every command rejects invalid ones. */
function readShared(flags: CommandLine['flags']): FlagValues<typeof rootFlags> {
  logOptions(flags)
  return readFlags(rootFlags, flags)
}

const logOptions = (flags: CommandLine['flags']) => readLogOptions(readFlags(discoveryLogging, flags), discoveryScopes)

function tokenOrder({ namespace, 'service-account': account, audience, ttl, output }: FlagValues<typeof tokenFlags>): TokenOrder {
  if (!isNamespace(namespace)) throw new Error(`--namespace: ${JSON.stringify(namespace.slice(0, 100))} is not the name of a namespace`)
  if (!isAccount(account)) throw new Error(`--service-account: ${JSON.stringify(account.slice(0, 100))} is not the name of a service account`)
  return { namespace, account, audience, ttlMs: ttl, output }
}

type Values = FlagValues<typeof rootFlags> & FlagValues<typeof discoveryFlags>

function discoveryOptions(values: Values, flags: CommandLine['flags']): DiscoveryOptions {
  const given = Object.keys(flags).sort()
  for (const name of ['grpcAddr', 'secureGRPCAddr', 'httpAddr', 'monitoringAddr'] as const) checkAddress(name, values[name])
  if (values.grpcAddr === '') throw new Error('--grpcAddr: an empty address (gRPC on the HTTP port) is not supported')
  if (values.httpAddr === '') throw new Error('--httpAddr: an address is needed')
  const trustDomain = values['trust-domain'] === '' ? '' : canonicalTrustDomain(values['trust-domain'])
  if (trustDomain === undefined) throw new Error(`--trust-domain: ${trustDomainFault(values['trust-domain'])}`)
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
      // Without the flag nobody chose it: it is in the default.
      level: given.includes('registries') ? 'warn' : 'info',
      message: 'registry Orchestrator has no effect yet: there is no orchestrator client yet; services come from --configDir and --registries Mock',
    })
  for (const plugin of values.plugins) {
    if (plugins.includes(plugin)) continue
    const why = plugin === unbuiltPlugin ? 'there is no exchange of metadata yet' : `it is none of ${[...plugins, unbuiltPlugin].join(', ')}`
    notices.push({ level: 'warn', message: `--plugins: ${JSON.stringify(plugin)} has no effect: ${why}` })
  }
  for (const name of plugins)
    if (!values.plugins.includes(name))
      notices.push({ level: 'warn', message: `--plugins leaves ${name} out: the policies that need it are not enforced` })
  if (values.secureGRPCAddr === '' && values.tlsCertFile !== '')
    notices.push({ level: 'warn', message: 'flags --tlsCertFile and --tlsKeyFile have no effect: --secureGRPCAddr is empty' })
  const namespace = given.includes('namespace') ? values.namespace : ''
  const clusterID = given.includes('clusterID') ? values.clusterID : ''
  const ctrlzAddr = values.ctrlz_port === 0 ? '' : `${values.ctrlz_address}:${values.ctrlz_port}`
  return { ...values, ctrlzAddr, trustDomain, namespace, clusterID, notices, given: given.map((name) => `--${name}=${JSON.stringify(flags[name])}`) }
}

function checkAddress(flag: string, address: string): void {
  if (address === '') return
  const match = /^(.*):(\d+)$/.exec(address)
  if (!match || Number(match[2]) > 65_535)
    throw new Error(`--${flag}: ${JSON.stringify(address)} is not an address such as :15010 or 127.0.0.1:15010`)
}

async function request({ flags, args: [method = '', path = '', body] }: CommandLine): Promise<void> {
  readShared(flags)
  const { askServer } = await import('./admin-socket.ts')
  printPage(await askServer({ method: method.toUpperCase(), path: path.startsWith('/') ? path : `/${path}`, form: body }))
}
