/**
 * Pieces of `envoy.config.rbac.v3` that rules are made of. What depends on a user's value compares text and is no regular expression: an Envoy
 * refuses a listener with one of more than a hundred steps, and one matches no text that is not UTF-8.
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

/** All of these principals; no condition where there are none. */
export const allIds = (ids: readonly Principal[]): Principal =>
  ids.length === 1 && ids[0] ? ids[0] : { identifier: ids.length === 0 ? { case: 'any', value: true } : { case: 'andIds', value: { ids: [...ids] } } }
/** Any of these principals. */
export const anyId = (ids: readonly Principal[]): Principal =>
  ids.length === 1 && ids[0] ? ids[0] : { identifier: { case: 'orIds', value: { ids: [...ids] } } }
/** Every principal but this one. */
export const notId = (id: Principal): Principal => ({ identifier: { case: 'notId', value: id as never } })
/** All of these permissions; no condition where there are none. */
export const allRules = (rules: readonly Permission[]): Permission =>
  rules.length === 1 && rules[0]
    ? rules[0]
    : { rule: rules.length === 0 ? { case: 'any', value: true } : { case: 'andRules', value: { rules: [...rules] } } }
/** Any of these permissions. */
export const anyRule = (rules: readonly Permission[]): Permission =>
  rules.length === 1 && rules[0] ? rules[0] : { rule: { case: 'orRules', value: { rules: [...rules] } } }
/** Every permission but this one. */
export const notRule = (rule: Permission): Permission => ({ rule: { case: 'notRule', value: rule as never } })

/** A text compared with the whole of a value, its start, its end or some part of it. */
export const textMatch = (comparison: Comparison, value: string, ignoreCase = false): StringMatch => ({
  matchPattern: { case: comparison, value },
  ...(ignoreCase ? { ignoreCase } : {}),
})

/** A regular expression that a whole value must match. It must not contain a value of a user's. */
export const regexMatch = (regex: string): StringMatch => ({ matchPattern: { case: 'safeRegex', value: { regex: `(?s)${regex}` } } })

/** A pattern; `*` is any text but the empty one. */
export function stringMatch(pattern: Pattern, ignoreCase = false): StringMatch {
  if (pattern.kind === 'any') return regexMatch('.+')
  if (pattern.kind !== 'exact' && pattern.text === '') return regexMatch('.*')
  return textMatch(pattern.kind, pattern.text, ignoreCase)
}

/** A header of a request by its value. */
export const headerRule = (name: string, value: StringMatch): Permission => ({
  rule: { case: 'header', value: { name, headerMatchSpecifier: { case: 'stringMatch', value } } },
})
