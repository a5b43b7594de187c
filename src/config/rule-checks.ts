/** The checks that treat values in rules of AuthorizationPolicies more strictly, as rows of the table in `policy-checks.ts`. */
import type { ConfigObject } from '../../protocols/data.ts'
import { hostFault } from './host-values.ts'
import { pathFault } from './path-patterns.ts'
import { type Attribute, attributeOf } from './policy-attributes.ts'

/** A value in a rule: its path, the attribute it is compared with, and whether a match denies requests. */
interface RuleValue {
  readonly at: string
  readonly attribute: Attribute
  readonly value: string
  readonly denies: boolean
}

type Fields = Readonly<Record<string, unknown>>
interface GivenSpec {
  readonly action?: string
  readonly rules?: readonly {
    readonly from?: readonly { readonly source?: Fields }[]
    readonly to?: readonly { readonly operation?: Fields }[]
    readonly when?: readonly { readonly key?: string; readonly values?: unknown; readonly notValues?: unknown }[]
  }[]
}

const listed = (value: unknown): string[] => (Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : [])

/** Returns all values in the rules of a policy. */
function ruleValues({ spec }: ConfigObject): RuleValue[] {
  const { action = 'ALLOW', rules = [] } = spec as GivenSpec
  const valuesOf = (at: string, attribute: Attribute | undefined, values: unknown, not: boolean): RuleValue[] =>
    attribute ? listed(values).map((value, index) => ({ at: `${at}[${index}]`, attribute, value, denies: not === (action === 'ALLOW') })) : []
  const ofFields = (at: string, fields: Fields = {}) =>
    Object.entries(fields).flatMap(([field, values]) => valuesOf(`${at}.${field}`, attributeOf(field)?.attribute, values, field.startsWith('not')))
  return rules.flatMap(({ from = [], to = [], when = [] }, rule) => [
    ...from.flatMap(({ source }, index) => ofFields(`spec.rules[${rule}].from[${index}].source`, source)),
    ...to.flatMap(({ operation }, index) => ofFields(`spec.rules[${rule}].to[${index}].operation`, operation)),
    ...when.flatMap(({ key = '', values, notValues }, index) => [
      ...valuesOf(`spec.rules[${rule}].when[${index}].values`, attributeOf(key)?.attribute, values, false),
      ...valuesOf(`spec.rules[${rule}].when[${index}].notValues`, attributeOf(key)?.attribute, notValues, true),
    ]),
  ])
}

const check = (stricter: string, isConcerned: (value: RuleValue) => boolean) => ({
  stricter,
  kinds: ['AuthorizationPolicy' as const],
  concerns: (object: ConfigObject) =>
    ruleValues(object)
      .filter(isConcerned)
      .map(({ at }) => at),
})

/** The rows of the table. */
export const ruleChecks = {
  'claim-types': check(
    'where a match denies requests, claims and metadata that are booleans or numbers match their text, also in lists',
    ({ attribute, denies }) => denies && (attribute.type === 'claim' || attribute.type === 'metadata'),
  ),
  'forwarded-addresses': check(
    'at a sidecar without trusted proxies (numTrustedProxies), client addresses from X-Forwarded-For allow no request',
    ({ attribute }) => attribute.type === 'ip' && attribute.of === 'client',
  ),
  'host-forms': check(
    'where a match denies requests, a host matches in every spelling that a server may accept for it, and requests without a readable host match; elsewhere only plain hosts match',
    ({ attribute, value }) => attribute.type === 'host' && value !== '*',
  ),
  'never-matching-hosts': check(
    'a policy with a host that can never match is invalid',
    ({ attribute, value }) => attribute.type === 'host' && hostFault(value) !== undefined,
  ),
  'never-matching-paths': check(
    'a policy with a path that can never match is invalid',
    ({ attribute, value }) => attribute.type === 'path' && pathFault(value, undefined) !== undefined,
  ),
  'path-forms': check(
    'characters of a path match plain and escaped; paths in which servers may see other segments than Envoy match where that denies requests',
    ({ attribute, value }) => (attribute.type === 'path' || attribute.type === 'target') && value !== '*',
  ),
} as const
