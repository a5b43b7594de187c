/** Finds rules of AuthorizationPolicies that ask for what no request has (docs/resources.md, A7, A8). */
import type { ConfigObject } from '../../protocols/data.ts'
import type { AuthorizationPolicySpec, AuthorizationRule } from '../config/kinds/authorization-policy.ts'
import { selectedLabels } from '../config/shapes/policies.ts'
import { isHttp } from '../model/protocol.ts'
import type { Tell } from './finding.ts'
import { peerMode } from './peer-modes.ts'
import { listed, tellNoNamespace } from './references.ts'
import { innerStarFault, methodValueFault } from './request-values.ts'
import { selectedNamespace } from './selectors.ts'
import { servicesFor, sidecarWorkloads } from './workload-ports.ts'
import type { World } from './world.ts'

type Policy = ConfigObject<AuthorizationPolicySpec>

/** Values of an attribute that a rule asks for or, with `not`, excludes. `at`: the field with the list. */
interface Asked {
  /** The attribute by its name in conditions; empty: an attribute of requests that has none, such as the method. */
  readonly key: string
  readonly at: string
  readonly values: readonly string[]
}

/** The attributes that fields of sources and operations stand for. */
const fieldKeys: Readonly<Record<string, string>> = {
  principals: 'source.principal',
  namespaces: 'source.namespace',
  serviceAccounts: 'source.serviceAccount',
  trustDomains: 'source.trustDomain',
  requestPrincipals: 'request.auth.principal',
  hosts: 'request.host',
  methods: 'request.method',
  paths: 'request.path',
}

const identityKeys: ReadonlySet<string> = new Set(['source.principal', 'source.namespace', 'source.serviceAccount', 'source.trustDomain'])

/** The attributes of which no value has a star. Others may have one, such as a header. */
const starless: ReadonlySet<string> = new Set([
  ...Object.values(fieldKeys),
  ...['path', 'method', 'authority'].map((name) => `request.headers[:${name}]`),
  'request.headers[host]',
  'connection.sni',
])

const methodKeys: ReadonlySet<string> = new Set(['request.method', 'request.headers[:method]'])

/** Yields what a rule asks for. */
function* askedIn({ from = [], to = [], when = [] }: AuthorizationRule, at: string): Generator<Asked> {
  const fields = function* (entry: Readonly<Record<string, readonly string[] | undefined>>, path: string): Generator<Asked> {
    for (const [field, values = []] of Object.entries(entry)) {
      const key = fieldKeys[field.replace(/^not(.)/, (_, first: string) => first.toLowerCase())]
      if (key !== undefined) yield { key, at: `${path}.${field}`, values }
    }
  }
  for (const [index, { source }] of from.entries()) yield* fields(source, `${at}.from[${index}].source`)
  for (const [index, { operation }] of to.entries()) yield* fields(operation, `${at}.to[${index}].operation`)
  for (const [index, { key, values, notValues }] of when.entries())
    for (const [field, given] of Object.entries({ values, notValues })) if (given) yield { key, at: `${at}.when[${index}].${field}`, values: given }
}

/** Tells the rules of a policy that match nothing, or more than they say. */
export function checkRules(object: Policy, world: World, tell: Tell): void {
  const rules = (object.spec.rules ?? []).map((rule, index) => [...askedIn(rule, `spec.rules[${index}]`)])
  for (const asked of rules.flat()) {
    if (asked.key === 'source.principal') checkPrincipals(asked, world, tell)
    if (asked.key === 'source.namespace') checkNamespaces(asked, world, tell)
    if (methodKeys.has(asked.key)) checkValues(asked, methodValueFault, tell)
    if (starless.has(asked.key)) checkValues(asked, (value) => innerStarFault(value, asked.key === 'request.path'), tell)
  }
  const first = (isIt: (key: string) => boolean) => rules.flatMap((rule) => rule.find(({ key }) => isIt(key)) ?? [])
  checkTokens(
    object,
    first((key) => key.startsWith('request.auth.')),
    world,
    tell,
  )
  const ofIdentity = first((key) => identityKeys.has(key))
  const ofRequests = first((key) => key.startsWith('request.'))
  const labels = selectedLabels(object.spec)
  if (ofIdentity.length + ofRequests.length === 0 || Object.keys(labels).length === 0) return
  const workloads = sidecarWorkloads(world.workloads(labels, selectedNamespace(object, world)) ?? [])
  if (!workloads) return
  for (const { at } of ofIdentity) checkIdentity(object, labels, at, world, tell)
  const services = ofRequests.length > 0 ? servicesFor(workloads, world) : []
  const ports = services.flatMap((service) => service.ports)
  if (ports.length === 0 || ports.some(({ protocol }) => isHttp(protocol) || protocol === 'unknown')) return
  const consequence = (object.spec.action ?? 'ALLOW') === 'ALLOW' ? 'the rule admits nobody' : 'the rule is applied without it, to all connections'
  for (const { at } of ofRequests)
    tell(
      'MESH0011',
      at,
      `no port of the Service ${listed(services.map(({ name }) => name))} is HTTP, and other connections have no such attribute, so ${consequence}: declare the protocol HTTP, or leave it out`,
    )
}

