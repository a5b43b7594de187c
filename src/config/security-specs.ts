/**
 * The documents that say who may call whom: RequestAuthentication, AuthorizationPolicy, PeerAuthentication (docs/resources.md,
 * A1 to A10). Unknown fields are faults here: a policy without a misspelt condition allows more.
 */
import { createPublicKey, type JsonWebKey } from 'node:crypto'
import { isIpOrCidr } from './addresses.ts'
import { conditionKey } from './policy-attributes.ts'
import { flag, isMapping, list, map, oneOf, type Read, type Report, record, reject, required, text } from './shape.ts'

/** A record whose unknown fields are faults. */
const strict: <F extends Parameters<typeof record>[0]>(fields: F, check?: Parameters<typeof record<F>>[1]) => ReturnType<typeof record<F>> = (
  fields,
  check,
) => record(fields, check, 'fault')

const selector = strict({ matchLabels: map(text({ max: 63 })) }, (value, path, report) => {
  for (const [key, label] of Object.entries(value.matchLabels ?? {})) {
    if (key === '') reject(report, `${path}.matchLabels`, 'a label needs a name')
    if (key.includes('*') || label.includes('*')) reject(report, `${path}.matchLabels[${key}]`, 'wildcards are not allowed here')
  }
})

/** Longest value that becomes part of a regular expression: a proxy refuses expressions of over a thousand steps. */
const longestInRegex = 800

/** A value of a rule: exact, `x*`, `*x` or `*`. */
const value = text({ max: 4096 })
const values = list(value)

const isPort = (given: string): boolean => /^\d{1,5}$/.test(given) && Number(given) >= 1 && Number(given) <= 65_535

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
  else if (given.length > longestInRegex && !/paths$/i.test(field)) reject(report, path, `longer than ${longestInRegex} characters`)
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
      else if (one.length > longestInRegex) reject(report, at, `longer than ${longestInRegex} characters`)
      else if (attribute?.type === 'ip' && !isIpOrCidr(one)) reject(report, at, `${JSON.stringify(one)} is not an IP address or CIDR`)
      else if (attribute?.type === 'port' && !isPort(one)) reject(report, at, `${JSON.stringify(one)} is not a port number`)
    }
}

/** Shape of an AuthorizationPolicy's spec. */
export const authorizationPolicySpec = strict(
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

const headerName = text({ max: 256, pattern: /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, what: 'a header name' })

/** A JSON Web Key Set as text (RFC 7517). */
const keySet = text({
  max: 1_048_576,
  check: keySetFault,
  examples: ['{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}'],
})

/** What keeps text from being a JSON Web Key Set, or undefined. */
export function keySetFault(content: string): string | undefined {
  let parsed: unknown
  try {
    parsed = JSON.parse(content)
  } catch {
    return 'not JSON'
  }
  if (!isMapping(parsed) || !Array.isArray(parsed.keys)) return 'not a JSON Web Key Set: it has no list of keys'
  if (parsed.keys.length === 0) return 'the key set has no keys'
  if (parsed.keys.length > 500) return 'the key set has more than 500 keys'
  const secret = parsed.keys.findIndex((key) => isMapping(key) && ('d' in key || key.kty === 'oct'))
  if (secret >= 0) return `key ${secret} is a secret, not a public key`
  return parsed.keys.some(isUsableKey) ? undefined : 'none of its keys can be used'
}

/** Curves that Envoy takes; for RSA there is none to name. */
const curves: Readonly<Record<string, readonly (string | undefined)[]>> = { RSA: [undefined], EC: ['P-256', 'P-384', 'P-521'], OKP: ['Ed25519'] }

/** Whether a proxy could check signatures with a key. A set without such a key would have it refuse its whole configuration. */
function isUsableKey(key: unknown): boolean {
  if (!isMapping(key) || typeof key.kty !== 'string' || !Object.hasOwn(curves, key.kty)) return false
  if (!curves[key.kty]?.includes(key.kty === 'RSA' ? undefined : (key.crv as string))) return false
  for (const field of ['kid', 'alg', 'use']) if (key[field] !== undefined && typeof key[field] !== 'string') return false
  try {
    createPublicKey({ key: key as JsonWebKey, format: 'jwk' })
    return true
  } catch {
    return false
  }
}

function checkUri(uri: string, path: string, report: Report): void {
  const url = URL.parse(uri)
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:') || url.hostname === '') reject(report, path, 'not an http or https URL')
  else if (url.username !== '' || url.password !== '') reject(report, path, 'must not carry a user name or password')
}

const jwtRule = strict(
  {
    issuer: required(text({ max: 2048 })),
    audiences: list(text({ max: 2048 })),
    jwksUri: text({ max: 2048 }),
    jwks: keySet,
    fromHeaders: list(strict({ name: required(headerName), prefix: text({ max: 256 }) })),
    fromParams: list(text({ max: 256 })),
    forwardOriginalToken: flag,
    outputPayloadToHeader: headerName,
    outputClaimToHeaders: list(strict({ header: required(headerName), claim: required(text({ max: 1024 })) })),
  },
  (value, path, report) => {
    if (value.issuer === '') reject(report, `${path}.issuer`, 'required, but empty')
    if (value.jwksUri) checkUri(value.jwksUri, `${path}.jwksUri`, report)
    if (value.jwksUri && value.jwks) reject(report, `${path}.jwks`, 'excluded by jwksUri')
    for (const field of ['audiences', 'fromParams'] as const)
      for (const [index, one] of (value[field] ?? []).entries()) if (one === '') reject(report, `${path}.${field}[${index}]`, 'must not be empty')
    for (const [index, one] of (value.outputClaimToHeaders ?? []).entries())
      if (one.claim === '') reject(report, `${path}.outputClaimToHeaders[${index}].claim`, 'must not be empty')
  },
)

/** Shape of a RequestAuthentication's spec. */
export const requestAuthenticationSpec = strict({ selector, jwtRules: list(jwtRule, { max: 500 }) })

const mtls = strict({ mode: oneOf('UNSET', 'DISABLE', 'PERMISSIVE', 'STRICT') })

/** Shape of a PeerAuthentication's spec. */
export const peerAuthenticationSpec = strict({ selector, mtls, portLevelMtls: map(mtls) }, (spec, path, report) => {
  const ports = Object.keys(spec.portLevelMtls ?? {})
  for (const port of ports) if (!isPort(port)) reject(report, `${path}.portLevelMtls[${port}]`, 'not a port number')
  if (spec.portLevelMtls && ports.length === 0) reject(report, `${path}.portLevelMtls`, 'needs at least one port')
  if (ports.length > 0 && Object.keys(spec.selector?.matchLabels ?? {}).length === 0)
    reject(report, `${path}.portLevelMtls`, 'needs a selector: ports belong to workloads')
})

export type AuthorizationPolicySpec = Read<typeof authorizationPolicySpec>
export type AuthorizationRule = NonNullable<AuthorizationPolicySpec['rules']>[number]
export type RequestAuthenticationSpec = Read<typeof requestAuthenticationSpec>
export type JwtRule = Read<typeof jwtRule>
export type PeerAuthenticationSpec = Read<typeof peerAuthenticationSpec>
