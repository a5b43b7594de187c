/** Finds texts that no request has: methods in small letters, paths without a slash or with a query, stars that stand for themselves (docs/analysis.md, Y15). */

import type { HttpRoute, StringMatch } from '../config/kinds/virtual-service.ts'
import { isPathTemplate } from '../config/path-templates.ts'
import type { Tell } from './finding.ts'

/** How a text is compared with that of a request: with the whole of it, its beginning or its end. */
type Comparison = 'whole' | 'beginning' | 'end'

const methods = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT']
const schemes = ['http', 'https']

const fits = (name: string, text: string, comparison: Comparison): boolean =>
  comparison === 'whole' ? name === text : comparison === 'beginning' ? name.startsWith(text) : name.endsWith(text)

/** Returns why no request has a method: it is a common one in other letters. Undefined for others, since there may be any. */
export function methodFault(written: string, comparison: Comparison): string | undefined {
  const right = written.toUpperCase()
  if (right === written || !methods.some((method) => fits(method, right, comparison))) return undefined
  return `${JSON.stringify(written)} is the method of no request: methods are in capitals, so write ${JSON.stringify(right)}`
}

/** Returns why no request has a method that a value of an AuthorizationPolicy asks for, which may begin or end with a star. */
export function methodValueFault(value: string): string | undefined {
  if (value.endsWith('*')) return methodFault(value.slice(0, -1), 'beginning')
  return value.startsWith('*') ? methodFault(value.slice(1), 'end') : methodFault(value, 'whole')
}

/** Returns what is wrong with a value of an AuthorizationPolicy that has another star than the one at its beginning or end: it stands for itself. */
export function innerStarFault(value: string, isPath: boolean): string | undefined {
  const compared = value.endsWith('*') ? value.slice(0, -1) : value.startsWith('*') ? value.slice(1) : value
  if (!compared.includes('*') || (isPath && isPathTemplate(value))) return undefined
  const right = isPath ? 'write {*} for one segment, or {**} at the end for any number' : 'name each value, or its beginning or end only'
  return `only one star stands for anything, at the beginning or end: another one in ${JSON.stringify(value.slice(0, 100))} is compared as it is, and requests have none, so ${right}`
}

/** Returns what is wrong with a text of a match that has a star: it stands for itself. */
function starFault(written: string, comparison: Comparison): string | undefined {
  if (!written.includes('*')) return undefined
  const end = written.replace(/[*]+$/, '')
  const right = end.includes('*')
    ? 'write regex'
    : comparison === 'beginning'
      ? `write ${JSON.stringify(end.slice(0, 100))}`
      : 'write prefix without it'
  return `a star in ${JSON.stringify(written.slice(0, 100))} is compared as it is, and requests have none: ${right}`
}

function schemeFault(written: string, comparison: Comparison): string | undefined {
  const right = written.toLowerCase()
  if (right === written || !schemes.some((scheme) => fits(scheme, right, comparison))) return undefined
  return `${JSON.stringify(written)} is the scheme of no request: schemes are in small letters, so write ${JSON.stringify(right)}`
}

function targetFault(written: string, comparison: Comparison): string | undefined {
  // An empty beginning is that of every path.
  if (written.startsWith('/') || (written === '' && comparison === 'beginning')) return undefined
  const right = /^[*]?$/.test(written) ? 'the prefix "/"' : JSON.stringify(`/${written.slice(0, 100)}`)
  return `${JSON.stringify(written.slice(0, 100))} is the path of no request: paths begin with /, so write ${right}`
}

function pathFault(written: string, comparison: Comparison): string | undefined {
  const end = written.search(/[?#]/)
  if (end < 0 || !written.startsWith('/')) return targetFault(written, comparison) ?? starFault(written, comparison)
  const right = `write ${JSON.stringify(written.slice(0, Math.min(end, 100)))}${written[end] === '?' ? ' and queryParams' : ''}`
  return `${JSON.stringify(written.slice(0, 100))} is the path of no request: it is compared without its query and fragment, so ${right}`
}

type ValueFault = (written: string, comparison: Comparison) => string | undefined

const headerFaults: Readonly<Record<string, ValueFault>> = { ':method': methodFault, ':scheme': schemeFault, ':path': targetFault }

/** Tells what routes of a VirtualService ask for, or permit to other origins, and no request has. */
export function checkRequestValues(routes: readonly HttpRoute[], tell: Tell): void {
  const check = (asked: StringMatch | undefined, at: string, fault: ValueFault | undefined) => {
    for (const field of ['exact', 'prefix'] as const) {
      const reason = asked?.[field] === undefined ? undefined : fault?.(asked[field], field === 'exact' ? 'whole' : 'beginning')
      if (reason !== undefined) tell('MESH0011', `${at}.${field}`, reason)
    }
  }
  for (const [index, { match = [], corsPolicy }] of routes.entries()) {
    for (const [number, { uri, scheme, method, authority, headers, withoutHeaders }] of match.entries()) {
      const at = `spec.http[${index}].match[${number}]`
      check(uri, `${at}.uri`, pathFault)
      check(scheme, `${at}.scheme`, schemeFault)
      check(method, `${at}.method`, methodFault)
      check(authority, `${at}.authority`, starFault)
      for (const [field, asked] of Object.entries({ headers, withoutHeaders }))
        for (const [name, fault] of Object.entries(headerFaults)) check(asked?.[name], `${at}.${field}[${name}]`, fault)
    }
    for (const [number, method] of (corsPolicy?.allowMethods ?? []).entries()) {
      const reason = methodFault(method, 'whole')
      if (reason !== undefined) tell('MESH0011', `spec.http[${index}].corsPolicy.allowMethods[${number}]`, reason)
    }
  }
}
