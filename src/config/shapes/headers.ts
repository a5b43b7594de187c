/** Header modifications by routes (`envoy.config.core.v3.HeaderValueOption`). */
import { headerFormatFault } from '../header-format.ts'
import { list, map, type Read, type Report, record, reject, text } from '../shape.ts'

const token = /^[0-9A-Za-z!#$%&'*+.^_|~`-]+$/

/** Returns why text is not a header name (RFC 9110, section 5.1). Undefined when it is one. */
export const headerNameFault = (name: string): string | undefined =>
  token.test(name) ? undefined : `${JSON.stringify(name.slice(0, 100))} is not the name of a header`

/**
 * Returns the path of the JWT claim that a header match refers to by the name `@request.auth.claims.<claim>`, with dots between nested
 * claims, or `@request.auth.claims[<claim>][<nested>]`. Undefined for the name of a header.
 */
export function claimPath(name: string): readonly string[] | undefined {
  const rest = /^@request\.auth\.claims(.+)$/is.exec(name)?.[1]
  if (rest === undefined) return undefined
  const path = rest.startsWith('.') ? rest.slice(1).split('.') : /^\[.+\]$/s.test(rest) ? rest.slice(1, -1).split('][') : []
  return path.length > 0 && path.every((part) => part !== '') ? path : undefined
}

/** Whether a header name is the host of the request, which proxies rewrite and cannot set as a header. */
export const isAuthority = (name: string): boolean => /^(host|:authority)$/i.test(name)

/** Whether proxies can neither set nor remove a header: pseudo headers (RFC 9113, section 8.3) and the host. */
export const isFixed = (name: string): boolean => name.startsWith(':') || isAuthority(name)

const value = text({ check: headerFormatFault, examples: ['', 'v1', '100%%', '%REQ(x-name)%', 'from %DOWNSTREAM_REMOTE_ADDRESS%'] })

function operations(side: 'request' | 'response') {
  return record({ set: map(value), add: map(value), remove: list(text()) }, ({ set = {}, add = {}, remove = [] }, path, report) => {
    for (const [field, entries] of [['set', set] as const, ['add', add] as const])
      for (const [name, given] of Object.entries(entries)) {
        const at = `${path}.${field}[${name.slice(0, 100)}]`
        if (side === 'request' && isAuthority(name)) checkAuthority(given, at, report)
        else checkName(name, at, report)
      }
    for (const [index, name] of remove.entries()) checkName(name, `${path}.remove[${index}]`, report)
  })
}

function checkName(name: string, path: string, report: Report): void {
  if (isFixed(name)) {
    report.warnings.push({ path, reason: 'proxies do not modify this header: left out' })
    return
  }
  const reason = headerNameFault(name)
  if (reason) reject(report, path, reason)
}

function checkAuthority(host: string, path: string, report: Report): void {
  const reason = authorityFault(host)
  if (reason) reject(report, path, reason)
}

/**
 * Returns why text is not a host that requests can be rewritten to. Undefined when it is one. Command operators are not allowed, because
 * Envoy does not evaluate them here.
 */
export const authorityFault = (host: string): string | undefined =>
  /^[!-$&-~]{0,1024}$/.test(host) ? undefined : `${JSON.stringify(host.slice(0, 100))} is not a host (commands are not allowed here)`

/** Header modifications of requests and responses. Setting the host of a request, under either of its names, rewrites it. */
export const headers = record({ request: operations('request'), response: operations('response') })

export type HeaderChanges = Read<typeof headers>
export type HeaderOperations = NonNullable<HeaderChanges['request']>
