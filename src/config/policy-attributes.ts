/**
 * The request attributes that an AuthorizationPolicy can match (docs/resources.md, A6), in any of its three notations: fields of
 * `from.source`, fields of `to.operation`, keys of `when`.
 */

/** A request attribute that a condition matches. */
export type Attribute =
  /** The peer's SPIFFE ID without its scheme, from its certificate. */
  | { readonly type: 'principal' }
  /** The namespace in the peer's SPIFFE ID. */
  | { readonly type: 'namespace' }
  /** The namespace and service account in the peer's SPIFFE ID, `<namespace>/<name>`. */
  | { readonly type: 'serviceAccount' }
  | { readonly type: 'trustDomain' }
  /** `<iss>/<sub>` of the token. */
  | { readonly type: 'requestPrincipal' }
  /** A claim of the token by its path; `aud` and `azp` have keys of their own. */
  | { readonly type: 'claim'; readonly path: readonly string[] }
  | { readonly type: 'ip'; readonly of: 'connection' | 'client' | 'destination' }
  | { readonly type: 'port' }
  | { readonly type: 'host' }
  | { readonly type: 'method' }
  | { readonly type: 'path' }
  /** The path with its query. */
  | { readonly type: 'target' }
  | { readonly type: 'header'; readonly name: string }
  | { readonly type: 'sni' }
  /** Dynamic metadata set by an Envoy filter. */
  | { readonly type: 'metadata'; readonly filter: string; readonly path: readonly string[] }

/** A condition: at least one of the values matches, or with `not` none of them does. */
export interface Condition {
  readonly attribute: Attribute
  readonly values: readonly string[]
  readonly not: boolean
  /** The notation in the policy: `source.principals`, `request.headers[x]`. */
  readonly written: string
}

/**
 * A rule with its notations resolved: any entry of `from`, any entry of `to`, and all of `when` have to match. An empty list is no
 * condition.
 */
export interface Rule {
  readonly from: readonly (readonly Condition[])[]
  readonly to: readonly (readonly Condition[])[]
  readonly when: readonly Condition[]
}

type Fields = Readonly<Record<string, readonly string[] | undefined>>

/** A rule in the notation of the policy. */
export interface WrittenRule {
  readonly from?: readonly { readonly source: Fields }[]
  readonly to?: readonly { readonly operation: Fields }[]
  readonly when?: readonly { readonly key: string; readonly values?: readonly string[]; readonly notValues?: readonly string[] }[]
}

const fields: Readonly<Record<string, Attribute>> = {
  principals: { type: 'principal' },
  namespaces: { type: 'namespace' },
  serviceAccounts: { type: 'serviceAccount' },
  trustDomains: { type: 'trustDomain' },
  requestPrincipals: { type: 'requestPrincipal' },
  ipBlocks: { type: 'ip', of: 'connection' },
  remoteIpBlocks: { type: 'ip', of: 'client' },
  hosts: { type: 'host' },
  ports: { type: 'port' },
  methods: { type: 'method' },
  paths: { type: 'path' },
}

const keys: Readonly<Record<string, Attribute>> = {
  'source.ip': { type: 'ip', of: 'connection' },
  'remote.ip': { type: 'ip', of: 'client' },
  'source.namespace': { type: 'namespace' },
  'source.principal': { type: 'principal' },
  'source.serviceAccount': { type: 'serviceAccount' },
  'source.trustDomain': { type: 'trustDomain' },
  'request.auth.principal': { type: 'requestPrincipal' },
  'request.auth.audiences': { type: 'claim', path: ['aud'] },
  'request.auth.presenter': { type: 'claim', path: ['azp'] },
  'destination.ip': { type: 'ip', of: 'destination' },
  'destination.port': { type: 'port' },
  'connection.sni': { type: 'sni' },
}

const brackets = /\[([^[\]]+)\]/g

/** Returns the attribute of a `when` key. Undefined for an unknown key. */
export function conditionKey(key: string): Attribute | undefined {
  if (Object.hasOwn(keys, key)) return keys[key]
  const inBrackets = (prefix: string) => {
    const rest = key.slice(prefix.length)
    const names = [...rest.matchAll(brackets)].map(([, name]) => name as string)
    return key.startsWith(prefix) && names.length > 0 && names.map((name) => `[${name}]`).join('') === rest ? names : undefined
  }
  const header = inBrackets('request.headers')
  if (header?.length === 1 && /^[:!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(header[0] as string)) {
    const name = (header[0] as string).toLowerCase()
    // For Envoy both names are the host of the request, which unlike other headers can be written in several forms.
    if (name === 'host' || name === ':authority') return { type: 'host' }
    if (name === ':method') return { type: 'method' }
    return name === ':path' ? { type: 'target' } : { type: 'header', name }
  }
  const claim = inBrackets('request.auth.claims')
  if (claim) return { type: 'claim', path: claim }
  const filter = /^experimental\.(envoy\.filters\.[A-Za-z0-9_.]+)/.exec(key)?.[1]
  const path = filter && inBrackets(`experimental.${filter}`)
  return filter && path ? { type: 'metadata', filter, path } : undefined
}

/**
 * Returns the attribute of a field of a source or an operation (`notPaths`), or of a `when` key, and whether it is negated. Undefined for
 * unknown names.
 */
export function attributeOf(written: string): { readonly attribute: Attribute; readonly not: boolean } | undefined {
  const not = written.startsWith('not')
  const name = not ? written.charAt(3).toLowerCase() + written.slice(4) : written
  const attribute = Object.hasOwn(fields, name) ? fields[name] : conditionKey(written)
  return attribute && { attribute, not }
}

/** Resolves the notations of a rule. `namespace` is that of the policy; service accounts without a namespace are completed with it. */
export function resolveRule(rule: WrittenRule, namespace: string): Rule {
  const complete = (condition: Condition): Condition => {
    if (condition.attribute.type !== 'serviceAccount') return condition
    return { ...condition, values: condition.values.map((value) => (value.includes('/') ? value : `${namespace}/${value}`)) }
  }
  return {
    from: (rule.from ?? []).map(({ source }) => conditionsOf(source, 'source').map(complete)),
    to: (rule.to ?? []).map(({ operation }) => conditionsOf(operation, 'operation')),
    when: (rule.when ?? []).flatMap(({ key, values, notValues }) => {
      const attribute = conditionKey(key)
      if (!attribute) return []
      return [
        ...(values?.length ? [{ attribute, values, not: false, written: key }] : []),
        ...(notValues?.length ? [{ attribute, values: notValues, not: true, written: key }] : []),
      ].map(complete)
    }),
  }
}

function conditionsOf(given: Fields, where: string): Condition[] {
  return Object.entries(given).flatMap(([field, values]) => {
    const found = attributeOf(field)
    return found && values ? [{ ...found, values, written: `${where}.${field}` }] : []
  })
}

/** Whether TCP connections do not have this attribute. */
export function isHttpOnly({ type }: Attribute): boolean {
  return ['requestPrincipal', 'claim', 'host', 'method', 'path', 'target', 'header'].includes(type)
}

/**
 * Whether a claim's text is compared as a whole, which is so for registered claims (RFC 7519, section 4.1). The text of any other claim is
 * a list of words.
 */
export function isWholeText(claim: readonly string[]): boolean {
  return claim.length === 1 && ['iss', 'sub', 'aud', 'azp', 'jti'].includes(claim[0] as string)
}
