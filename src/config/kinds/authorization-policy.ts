/** AuthorizationPolicy: which requests are allowed, denied, or checked by an external authorizer (docs/resources.md, A5 to A8). */
import { isIpOrCidr } from '../addresses.ts'
import { hostFault } from '../host-values.ts'
import { pathFault } from '../path-patterns.ts'
import { isPathTemplate, pathTemplateFault } from '../path-templates.ts'
import { conditionKey } from '../policy-attributes.ts'
import { list, oneOf, type Read, type Report, reject, required, text } from '../shape.ts'
import { checkTargets, dryRunOf, idleTargets, isPort, selectedLabels, strict, targets } from '../shapes/policies.ts'
import { type Kind, securityVersions } from './kind.ts'

/** A value in a rule: exact, `x*`, `*x` or `*`. */
const value = text({ max: 4096 })
const values = list(value)

const source = strict({
  principals: values,
  notPrincipals: values,
  requestPrincipals: values,
  notRequestPrincipals: values,
  namespaces: values,
  notNamespaces: values,
  serviceAccounts: values,
  notServiceAccounts: values,
  trustDomains: values,
  notTrustDomains: values,
  ipBlocks: values,
  notIpBlocks: values,
  remoteIpBlocks: values,
  notRemoteIpBlocks: values,
})
const operation = strict({
  hosts: values,
  notHosts: values,
  ports: values,
  notPorts: values,
  methods: values,
  notMethods: values,
  paths: values,
  notPaths: values,
})
const condition = strict({ key: required(text({ max: 1024 })), values, notValues: values })

const rule = strict({
  from: list(strict({ source: required(source) }), { min: 1 }),
  to: list(strict({ operation: required(operation) }), { min: 1 }),
  when: list(condition),
})

/** Fields of a source that are not available to CUSTOM policies, because their attributes are set by a later filter. */
const lateSources = ['namespaces', 'principals', 'requestPrincipals', 'serviceAccounts', 'trustDomains'].flatMap((field) => [
  field,
  `not${field.charAt(0).toUpperCase()}${field.slice(1)}`,
])

/** The maximum length of a trust domain pattern for which a regular expression stays within the default program size. */
const longestTrustDomain = 60

/** Returns why text is not the name of a service account, `<name>` or `<namespace>/<name>`. Undefined when it is one. */
function accountFault(given: string): string | undefined {
  if (given.includes('*')) return 'a service account is named without wildcards'
  return /^[^/]+(\/[^/]+)?$/.test(given) ? undefined : `${JSON.stringify(given.slice(0, 100))} is neither <name> nor <namespace>/<name>`
}

/** Returns why text is not a valid trust domain pattern. Undefined when it is valid. */
function trustDomainPatternFault(given: string): string | undefined {
  if (given.includes('/')) return 'a trust domain has no slash'
  if (!/^[\x21-\x7e]*$/.test(given)) return 'never matches: a trust domain is plain ASCII without spaces'
  if (given.replace(/^\*|\*$/, '').includes('*')) return 'a star counts at the start or at the end only'
  return given.startsWith('*') && given.length > longestTrustDomain ? `longer than ${longestTrustDomain} characters` : undefined
}

function rejectIf(report: Report, path: string, reason: string | undefined): void {
  if (reason !== undefined) reject(report, path, reason)
}

function checkFields(entry: Readonly<Record<string, readonly string[] | undefined>>, path: string, report: Report): void {
  const present = Object.entries(entry).filter(([, given]) => given !== undefined)
  if (present.length === 0) reject(report, path, 'needs at least one field')
  for (const [field, given] of present) {
    if (given?.length === 0) reject(report, `${path}.${field}`, 'an empty list matches nothing; leave the field out or name a value')
    for (const [index, one] of (given ?? []).entries()) checkValue(field, one, `${path}.${field}[${index}]`, report)
  }
}

function checkValue(field: string, given: string, path: string, report: Report): void {
  if (given === '') reject(report, path, 'empty text matches nothing')
  else if (/paths$/i.test(field) && isPathTemplate(given)) rejectIf(report, path, pathTemplateFault(given))
  else if (/serviceaccounts?$/i.test(field)) rejectIf(report, path, accountFault(given))
  else if (/trustdomains?$/i.test(field)) rejectIf(report, path, trustDomainPatternFault(given))
  else if (/ipblocks$/i.test(field) && !isIpOrCidr(given)) reject(report, path, `${JSON.stringify(given)} is not an IP address or CIDR`)
  else if (/ports$/i.test(field) && !isPort(given)) reject(report, path, `${JSON.stringify(given)} is not a port number`)
  else if (/paths$/i.test(field)) checkMatchable('path', given, path, report)
  else if (/hosts$/i.test(field)) checkMatchable('host', given, path, report)
}

