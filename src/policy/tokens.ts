/** What a proxy's `jwt_authn` filter makes of a request's tokens, without the proxy (docs/resources.md, A3; RFC 7515, RFC 7519). */
import type { JwtRule } from '../config/kinds/request-authentication.ts'
import { isStandIn } from '../config/stand-in.ts'
import { jwtRules, type KeySets, keySource } from '../snapshot/key-sources.ts'
import type { RequestAuthentication } from '../snapshot/policies.ts'
import { described, readToken } from './signed-token.ts'
import { TokenKeys } from './token-keys.ts'

/** Claims of the token that was accepted, none when there was no token, or why the request is refused. */
export type TokenVerdict =
  | { readonly claims: Readonly<Record<string, unknown>> | undefined }
  | { readonly refused: string; readonly status: 401 | 403 }

interface Carrier {
  readonly path: string
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, readonly string[]>>
}

/** How far clocks may be apart, in seconds. */
const skew = 60

/** Checks the tokens of a request at a time (Unix seconds). */
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
    // All tokens where a rule looks must be good: a server behind might take the other one.
    const refused = checked.find((one) => 'refused' in one)
    if (refused) refusals.push(refused)
    else if (checked[0]) return checked[0] as Accepted
  }
  if (refusals.length === 0) return { claims: undefined }
  // Tokens of several issuers side by side are good if each is good by the rule of its own issuer; the first one found counts.
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

/** Envoy answers with what is wrong by the rule that knows the issuer. */
function statusOf(refusals: readonly Refusal[]): 401 | 403 {
  const last = refusals.findLast(({ status }) => status !== 'unknown issuer')
  return last?.status === 403 ? 403 : 401
}

/** The tokens that a rule finds: in its headers, parameters and cookies, or else as `Authorization: Bearer` and `access_token`. */
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

/** Cookies by name, the first of each (RFC 6265, section 4.2), without the quotes around a value. */
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
  // The one refusal that Envoy answers with 403.
  if (rule.audiences?.length && !audienceMatches(rule.audiences, claims.aud)) return refuse('the token is for another audience', 403)
  const source = keySource(rule)
  const keys = source === undefined ? rule.jwks : keySets.get(source)
  if (keys === undefined) return refuse(`the keys of ${source} could not be had`)
  return (await new TokenKeys(keys, 'proxy').haveSigned(read)) ? { claims } : refuse('no key of the issuer fits its signature')
}

/** Audiences are equal with or without scheme and final slash, as Envoy has it. */
function audienceMatches(wanted: readonly string[], given: unknown): boolean {
  const plain = (text: string) => text.replace(/^https?:\/\//, '').replace(/\/$/, '')
  const audiences = (Array.isArray(given) ? given : [given]).filter((one): one is string => typeof one === 'string').map(plain)
  return wanted.some((one) => audiences.includes(plain(one)))
}
