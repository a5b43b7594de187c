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

/**
 * Returns the options of the service. `texts` are the flags that were given, with their values as typed. Throws an Error that names a flag with
 * an invalid value.
 */
export function discoveryOptions(values: Values, texts: ReadonlyMap<string, string>): DiscoveryOptions {
  const given = [...texts.keys()].sort()
  for (const name of ['grpcAddr', 'secureGRPCAddr', 'httpAddr', 'httpsAddr', 'monitoringAddr'] as const) checkAddress(name, values[name])
  if (values.httpAddr === '') throw new Error('--httpAddr: an address is needed')
  const trustDomain = values['trust-domain'] === '' ? '' : canonicalTrustDomain(values['trust-domain'])
  if (trustDomain === undefined) throw new Error(`--trust-domain: ${trustDomainFault(values['trust-domain'])}`)
  const registries = values.registries.map(canonicalRegistry)
  for (const registry of registries)
    if (registry !== 'Orchestrator' && registry !== 'Mock')
      throw new Error(`--registries: ${JSON.stringify(registry)} is not a registry; choose from Orchestrator, Mock`)
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
  const appNamespace = values.appNamespace.flatMap((name) => name.trim() || [])
  for (const name of appNamespace)
    if (!/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name)) throw new Error(`--appNamespace: ${JSON.stringify(name)} is not the name of a namespace`)
  const namespace = given.includes('namespace') ? values.namespace : ''
  const clusterID = given.includes('clusterID') ? values.clusterID : ''
  const ctrlzAddr = values.ctrlz_port === 0 ? '' : `${values.ctrlz_address}:${values.ctrlz_port}`
  return {
    ...values,
    registries,
    appNamespace,
    ctrlzAddr,
    trustDomain,
    namespace,
    clusterID,
    notices,
    given: given.map((name) => `--${name}=${JSON.stringify(texts.get(name))}`),
  }
}

function checkAddress(flag: string, address: string): void {
  if (address === '') return
  const match = /^(.*):(\d+)$/.exec(address)
  if (!match || Number(match[2]) > 65_535)
    throw new Error(`--${flag}: ${JSON.stringify(address)} is not an address such as :15010 or 127.0.0.1:15010`)
}
