/** Translates host conditions of rules to RBAC permissions on `:authority` (docs/resources.md, M5). */
import { authorities, type HostPattern, hostPatternOf, isDefaultPort } from '../../policy/authorities.ts'
import { allRules, anyRule, type Comparison, headerRule, notRule, type Permission, regexMatch, textMatch } from './matchers.ts'

/** Parameters of the comparison of hosts. */
interface HostComparison {
  /** Whether a match denies the request. Then every form matches that a server may read as the host, otherwise only the plain ones. */
  readonly denies: boolean
  /** Whether several forms of a host are equal (policy check `host-forms`). */
  readonly forms: boolean
}

const authority = (comparison: Comparison, text: string): Permission => headerRule(':authority', textMatch(comparison, text, true))
const authorityOf = (form: keyof typeof authorities): Permission => headerRule(':authority', regexMatch(authorities[form]))

/** Returns a permission that matches if any of the values matches. */
export function hostPermission(values: readonly string[], { denies, forms }: HostComparison): Permission {
  const patterns = values.map(hostPatternOf)
  const wide = denies && forms
  if (patterns.some(({ kind }) => kind === 'any')) return wide ? allRules([]) : headerRule(':authority', regexMatch('.+'))
  const found = patterns.flatMap((pattern) => matchersOf(pattern, wide))
  if (wide) return anyRule([...found, notRule(authorityOf('readable'))])
  if (forms) return allRules([anyRule(found), authorityOf('plain')])
  const asText = patterns.filter(({ kind }) => kind === 'prefix').flatMap((pattern) => matchersOf(pattern, false))
  const asHost = patterns.filter(({ kind }) => kind !== 'prefix').flatMap((pattern) => matchersOf(pattern, false))
  return anyRule([...asText, ...(asHost.length > 0 ? [allRules([anyRule(asHost), authorityOf('anyHost')])] : [])])
}

/** Returns comparisons for a host with any port, and with and without a trailing dot. */
function matchersOf({ kind, host, port }: HostPattern, wide: boolean): Permission[] {
  if (kind === 'prefix') {
    const colon = host.indexOf(':')
    return [authority('prefix', host), ...(wide && colon > 0 ? [authority('prefix', `${host.slice(0, colon)}.${host.slice(colon)}`)] : [])]
  }
  const [whole, before] = kind === 'exact' ? (['exact', 'prefix'] as const) : (['suffix', 'contains'] as const)
  const dotted = [host, `${host}.`]
  const withoutPort = host === '' ? [] : dotted.map((each) => authority(whole, each))
  // After an open bracket, a colon is part of an IPv6 address.
  const withPort = host.includes('[') && !host.includes(']') ? [] : dotted.map((each) => authority(before, `${each}:`))
  if (port === undefined) return [...withoutPort, ...withPort]
  if (!wide) return [authority(whole, `${host}:${port}`)]
  return [
    ...dotted.map((each) => authority(whole, `${each}:${port}`)),
    ...(withPort.length > 0 ? [allRules([anyRule(withPort), notRule(authorityOf('plainPort'))])] : []),
    ...(isDefaultPort(port) ? withoutPort : []),
  ]
}
