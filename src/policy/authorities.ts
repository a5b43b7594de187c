/**
 * Host values of AuthorizationPolicies, and the forms of `:authority` that servers may accept for a host (RFC 3986, section 3.2;
 * docs/resources.md, M5). The expressions use the syntax common to RE2 and JavaScript and match a whole authority.
 */
import { domainToASCII } from 'node:url'

const host = '([A-Za-z0-9_~-]+(\\.[A-Za-z0-9_~-]+)*\\.?|\\[[0-9A-Fa-f:.]+\\])'

/** Kinds of authorities, each as a regular expression. */
export const authorities = {
  /** A host with or without a decimal port. */
  plain: `${host}(:[0-9]+)?`,
  /**
   * A host, optionally followed by anything that servers may read as a port. Any other authority could be read as any host: it may contain
   * user names, escapes or commas, or be empty.
   */
  readable: `${host}(:[A-Za-z0-9+-]*)?`,
  /** A host with or without a port in its canonical form, without leading zeros. */
  plainPort: `${host}(:[1-9][0-9]*)?`,
  /** Any text with or without a port: the definition of a host while the policy check `host-forms` is disabled. */
  anyHost: '([^:]*|\\[[^\\]]*\\])(:[0-9]+)?',
} as const

/** A parsed host value, in lower case and in the ASCII form of domain names. A prefix is compared as text and has no separate port. */
export interface HostPattern {
  readonly kind: 'any' | 'exact' | 'prefix' | 'suffix'
  /** Without trailing dot. */
  readonly host: string
  readonly port: string | undefined
}

/** Parses a host value. */
export function hostPatternOf(value: string): HostPattern {
  if (value === '*') return { kind: 'any', host: '', port: undefined }
  const kind = value.startsWith('*') ? 'suffix' : value.endsWith('*') ? 'prefix' : 'exact'
  const text = (kind === 'suffix' ? value.slice(1) : kind === 'prefix' ? value.slice(0, -1) : value).toLowerCase()
  if (kind === 'prefix') return { kind, host: text, port: undefined }
  const isAddress = kind === 'exact' && /^[0-9a-f:.]*:[0-9a-f:.]*:[0-9a-f:.]*$/.test(text)
  const [, before = text, port] = (!isAddress && /^(.*):([0-9]+)$/s.exec(text)) || []
  return { kind, host: isAddress ? `[${text}]` : asSent(before.replace(/(?<=.)\.$/, '')), port }
}

/** Returns a domain name in ASCII form (punycode); a text that is no domain name is returned unchanged. */
function asSent(text: string): string {
  const isAscii = [...text].every((character) => character < '\u0080')
  if (isAscii) return text
  const dot = text.startsWith('.') ? '.' : ''
  const name = domainToASCII(text.slice(dot.length))
  return name === '' ? text : dot + name
}

/** Whether a port is the default port of HTTP or HTTPS, which requests leave out. */
export const isDefaultPort = (port: string): boolean => port === '80' || port === '443'
