/** AuthorizationPolicy: which requests are allowed, denied, or put to an authorizer outside (docs/resources.md, A5 to A8). */
import { isIpOrCidr } from '../addresses.ts'
import { conditionKey } from '../policy-attributes.ts'
import { list, oneOf, type Read, type Report, reject, required, text } from '../shape.ts'
import { isPort, selector, selectorLabels, strict } from '../shapes/policies.ts'
import { type Kind, securityVersions } from './kind.ts'

/** A value of a rule: exact, `x*`, `*x` or `*`. */
const value = text({ max: 4096 })
const values = list(value)

const source = strict({
  principals: values,
  notPrincipals: values,
  requestPrincipals: values,
  notRequestPrincipals: values,
  namespaces: values,
  notNamespaces: values,
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

/** Fields of a source that an external authorizer's policy cannot use: what they look at comes later in the chain. */
const lateSources = ['namespaces', 'notNamespaces', 'principals', 'notPrincipals', 'requestPrincipals', 'notRequestPrincipals']

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
  else if (/ipblocks$/i.test(field) && !isIpOrCidr(given)) reject(report, path, `${JSON.stringify(given)} is not an IP address or CIDR`)
  else if (/ports$/i.test(field) && !isPort(given)) reject(report, path, `${JSON.stringify(given)} is not a port number`)
}

function checkCondition(given: Read<typeof condition>, path: string, report: Report): void {
  const attribute = conditionKey(given.key)
  if (!attribute) reject(report, `${path}.key`, `${JSON.stringify(given.key.slice(0, 100))} is not a known key`)
  if (!given.values?.length && !given.notValues?.length) reject(report, path, 'needs values or notValues')
  for (const field of ['values', 'notValues'] as const)
    for (const [index, one] of (given[field] ?? []).entries()) {
      const at = `${path}.${field}[${index}]`
      if (one === '') reject(report, at, 'empty text matches nothing')
      else if (attribute?.type === 'ip' && !isIpOrCidr(one)) reject(report, at, `${JSON.stringify(one)} is not an IP address or CIDR`)
      else if (attribute?.type === 'port' && !isPort(one)) reject(report, at, `${JSON.stringify(one)} is not a port number`)
    }
}

const shape = strict(
  { selector, action: oneOf('ALLOW', 'DENY', 'AUDIT', 'CUSTOM'), provider: strict({ name: text({ max: 253 }) }), rules: list(rule) },
  (spec, path, report) => {
    const action = spec.action ?? 'ALLOW'
    if ((action === 'DENY' || action === 'CUSTOM') && !spec.rules?.length) reject(report, `${path}.rules`, `${action} needs at least one rule`)
    if (action === 'CUSTOM' && !spec.provider?.name) reject(report, `${path}.provider.name`, 'required, but missing')
    if (action !== 'CUSTOM' && spec.provider) reject(report, `${path}.provider`, `only allowed with CUSTOM, not with ${action}`)
    for (const [index, entry] of (spec.rules ?? []).entries()) {
      const at = `${path}.rules[${index}]`
      for (const [i, from] of (entry.from ?? []).entries()) {
        checkFields(from.source, `${at}.from[${i}].source`, report)
        const late = action === 'CUSTOM' ? lateSources.find((field) => field in from.source) : undefined
        if (late) reject(report, `${at}.from[${i}].source.${late}`, 'not available to CUSTOM policies')
      }
      for (const [i, to] of (entry.to ?? []).entries()) checkFields(to.operation, `${at}.to[${i}].operation`, report)
      for (const [i, when] of (entry.when ?? []).entries()) {
        checkCondition(when, `${at}.when[${i}]`, report)
        if (action === 'CUSTOM' && /^(source\.(namespace|principal)|request\.auth\..*)$/.test(when.key))
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
  selects: { proxies: 'all', labels: selectorLabels },
} satisfies Kind<'AuthorizationPolicy', AuthorizationPolicySpec>

export type AuthorizationPolicySpec = Read<typeof shape>
export type AuthorizationRule = NonNullable<AuthorizationPolicySpec['rules']>[number]
