/** Finds Secrets that Gateways and DestinationRules name and that are not there, or lack what is needed of them (docs/resources.md, K1, K5). */
import type { ConfigObject } from '../../protocols/data.ts'
import type { DestinationRuleSpec, TlsSettings, TrafficPolicy } from '../config/kinds/destination-rule.ts'
import type { GatewaySpec } from '../config/kinds/gateway.ts'
import { hasAuthorities, hasPair } from '../config/secret-document.ts'
import { suggestion } from '../model/edit-distance.ts'
import { isExported } from '../model/match.ts'
import { allGateways } from './claims.ts'
import type { Tell } from './finding.ts'
import { listed } from './references.ts'
import type { World } from './world.ts'

type Gateway = ConfigObject<GatewaySpec>
type Rule = ConfigObject<DestinationRuleSpec>

/** The Secrets that workloads of a namespace read by a `credentialName`. What is in a Secret that may be written otherwise is not known. */
class Secrets {
  readonly namespace: string
  readonly #world: World

  constructor(namespace: string, world: World) {
    this.namespace = namespace
    this.#world = world
  }

  #placeOf(credentialName: string): [namespace: string, name: string] {
    const name = credentialName.replace(/^kubernetes:\/\//, '')
    const slash = name.indexOf('/')
    return slash < 0 ? [this.namespace, name] : [name.slice(0, slash), name.slice(slash + 1)]
  }

  isKnown(name: string): boolean {
    return this.#world.knowsSecrets(this.#placeOf(name)[0])
  }

  isThere(name: string): boolean {
    return this.#world.secrets(...this.#placeOf(name)).length > 0
  }

  hasPair(name: string): boolean {
    return this.#has(name, hasPair)
  }

  /** Whether there are authorities for a name: in the Secret of its own for them, or beside the certificate. */
  hasAuthorities(name: string): boolean {
    return this.#has(`${name}-cacert`, hasAuthorities) || this.#has(name, hasAuthorities)
  }

  #has(name: string, hasKeys: (keys: readonly string[]) => boolean): boolean {
    return this.#world.secrets(...this.#placeOf(name)).some(({ keys }) => keys === undefined || hasKeys(keys))
  }

  /** A name that may be meant. */
  near(name: string): string {
    const [namespace, own] = this.#placeOf(name)
    return suggestion(own, this.#world.secretNames(namespace))
  }
}

/** The modes of servers whose certificates may be in Secrets. */
const secretModes: ReadonlySet<string> = new Set(['SIMPLE', 'MUTUAL', 'OPTIONAL_MUTUAL'])

/** The namespaces of the workloads of a Gateway, which read its Secrets (docs/resources.md, K7). */
function workloadNamespaces({ namespace, spec: { selector = {} } }: Gateway, world: World): readonly string[] {
  if (Object.keys(selector).length === 0) return []
  const workloads = world.workloads(selector, world.mesh.scopesGateways ? namespace : undefined) ?? []
  return [...new Set(workloads.map((workload) => workload.namespace))]
}

/** Tells the Secrets of a Gateway, in the namespaces of its workloads or, while there is none, in its own. */
export function checkServerSecrets(gateway: Gateway, world: World, tell: Tell): void {
  const namespaces = workloadNamespaces(gateway, world)
  for (const namespace of namespaces.length > 0 ? namespaces : [gateway.namespace])
    for (const [index, { tls }] of gateway.spec.servers.entries())
      if (tls && secretModes.has(tls.mode ?? '')) checkServer(tls, `spec.servers[${index}].tls`, new Secrets(namespace, world), tell)
}

