/** Finds texts that no request has: methods in small letters, paths without a slash or with a query (docs/analysis.md, Y15). */
import type { HttpRoute, StringMatch } from '../config/kinds/virtual-service.ts'
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
  if (end < 0 || !written.startsWith('/')) return targetFault(written, comparison)
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
    for (const [number, { uri, scheme, method, headers, withoutHeaders }] of match.entries()) {
      const at = `spec.http[${index}].match[${number}]`
      check(uri, `${at}.uri`, pathFault)
      check(scheme, `${at}.scheme`, schemeFault)
      check(method, `${at}.method`, methodFault)
      for (const [field, asked] of Object.entries({ headers, withoutHeaders }))
        for (const [name, fault] of Object.entries(headerFaults)) check(asked?.[name], `${at}.${field}[${name}]`, fault)
    }
    for (const [number, method] of (corsPolicy?.allowMethods ?? []).entries()) {
      const reason = methodFault(method, 'whole')
      if (reason !== undefined) tell('MESH0011', `spec.http[${index}].corsPolicy.allowMethods[${number}]`, reason)
    }
  }
}
