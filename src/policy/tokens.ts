/** Validates the tokens of a request as Envoy's `jwt_authn` filter does, without a proxy (docs/resources.md, A3; RFC 7515, RFC 7519). */
import type { JwtRule } from '../config/kinds/request-authentication.ts'
import { isStandIn } from '../config/stand-in.ts'
import { jwtRules, type KeySets, keySource } from '../snapshot/key-sources.ts'
import type { RequestAuthentication } from '../snapshot/policies.ts'
import { described, readToken } from './signed-token.ts'
import { TokenKeys } from './token-keys.ts'

/** The claims of the accepted token, undefined without a token, or the reason why the request is refused. */
export type TokenVerdict =
  | { readonly claims: Readonly<Record<string, unknown>> | undefined }
  | { readonly refused: string; readonly status: 401 | 403 }

interface Carrier {
  readonly path: string
  /** Values by lower-case name. */
  readonly headers: Readonly<Record<string, readonly string[]>>
}

/** The accepted clock skew in seconds. */
const skew = 60

/** Validates the tokens of a request at a time `now` (Unix seconds). */
export async function checkTokens(
  policies: readonly RequestAuthentication[],
  keySets: KeySets,
  carrier: Carrier,
  now: number,
): Promise<TokenVerdict> {
  const rules = jwtRules(policies)
  const invalid = policies.some(isStandIn)
  if (rules.length === 0 && !invalid) return { claims: undefined }
  if (invalid) {
    const anywhere = [...(rules.length > 0 ? rules : [{ issuer: '' }])].some((rule) => tokensOf(rule, carrier).length > 0)
    return anywhere ? { refused: 'a RequestAuthentication is invalid: no token is accepted until it is mended', status: 401 } : { claims: undefined }
  }
  const refusals: Refusal[] = []
  for (const rule of rules) {
    const tokens = tokensOf(rule, carrier)
    const checked = await Promise.all(tokens.map((token) => checkToken(token, rule, keySets, now)))
    // All tokens that a rule finds must be valid, since a server behind the proxy might use any of them.
    const refused = checked.find((one) => 'refused' in one)
    if (refused) refusals.push(refused)
    else if (checked[0]) return checked[0] as Accepted
  }
  if (refusals.length === 0) return { claims: undefined }
  // Tokens of several issuers are accepted if each is valid by the rule of its issuer; the claims of the first one are used.
  let first: Accepted | undefined
  for (const token of new Set(rules.flatMap((rule) => tokensOf(rule, carrier)))) {
    const found = rules.filter((rule) => tokensOf(rule, carrier).includes(token))
    const accepted = (await Promise.all(found.map((rule) => checkToken(token, rule, keySets, now)))).find((one) => 'claims' in one)
    if (!accepted) return { refused: [...new Set(refusals.map(({ refused }) => refused))].join('; '), status: statusOf(refusals) }
    first ??= accepted as Accepted
  }
  return first ?? { claims: undefined }
}

type Refusal = { readonly refused: string; readonly status: 401 | 403 | 'unknown issuer' }
type Accepted = { readonly claims: Readonly<Record<string, unknown>> }

/** Returns the status with which Envoy refuses: by the rule whose issuer matches. */
function statusOf(refusals: readonly Refusal[]): 401 | 403 {
  const last = refusals.findLast(({ status }) => status !== 'unknown issuer')
  return last?.status === 403 ? 403 : 401
}

/**
 * Returns the tokens that a rule finds: in its headers, parameters and cookies, or by default in `Authorization: Bearer` and
 * `access_token`.
 */
function tokensOf(rule: Pick<JwtRule, 'fromHeaders' | 'fromParams' | 'fromCookies'>, { path, headers }: Carrier): string[] {
  const byDefault = !rule.fromHeaders?.length && !rule.fromParams?.length && !rule.fromCookies?.length
  const places = byDefault ? [{ name: 'authorization', prefix: 'Bearer ' }] : (rule.fromHeaders ?? [])
  const query = path.includes('?') ? path.slice(path.indexOf('?') + 1).replace(/#.*$/, '') : ''
  const parameters = new URLSearchParams(query)
  const inHeaders = places.flatMap(({ name, prefix }) => {
    const value = headers[name.toLowerCase()]?.join(',')
    if (value === undefined || !value.includes(prefix ?? '')) return []
    return [value.slice(value.indexOf(prefix ?? '') + (prefix ?? '').length).trim()]
  })
  const inParameters = (byDefault ? ['access_token'] : (rule.fromParams ?? [])).flatMap((name) => parameters.get(name) ?? [])
  const cookies = cookiesOf(headers.cookie ?? [])
  return [...inHeaders, ...inParameters, ...(rule.fromCookies ?? []).flatMap((name) => cookies.get(name) ?? [])]
}

/** Parses cookies. Returns the first value of each name (RFC 6265, section 4.2), without quotes. */
function cookiesOf(lines: readonly string[]): ReadonlyMap<string, string> {
  const pairs = lines
    .flatMap((line) => line.split(';'))
    .flatMap((pair) => {
      const [, name, value] = /^\s*([^=]*)=(.*?)\s*$/s.exec(pair) ?? []
      return name === undefined || value === undefined ? [] : [[name, value.replace(/^"(.*)"$/s, '$1')] as const]
    })
  return new Map(pairs.toReversed())
}

async function checkToken(token: string, rule: JwtRule, keySets: KeySets, now: number): Promise<Refusal | Accepted> {
  const refuse = (reason: string, status: Refusal['status'] = 401): Refusal => ({ refused: `${rule.issuer}: ${reason}`, status })
  const read = readToken(token)
  if (typeof read === 'string') return refuse(read)
  const { claims } = read
  if (claims.iss !== rule.issuer) return refuse(`the token is of issuer ${described(claims.iss)}`, 'unknown issuer')
  const { exp, nbf } = claims
  if (typeof nbf === 'number' && now + skew < nbf) return refuse('the token is not valid yet')
  if (typeof exp === 'number' && exp > 0 && now > exp + skew) return refuse('the token has expired')
  // The only refusal for which Envoy returns 403.
  if (rule.audiences?.length && !audienceMatches(rule.audiences, claims.aud)) return refuse('the token is for another audience', 403)
  const source = keySource(rule)
  const keys = source === undefined ? rule.jwks : keySets.get(source)
  if (keys === undefined) return refuse(`the keys of ${source} could not be fetched`)
  return (await new TokenKeys(keys, 'proxy').haveSigned(read)) ? { claims } : refuse('no key of the issuer fits its signature')
}

/** Whether any audience matches. Scheme and trailing slash are ignored, as in Envoy. */
function audienceMatches(wanted: readonly string[], given: unknown): boolean {
  const plain = (text: string) => text.replace(/^https?:\/\//, '').replace(/\/$/, '')
  const audiences = (Array.isArray(given) ? given : [given]).filter((one): one is string => typeof one === 'string').map(plain)
  return wanted.some((one) => audiences.includes(plain(one)))
}
