/** The options of the commands `discovery` and `token`, from their flags. */
import type { FlagInput } from '@oclif/core/interfaces'
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'
import type { TokenOrder } from '../../protocols/messages/identity.ts'
import { canonicalTrustDomain, trustDomainFault } from '../config/trust-domain.ts'
import { isAccount, isNamespace } from '../identity/spiffe-id.ts'
import { canonicalRegistry } from '../names/mesh-names.ts'
import { discoveryFlags, plugins, rootFlags, type tokenFlags, unbuiltPlugin } from './discovery-flags.ts'
import { type FlagValues, notYetOf } from './flags.ts'

/** Returns what `token` is to issue. Throws an Error that names a flag with an invalid value. */
export function tokenOrder({ namespace, 'service-account': account, audience, ttl, output }: FlagValues<typeof tokenFlags>): TokenOrder {
  if (!isNamespace(namespace)) throw new Error(`--namespace: ${JSON.stringify(namespace.slice(0, 100))} is not the name of a namespace`)
  if (!isAccount(account)) throw new Error(`--service-account: ${JSON.stringify(account.slice(0, 100))} is not the name of a service account`)
  return { namespace, account, audience, ttlMs: ttl, output }
}

type Values = FlagValues<typeof rootFlags & typeof discoveryFlags>

/** Why the value of a flag cannot be used. */
export interface FlagFault {
  readonly flag: string
  readonly reason: string
}

/** Returns what is wrong with the values of flags that their types permit. */
export function flagFaults(values: Values): FlagFault[] {
  const faults: FlagFault[] = []
  const tell = (flag: keyof Values, reason: string) => faults.push({ flag, reason })
  for (const flag of ['grpcAddr', 'secureGRPCAddr', 'httpAddr', 'httpsAddr', 'monitoringAddr'] as const)
    if (!isAddress(values[flag])) tell(flag, `${JSON.stringify(values[flag])} is not an address such as :15010 or 127.0.0.1:15010`)
  if (values.httpAddr === '') tell('httpAddr', 'an address is needed')
  const trustDomain = values['trust-domain']
  const wrong = trustDomain === '' ? undefined : trustDomainFault(trustDomain)
  if (wrong !== undefined) tell('trust-domain', wrong)
  for (const registry of values.registries.map(canonicalRegistry))
    if (registry !== 'Orchestrator' && registry !== 'Mock')
      tell('registries', `${JSON.stringify(registry)} is not a registry; choose from Orchestrator, Mock`)
  for (const name of appNamespacesOf(values)) if (!isNamespace(name)) tell('appNamespace', `${JSON.stringify(name)} is not the name of a namespace`)
  return faults
}

const appNamespacesOf = ({ appNamespace }: Values): string[] => appNamespace.flatMap((name) => name.trim() || [])

/**
 * Returns the options of the service. `texts` are the flags that were given, with their values as typed. Throws an Error that names the flags with
 * invalid values.
 */
export function discoveryOptions(values: Values, texts: ReadonlyMap<string, string>): DiscoveryOptions {
  const given = [...texts.keys()].sort()
  const faults = flagFaults(values)
  if (faults.length > 0) throw new Error(faults.map(({ flag, reason }) => `--${flag}: ${reason}`).join('; '))
  const trustDomain = values['trust-domain'] === '' ? '' : (canonicalTrustDomain(values['trust-domain']) ?? '')
  const flags: FlagInput = { ...rootFlags, ...discoveryFlags }
  const notices: DiscoveryOptions['notices'][number][] = given.flatMap((name) => {
    const notYet = notYetOf(flags[name])
    return notYet ? [{ level: 'warn' as const, message: `flag --${name} has no effect yet: ${notYet}` }] : []
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
  return {
    ...values,
    registries: values.registries.map(canonicalRegistry),
    appNamespace: appNamespacesOf(values),
    ctrlzAddr,
    trustDomain,
    namespace,
    clusterID,
    notices,
    given: given.map((name) => `--${name}=${JSON.stringify(texts.get(name))}`),
  }
}

function isAddress(address: string): boolean {
  const match = /^(.*):(\d+)$/.exec(address)
  return address === '' || (match !== null && Number(match[2]) <= 65_535)
}
