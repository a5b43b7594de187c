/** Changes of headers by routes (`envoy.config.core.v3.HeaderValueOption`). */
import { headerFormatFault } from '../header-format.ts'
import { list, map, type Read, type Report, record, reject, text } from '../shape.ts'

const token = /^[0-9A-Za-z!#$%&'*+.^_|~`-]+$/

/** What keeps text from being the name of a header, or undefined (RFC 9110, section 5.1). */
export const headerNameFault = (name: string): string | undefined =>
  token.test(name) ? undefined : `${JSON.stringify(name.slice(0, 100))} is not the name of a header`

/**
 * The path of the claim of a token that a match of headers means by its name, `@request.auth.claims.<claim>` with dots between nested claims or
 * `@request.auth.claims[<claim>][<nested>]`; undefined for the name of a header.
 */
export function claimPath(name: string): readonly string[] | undefined {
  const rest = /^@request\.auth\.claims(.+)$/is.exec(name)?.[1]
  if (rest === undefined) return undefined
  const path = rest.startsWith('.') ? rest.slice(1).split('.') : /^\[.+\]$/s.test(rest) ? rest.slice(1, -1).split('][') : []
  return path.length > 0 && path.every((part) => part !== '') ? path : undefined
}

/** Whether a name means the host of a request, which proxies rewrite and cannot set as a header. */
export const isAuthority = (name: string): boolean => /^(host|:authority)$/i.test(name)

/** Whether proxies neither set nor remove a header: pseudo headers (RFC 9113, section 8.3) and the host. */
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
    report.warnings.push({ path, reason: 'proxies do not change it: left out' })
    return
  }
  const reason = headerNameFault(name)
  if (reason) reject(report, path, reason)
}

function checkAuthority(host: string, path: string, report: Report): void {
  const reason = authorityFault(host)
  if (reason) reject(report, path, reason)
}

/** What keeps text from being the host that requests are rewritten to, or undefined. It is taken as it is: a command in it would stand for itself. */
export const authorityFault = (host: string): string | undefined =>
  /^[!-$&-~]{0,1024}$/.test(host) ? undefined : `${JSON.stringify(host.slice(0, 100))} is not a host (commands are not allowed here)`

/** Changes of the headers of requests and of responses. The host of a request, under either of its names, is rewritten. */
export const headers = record({ request: operations('request'), response: operations('response') })

export type HeaderChanges = Read<typeof headers>
export type HeaderOperations = NonNullable<HeaderChanges['request']>