/**
 * Rejects values that can never match under any normalization. Those that depend on the mesh's normalization are found with the mesh
 * configuration (src/snapshot/matchable-policies.ts).
 */
function checkMatchable(kind: 'host' | 'path', given: string, path: string, report: Report): void {
  if (report.optOuts?.has(`never-matching-${kind}s`)) return
  const fault = kind === 'path' ? pathFault(given, 'NONE') : hostFault(given)
  if (fault) reject(report, path, `${JSON.stringify(given.slice(0, 200))} ${fault}`)
}

function checkCondition(given: Read<typeof condition>, path: string, report: Report): void {
  const attribute = conditionKey(given.key)
  if (!attribute) reject(report, `${path}.key`, `${JSON.stringify(given.key.slice(0, 100))} is not a known key`)
  if (!given.values?.length && !given.notValues?.length) reject(report, path, 'needs values or notValues')
  for (const field of ['values', 'notValues'] as const)
    for (const [index, one] of (given[field] ?? []).entries()) {
      const at = `${path}.${field}[${index}]`
      if (one === '') reject(report, at, 'empty text matches nothing')
      else if (attribute?.type === 'host') checkMatchable('host', one, at, report)
      else if (attribute?.type === 'serviceAccount') rejectIf(report, at, accountFault(one))
      else if (attribute?.type === 'trustDomain') rejectIf(report, at, trustDomainPatternFault(one))
      else if (attribute?.type === 'ip' && !isIpOrCidr(one)) reject(report, at, `${JSON.stringify(one)} is not an IP address or CIDR`)
      else if (attribute?.type === 'port' && !isPort(one)) reject(report, at, `${JSON.stringify(one)} is not a port number`)
    }
}

const shape = strict(
  { ...targets, action: oneOf('ALLOW', 'DENY', 'AUDIT', 'CUSTOM'), provider: strict({ name: text({ max: 253 }) }), rules: list(rule) },
  (spec, path, report) => {
    checkTargets(spec, path, report)
    const action = spec.action ?? 'ALLOW'
    if ((action === 'DENY' || action === 'CUSTOM') && !spec.rules?.length) reject(report, `${path}.rules`, `${action} needs at least one rule`)
    if (action === 'CUSTOM' && !spec.provider?.name) reject(report, `${path}.provider.name`, 'required, but missing')
    if (action !== 'CUSTOM' && spec.provider) reject(report, `${path}.provider`, `only allowed with CUSTOM, not with ${action}`)
    for (const [index, entry] of (spec.rules ?? []).entries()) {
      const at = `${path}.rules[${index}]`
      for (const [i, from] of (entry.from ?? []).entries()) {
        checkFields(from.source, `${at}.from[${i}].source`, report)
        const beside = ['principals', 'notPrincipals', 'namespaces', 'notNamespaces'].find((field) => field in from.source)
        if (beside && ('serviceAccounts' in from.source || 'notServiceAccounts' in from.source))
          reject(report, `${at}.from[${i}].source.${beside}`, 'excluded by serviceAccounts')
        const late = action === 'CUSTOM' ? lateSources.find((field) => field in from.source) : undefined
        if (late) reject(report, `${at}.from[${i}].source.${late}`, 'not available to CUSTOM policies')
      }
      for (const [i, to] of (entry.to ?? []).entries()) checkFields(to.operation, `${at}.to[${i}].operation`, report)
      for (const [i, when] of (entry.when ?? []).entries()) {
        checkCondition(when, `${at}.when[${i}]`, report)
        if (action === 'CUSTOM' && /^(source\.(namespace|principal|serviceAccount|trustDomain)|request\.auth\..*)$/.test(when.key))
          reject(report, `${at}.when[${i}].key`, `${when.key} is not available to CUSTOM policies`)
      }
    }
  },
)

/** The kind AuthorizationPolicy. */
export const authorizationPolicy = {
  name: 'AuthorizationPolicy',
  plural: 'authorizationpolicies',
  group: 'security',
  versions: securityVersions,
  spec: shape,
  scope: 'namespace or mesh',
  remarks({ annotations, spec }, domain) {
    const { action = 'ALLOW' } = spec
    const idle = idleTargets(spec)
    const dryRun = dryRunOf({ annotations }, domain)
    const warn = (reason: string) => [...idle, { path: `metadata.annotations[${domain}/dry-run]`, reason }]
    if (dryRun === 'unclear') return warn('neither true nor false: the policy is enforced')
    if (dryRun && action === 'CUSTOM')
      return warn('the policy has no effect: CUSTOM policies cannot be dry-run, since their decision is that of an external authorizer')
    return idle
  },
  selects: { proxies: 'all', labels: selectedLabels },
} satisfies Kind<'AuthorizationPolicy', AuthorizationPolicySpec>

export type AuthorizationPolicySpec = Read<typeof shape>
export type AuthorizationRule = NonNullable<AuthorizationPolicySpec['rules']>[number]