/** Tells principals in a form that none has, and those of namespaces that do not exist. */
function checkPrincipals({ at, values }: Asked, world: World, tell: Tell): void {
  const { trustDomains } = world.mesh
  for (const [index, value] of values.entries()) {
    const path = `${at}[${index}]`
    const [domain = ''] = value.split('/')
    if (value.startsWith('spiffe://'))
      tell('MESH0011', path, `no principal begins with spiffe://, so this matches nobody: write ${JSON.stringify(value.slice('spiffe://'.length))}`)
    else if (!value.includes('*')) {
      const [, namespace] = /^[^/]+\/ns\/([^/]+)\/sa\/[^/]+$/.exec(value) ?? []
      if (namespace !== undefined) {
        if (trustDomains.includes(domain)) tellNoNamespace(namespace, ', so nobody has this principal', { at: path, world, tell })
      } else if (!domain.includes('.') || trustDomains.includes(domain))
        tell(
          'MESH0011',
          path,
          `${JSON.stringify(value)} matches nobody: a principal is <trust domain>/ns/<namespace>/sa/<service account>, such as ${trustDomains[0]}/ns/default/sa/default`,
        )
    }
  }
}

/** Tells namespaces that do not exist. */
function checkNamespaces({ at, values }: Asked, world: World, tell: Tell): void {
  for (const [index, name] of values.entries()) if (!name.includes('*')) tellNoNamespace(name, '', { at: `${at}[${index}]`, world, tell })
}

/** Tells values that no request has. A rule that denies them denies nothing. */
function checkValues({ at, values }: Asked, fault: (value: string) => string | undefined, tell: Tell): void {
  for (const [index, value] of values.entries()) {
    const reason = fault(value)
    if (reason !== undefined) tell('MESH0011', `${at}[${index}]`, reason)
  }
}

/** Tells that no request has a token, where RequestAuthentications are known and none of them is for the namespace. */
function checkTokens({ namespace }: Policy, asked: readonly Asked[], world: World, tell: Tell): void {
  if (asked.length === 0 || !world.isRead('RequestAuthentication')) return
  const all = world.paths('RequestAuthentication')
  const { rootNamespace } = world.mesh
  const isFor = (path: string) => namespace === rootNamespace || [namespace, rootNamespace].includes(path.slice(0, path.indexOf('/')))
  if (all.length === 0 || all.some(isFor)) return
  for (const { at } of asked)
    tell(
      'MESH0011',
      at,
      `no RequestAuthentication is in the namespace ${namespace} or ${rootNamespace}, so no request there has a token that is known: add one with the issuer`,
    )
}

/** Tells that callers have no identity, where the workloads accept no mutual TLS. */
function checkIdentity(object: Policy, labels: Readonly<Record<string, string>>, at: string, world: World, tell: Tell): void {
  if (selectedNamespace(object, world) === undefined || !world.isRead('PeerAuthentication')) return
  const peers = peerMode(object.namespace, labels, world)
  if (peers?.mode !== 'DISABLE') return
  const { namespace, name } = peers.policy
  tell('MESH0011', at, `the PeerAuthentication ${namespace}/${name} disables mutual TLS, so no caller has an identity: set another mode`)
}
