/**
 * Host values of AuthorizationPolicies, and what servers may take an `:authority` for (RFC 3986, section 3.2; docs/resources.md, M5). The
 * expressions are in the syntax that RE2 and JavaScript share and match a whole authority.
 */
import { domainToASCII } from 'node:url'

const host = '([A-Za-z0-9_~-]+(\\.[A-Za-z0-9_~-]+)*\\.?|\\[[0-9A-Fa-f:.]+\\])'

/** Kinds of authorities, each as a regular expression. */
export const authorities = {
  /** A host, or one with a port. */
  plain: `${host}(:[0-9]+)?`,
  /** A host, with whatever servers may read as a port after it. Others can be taken for any host: with user names, escapes, commas, none at all. */
  readable: `${host}(:[A-Za-z0-9+-]*)?`,
  /** A host, or one with a port in its only spelling. */
  plainPort: `${host}(:[1-9][0-9]*)?`,
  /** Any text, with a port or without: what counted as a host before there were forms. */
  anyHost: '([^:]*|\\[[^\\]]*\\])(:[0-9]+)?',
} as const

/** A host value taken apart, in lower case and as domain names are sent. A prefix has no port of its own: it is compared as text. */
export interface HostPattern {
  readonly kind: 'any' | 'exact' | 'prefix' | 'suffix'
  /** Without final dot. */
  readonly host: string
  readonly port: string | undefined
}

/** Takes a host value apart. */
export function hostPatternOf(value: string): HostPattern {
  if (value === '*') return { kind: 'any', host: '', port: undefined }
  const kind = value.startsWith('*') ? 'suffix' : value.endsWith('*') ? 'prefix' : 'exact'
  const text = (kind === 'suffix' ? value.slice(1) : kind === 'prefix' ? value.slice(0, -1) : value).toLowerCase()
  if (kind === 'prefix') return { kind, host: text, port: undefined }
  const isAddress = kind === 'exact' && /^[0-9a-f:.]*:[0-9a-f:.]*:[0-9a-f:.]*$/.test(text)
  const [, before = text, port] = (!isAddress && /^(.*):([0-9]+)$/s.exec(text)) || []
  return { kind, host: isAddress ? `[${text}]` : asSent(before.replace(/(?<=.)\.$/, '')), port }
}

/** A domain name with letters that are not ASCII as it is sent; what is none stays as it is. */
function asSent(text: string): string {
  const isAscii = [...text].every((character) => character < '\u0080')
  if (isAscii) return text
  const dot = text.startsWith('.') ? '.' : ''
  const name = domainToASCII(text.slice(dot.length))
  return name === '' ? text : dot + name
}

/** Ports that a request does not name. */
export const isDefaultPort = (port: string): boolean => port === '80' || port === '443'
