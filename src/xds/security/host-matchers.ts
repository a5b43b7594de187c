/** Hosts of rules as permissions on `:authority` (docs/resources.md, M5). */
import { authorities, type HostPattern, hostPatternOf, isDefaultPort } from '../../policy/authorities.ts'
import { allRules, anyRule, type Comparison, headerRule, notRule, type Permission, regexMatch, textMatch } from './matchers.ts'

/** How hosts are compared. */
interface HostComparison {
  /** Whether a match keeps requests out: then it is every form that a server may take for the host, else the plain ones. */
  readonly guards: boolean
  /** Whether there are forms at all (policy check `host-forms`). */
  readonly forms: boolean
}

const authority = (comparison: Comparison, text: string): Permission => headerRule(':authority', textMatch(comparison, text, true))
const authorityOf = (form: keyof typeof authorities): Permission => headerRule(':authority', regexMatch(authorities[form]))

/** What some of the values match. */
export function hostPermission(values: readonly string[], { guards, forms }: HostComparison): Permission {
  const patterns = values.map(hostPatternOf)
  const wide = guards && forms
  if (patterns.some(({ kind }) => kind === 'any')) return wide ? allRules([]) : headerRule(':authority', regexMatch('.+'))
  const found = patterns.flatMap((pattern) => matchersOf(pattern, wide))
  if (wide) return anyRule([...found, notRule(authorityOf('readable'))])
  if (forms) return allRules([anyRule(found), authorityOf('plain')])
  const asText = patterns.filter(({ kind }) => kind === 'prefix').flatMap((pattern) => matchersOf(pattern, false))
  const asHost = patterns.filter(({ kind }) => kind !== 'prefix').flatMap((pattern) => matchersOf(pattern, false))
  return anyRule([...asText, ...(asHost.length > 0 ? [allRules([anyRule(asHost), authorityOf('anyHost')])] : [])])
}

/** A host stands for any port, and for its form with the final dot of a full name. */
function matchersOf({ kind, host, port }: HostPattern, wide: boolean): Permission[] {
  if (kind === 'prefix') {
    const colon = host.indexOf(':')
    return [authority('prefix', host), ...(wide && colon > 0 ? [authority('prefix', `${host.slice(0, colon)}.${host.slice(colon)}`)] : [])]
  }
  const [whole, before] = kind === 'exact' ? (['exact', 'prefix'] as const) : (['suffix', 'contains'] as const)
  const dotted = [host, `${host}.`]
  const withoutPort = host === '' ? [] : dotted.map((each) => authority(whole, each))
  // After a bracket that is open, a colon is part of an address.
  const withPort = host.includes('[') && !host.includes(']') ? [] : dotted.map((each) => authority(before, `${each}:`))
  if (port === undefined) return [...withoutPort, ...withPort]
  if (!wide) return [authority(whole, `${host}:${port}`)]
  return [
    ...dotted.map((each) => authority(whole, `${each}:${port}`)),
    ...(withPort.length > 0 ? [allRules([anyRule(withPort), notRule(authorityOf('plainPort'))])] : []),
    ...(isDefaultPort(port) ? withoutPort : []),
  ]
}
