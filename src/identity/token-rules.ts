/** Parses the rules for accepting workload tokens from the environment (docs/identity.md, K1 to K6). */
import type { Features } from '../config/features.ts'
import { isMapping } from '../config/shape.ts'
import { keySetFault } from '../config/shapes/key-set.ts'
import { openIdPrefix } from '../snapshot/key-sources.ts'

/** The source of an issuer's keys. */
export type KeyOrigin =
  | { readonly type: 'inline'; readonly keys: string }
  /** A file that is watched. `isPrivate`: the file must not be writable for other users, who could otherwise impersonate any workload. */
  | { readonly type: 'file'; readonly path: string; readonly isPrivate: boolean }
  /** A URL, or `openid:` and an issuer whose discovery document names the keys' URL. */
  | { readonly type: 'remote'; readonly source: string }

/** A rule for accepting the tokens of an issuer. */
export interface TokenRule {
  /** The name of the authenticator in metrics. */
  readonly authenticator: 'jwt-rule' | 'token-issuer' | 'local-issuer'
  readonly issuer: string
  /** The accepted audiences. A token must have at least one of them. */
  readonly audiences: readonly string[]
  readonly origin: KeyOrigin
  /** Whether the rule applies to calls of the certificate authority only. */
  readonly onlyForCa: boolean
}

/** The issuer of tokens made by `pilot-discovery token`. */
export const localIssuer = 'mesh-local'
/** The file with that issuer's public keys, in the directory of the certificate authority's state. */
export const localKeysFile = 'token-keys.json'

/** The claims `iss` and `aud` of this process's own token. */
export interface OwnToken {
  readonly issuer: string
  readonly audiences: readonly string[]
}

type Settings = Pick<Features, 'JWT_RULE' | 'TOKEN_ISSUER' | 'AUDIENCE' | 'TOKEN_AUDIENCES' | 'ORCHESTRATOR_SERVICE_HOST'>

/** The maximum numbers of rules in `JWT_RULE` and of audiences in a rule, and the maximum length of a name in characters. */
const most = { rules: 16, audiences: 64, text: 2048 }

/**
 * Returns all rules in the order of their evaluation. Without an orchestrator they include the local issuer of `stateDir` and the issuer of
 * `TOKEN_ISSUER` or of the process's own token. Throws an Error that names the variable and the invalid field.
 */
export function tokenRules(settings: Settings, stateDir: string, own: OwnToken | undefined): TokenRule[] {
  const audiences = tokenAudiences(settings.TOKEN_AUDIENCES)
  const rules = readJwtRules(settings.JWT_RULE, audiences)
  if (settings.ORCHESTRATOR_SERVICE_HOST !== '') return rules
  rules.push({
    authenticator: 'local-issuer',
    issuer: localIssuer,
    audiences,
    origin: { type: 'file', path: `${stateDir}/${localKeysFile}`, isPrivate: true },
    onlyForCa: false,
  })
  const issuer = settings.TOKEN_ISSUER || (own?.issuer ?? '')
  if (issuer === '') return rules
  const fault = keyUrlFault(issuer)
  // The issuer of a mounted token is not a setting: when it is not a URL of a key source, the rule is omitted without an error.
  if (fault !== undefined && settings.TOKEN_ISSUER === '') return rules
  if (fault !== undefined) throw new Error(`environment variable TOKEN_ISSUER: ${fault}`)
  const wanted = settings.AUDIENCE === '' ? (own?.audiences ?? audiences) : [settings.AUDIENCE]
  rules.push({
    authenticator: 'token-issuer',
    issuer,
    audiences: wanted,
    origin: { type: 'remote', source: `${openIdPrefix}${issuer}` },
    onlyForCa: true,
  })
  return rules
}

/** Parses `TOKEN_AUDIENCES`. Throws when it names no audience, because tokens for any service would then be accepted. */
export function tokenAudiences(list: string): string[] {
  const audiences = list
    .split(',')
    .map((audience) => audience.trim())
    .filter((audience) => audience !== '')
  if (audiences.length === 0) throw new Error('environment variable TOKEN_AUDIENCES: names no audience')
  if (audiences.length > most.audiences) throw new Error(`environment variable TOKEN_AUDIENCES: more than ${most.audiences} audiences`)
  return audiences
}