function checkServer(tls: NonNullable<GatewaySpec['servers'][number]['tls']>, at: string, secrets: Secrets, tell: Tell): void {
  const { namespace } = secrets
  const named: [string, string][] = (tls.credentialNames ?? []).map((name, number) => [`${at}.credentialNames[${number}]`, name])
  if (tls.credentialName) named.push([`${at}.credentialName`, tls.credentialName])
  for (const [path, name] of named) {
    if (!secrets.isKnown(name)) continue
    if (!secrets.isThere(name)) {
      const reason = `there is no Secret ${name} in the namespace ${namespace}, so the server takes no connections`
      tell('IST0101', path, reason, () => secrets.near(name))
    } else if (!secrets.hasPair(name))
      tell(
        'IST0101',
        path,
        `the Secret ${name} in the namespace ${namespace} has no certificate with its key (tls.crt and tls.key, or cert and key), so the server takes no connections`,
      )
  }
  const authorities: [string, string] | undefined = tls.caCertCredentialName ? [`${at}.caCertCredentialName`, tls.caCertCredentialName] : named[0]
  if (!authorities || tls.mode === 'SIMPLE') return
  const [path, name] = authorities
  // A Secret that is not there has been told, unless only authorities are named by it.
  if (!secrets.isKnown(name) || secrets.hasAuthorities(name) || (!tls.caCertCredentialName && !secrets.isThere(name))) return
  tell(
    'IST0101',
    path,
    `neither the Secret ${name}-cacert nor ${name} in the namespace ${namespace} has authorities (ca.crt or cacert), by which the mode ${tls.mode} knows clients, so the server takes no connections`,
  )
}

/**
 * Tells the Secrets of a DestinationRule, which gateways read in their own namespaces (docs/resources.md, C9). Several gateways may see the rule, and
 * some of them never connect to its host: a Secret is told that none of them has.
 */
export function checkRuleSecrets(rule: Rule, world: World, tell: Tell): void {
  const named = [...namedIn(rule.spec)]
  if (named.length === 0) return
  const gateways = world.claimants(allGateways) as readonly Gateway[]
  const seeing = new Set(
    gateways.flatMap((gateway) => workloadNamespaces(gateway, world)).filter((name) => isExported(rule.spec.exportTo, ['*'], rule.namespace, name)),
  )
  const places = (seeing.size > 0 ? [...seeing] : [rule.namespace]).map((namespace) => new Secrets(namespace, world))
  for (const { at, tls, name } of named) {
    const lacks = (has: (secrets: Secrets) => boolean) => places.every((secrets) => secrets.isKnown(name) && !has(secrets))
    const where = `the namespace ${listed(places.map(({ namespace }) => namespace))}`
    const consequence = 'so gateways connect to nothing with it'
    if (tls.mode === 'MUTUAL' && lacks((secrets) => secrets.hasPair(name))) {
      const is = lacks((secrets) => secrets.isThere(name))
        ? `there is no Secret ${name} in ${where}`
        : `the Secret ${name} in ${where} has no certificate with its key (tls.crt and tls.key, or cert and key)`
      tell('IST0101', at, `${is}, ${consequence}`, () => places[0]?.near(name) ?? '')
    } else if (!tls.insecureSkipVerify && lacks((secrets) => secrets.hasAuthorities(name)))
      tell(
        'IST0101',
        at,
        `neither the Secret ${name}-cacert nor ${name} in ${where} has authorities (ca.crt or cacert), by which servers are verified, ${consequence}`,
        () => places[0]?.near(name) ?? '',
      )
  }
}

interface NamedSecret {
  readonly at: string
  readonly tls: TlsSettings
  readonly name: string
}

/** The names of Secrets in the policies of a rule and of its subsets. */
function* namedIn({ trafficPolicy, subsets = [] }: DestinationRuleSpec): Generator<NamedSecret> {
  yield* namedInPolicy(trafficPolicy, 'spec.trafficPolicy')
  for (const [index, subset] of subsets.entries()) yield* namedInPolicy(subset.trafficPolicy, `spec.subsets[${index}].trafficPolicy`)
}

function* namedInPolicy(policy: TrafficPolicy | undefined, at: string): Generator<NamedSecret> {
  const levels = [policy, ...(policy?.portLevelSettings ?? [])]
  for (const [index, { tls } = {}] of levels.entries())
    if (tls?.credentialName && (tls.mode === 'SIMPLE' || tls.mode === 'MUTUAL'))
      yield { at: `${at}${index === 0 ? '' : `.portLevelSettings[${index - 1}]`}.tls.credentialName`, tls, name: tls.credentialName }
}
