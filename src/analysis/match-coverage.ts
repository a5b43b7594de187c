/** Which requests the matches of HTTP routes take, beside each other. */
import type { HttpMatch } from '../config/kinds/virtual-service.ts'

/** The fields of a match that do not restrict it. */
const unrestricting = new Set(['name', 'statPrefix', 'ignoreUriCase'])

/** What a match asks of a request: the fields that restrict it, as JSON. */
export interface Restrictions {
  readonly fields: ReadonlyMap<string, string>
  readonly uri: HttpMatch['uri']
  readonly ignoresCase: boolean | undefined
}

/** Returns what a match asks of a request. */
export const restrictionsOf = (match: HttpMatch): Restrictions => ({
  fields: new Map(
    Object.entries(match).flatMap(([field, value]) => (value === undefined || unrestricting.has(field) ? [] : [[field, JSON.stringify(value)]])),
  ),
  uri: match.uri,
  ignoresCase: match.ignoreUriCase,
})

/** Whether every request has what a match asks for. */
export const takesAll = ({ fields, uri }: Restrictions): boolean => fields.size === 0 || (fields.size === 1 && uri?.prefix === '/')

/** Whether whatever the second one matches is matched by the first one. Told only where it is certain: equal fields, and prefixes of prefixes. */
export function covers(first: Restrictions, second: Restrictions): boolean {
  for (const [field, written] of first.fields) {
    if (second.fields.get(field) === written) continue
    if (field !== 'uri' || first.ignoresCase !== second.ignoresCase) return false
    const begins = second.uri?.prefix ?? second.uri?.exact
    if (!first.uri?.prefix || !begins?.startsWith(first.uri.prefix)) return false
  }
  return true
}