function readJwtRules(given: string, audiences: readonly string[]): TokenRule[] {
  if (given.trim() === '') return []
  const fail = (reason: string): never => {
    throw new Error(`environment variable JWT_RULE: ${reason}`)
  }
  let parsed: unknown
  try {
    parsed = JSON.parse(given)
  } catch {
    return fail('not JSON')
  }
  const list = Array.isArray(parsed) ? parsed : [parsed]
  if (list.length > most.rules) fail(`more than ${most.rules} rules`)
  return list.map((rule: unknown, index) => {
    const at = Array.isArray(parsed) ? `rule ${index}` : 'the rule'
    const read = readRule(rule, audiences)
    return typeof read === 'string' ? fail(`${at}: ${read}`) : read
  })
}

const fields = new Set(['issuer', 'jwks_uri', 'jwksUri', 'jwks', 'audiences'])

function readRule(rule: unknown, fallback: readonly string[]): TokenRule | string {
  if (!isMapping(rule)) return 'not an object'
  const unknown = Object.keys(rule).find((field) => !fields.has(field))
  if (unknown !== undefined) return `field ${JSON.stringify(unknown.slice(0, 100))} is none of ${[...fields].join(', ')}`
  const { issuer, jwks_uri: snake, jwksUri: camel, jwks, audiences } = rule
  if (typeof issuer !== 'string' || issuer === '' || issuer.length > most.text) return `field issuer: expected text of 1 to ${most.text} characters`
  if (issuer === localIssuer) return `field issuer: ${JSON.stringify(localIssuer)} is the issuer of "pilot-discovery token"`
  const list = audiences ?? fallback
  if (!Array.isArray(list) || !list.every((one) => typeof one === 'string' && one !== '' && one.length <= most.text))
    return 'field audiences: expected a list of texts'
  if (list.length > most.audiences) return `field audiences: more than ${most.audiences}`
  const uri = snake ?? camel
  if (uri !== undefined && jwks !== undefined) return 'fields jwks_uri and jwks: one of them says where the keys are'
  const origin = jwks === undefined ? originOf(uri ?? `${openIdPrefix}${issuer}`) : inlineOrigin(jwks)
  if (typeof origin === 'string') return origin
  return { authenticator: 'jwt-rule', issuer, audiences: list.length > 0 ? (list as string[]) : fallback, origin, onlyForCa: false }
}

function inlineOrigin(jwks: unknown): KeyOrigin | string {
  const keys = typeof jwks === 'string' ? jwks : JSON.stringify(jwks)
  const fault = keySetFault(keys)
  return fault === undefined ? { type: 'inline', keys } : `field jwks: ${fault}`
}

function originOf(uri: unknown): KeyOrigin | string {
  if (typeof uri !== 'string') return 'field jwks_uri: expected text'
  if (uri.startsWith('file:')) return fileOrigin(uri)
  const fault = keyUrlFault(uri.startsWith(openIdPrefix) ? uri.slice(openIdPrefix.length) : uri)
  if (fault === undefined) return { type: 'remote', source: uri }
  return uri.startsWith(openIdPrefix) ? `field issuer: ${fault}; without jwks_uri or jwks it is asked where its keys are` : `field jwks_uri: ${fault}`
}

/** Parses `file:///path`, or `file:path` relative to the working directory. */
function fileOrigin(uri: string): KeyOrigin | string {
  const path = uri.startsWith('file:///') ? uri.slice('file://'.length) : uri.startsWith('file://') ? '' : uri.slice('file:'.length)
  if (path === '' || path.includes('\0')) return 'field jwks_uri: expected file:///path or file:path'
  try {
    return { type: 'file', path: decodeURIComponent(path), isPrivate: false }
  } catch {
    return 'field jwks_uri: its escapes cannot be read'
  }
}

/** Loopback hosts. */
const loopback = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

/**
 * Returns why keys may not be fetched from a URL, or undefined when they may. The server of the keys controls all identities, so the scheme
 * must be `https:`; `http:` is accepted for loopback hosts only, which must also be allowed (`PILOT_JWKS_ALLOWED_ADDRESSES`).
 */
export function keyUrlFault(given: string): string | undefined {
  const url = URL.parse(given)
  if (!url || given.length > most.text) return `${JSON.stringify(given.slice(0, 100))} is not a URL`
  if (`${url.username}${url.password}` !== '') return 'a URL with a user or password'
  if (url.protocol === 'https:' || (url.protocol === 'http:' && loopback.test(url.hostname))) return undefined
  return `${JSON.stringify(given.slice(0, 100))} is neither https: nor of this host`
}
