/**
 * Building blocks of `envoy.config.rbac.v3`. Conditions on users' values are text comparisons and not regular expressions: Envoy refuses a
 * listener with an expression of more than a hundred program steps, and an expression does not match text that is not UTF-8.
 */
import type { MessageInitShape } from '@bufbuild/protobuf'
import type { PermissionSchema, PrincipalSchema } from '../../../protocols/gen/envoy/config/rbac/v3/rbac_pb.js'
import type { StringMatcherSchema } from '../../../protocols/gen/envoy/type/matcher/v3/string_pb.js'
import type { Pattern } from '../../policy/patterns.ts'

export type Permission = MessageInitShape<typeof PermissionSchema>
export type Principal = MessageInitShape<typeof PrincipalSchema>
export type StringMatch = MessageInitShape<typeof StringMatcherSchema>

/** How a text is compared with another. */
export type Comparison = 'exact' | 'prefix' | 'suffix' | 'contains'

/** Matches if all principals match; always if there are none. */
export const allIds = (ids: readonly Principal[]): Principal =>
  ids.length === 1 && ids[0] ? ids[0] : { identifier: ids.length === 0 ? { case: 'any', value: true } : { case: 'andIds', value: { ids: [...ids] } } }
/** Matches if any of the principals matches. */
export const anyId = (ids: readonly Principal[]): Principal =>
  ids.length === 1 && ids[0] ? ids[0] : { identifier: { case: 'orIds', value: { ids: [...ids] } } }
/** Matches if the principal does not match. */
export const notId = (id: Principal): Principal => ({ identifier: { case: 'notId', value: id as never } })
/** Matches if all permissions match; always if there are none. */
export const allRules = (rules: readonly Permission[]): Permission =>
  rules.length === 1 && rules[0]
    ? rules[0]
    : { rule: rules.length === 0 ? { case: 'any', value: true } : { case: 'andRules', value: { rules: [...rules] } } }
/** Matches if any of the permissions matches. */
export const anyRule = (rules: readonly Permission[]): Permission =>
  rules.length === 1 && rules[0] ? rules[0] : { rule: { case: 'orRules', value: { rules: [...rules] } } }
/** Matches if the permission does not match. */
export const notRule = (rule: Permission): Permission => ({ rule: { case: 'notRule', value: rule as never } })

/** Matches a text that is equal to, starts with, ends with or contains a value. */
export const textMatch = (comparison: Comparison, value: string, ignoreCase = false): StringMatch => ({
  matchPattern: { case: comparison, value },
  ...(ignoreCase ? { ignoreCase } : {}),
})

/** Matches a text if the regular expression matches all of it. The expression must not contain a user's value. */
export const regexMatch = (regex: string): StringMatch => ({ matchPattern: { case: 'safeRegex', value: { regex: `(?s)${regex}` } } })

/** Matches a text by a pattern. `*` matches any non-empty text. */
export function stringMatch(pattern: Pattern, ignoreCase = false): StringMatch {
  if (pattern.kind === 'any') return regexMatch('.+')
  if (pattern.kind !== 'exact' && pattern.text === '') return regexMatch('.*')
  return textMatch(pattern.kind, pattern.text, ignoreCase)
}

/** Matches a request by the value of a header. */
export const headerRule = (name: string, value: StringMatch): Permission => ({
  rule: { case: 'header', value: { name, headerMatchSpecifier: { case: 'stringMatch', value } } },
})
