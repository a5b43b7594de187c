/** SPIFFE ids (SPIFFE ID standard, section 2) and workload identities (docs/identity.md, I1 to I3). */
import { canonicalTrustDomain, isTrustDomain } from '../config/trust-domain.ts'

/** A parsed SPIFFE id. */
export interface SpiffeId {
  readonly trustDomain: string
  /** The segments of the path. Empty for the id of a trust domain itself. */
  readonly path: readonly string[]
}

/** A service account in a namespace. */
export interface ServiceAccount {
  readonly namespace: string
  readonly account: string
}

/** A workload: a service account in a trust domain. */
export interface Workload extends ServiceAccount {
  readonly trustDomain: string
}

/** The maximum length of an id, in bytes (section 2.3). */
const longestId = 2048
const scheme = 'spiffe://'

/**
 * Parses a SPIFFE id. Nothing is decoded, case-folded or normalized. Undefined when the scheme is another, the trust domain is invalid, a
 * segment of the path is empty, `.` or `..`, a character is not a letter, digit, `.`, `-` or `_` (which excludes user, port, query,
 * fragment and escapes), or the text exceeds 2048 bytes.
 */
export function parseSpiffeId(text: string): SpiffeId | undefined {
  if (text.length > longestId || !text.startsWith(scheme)) return undefined
  const [trustDomain = '', ...path] = text.slice(scheme.length).split('/')
  if (!isTrustDomain(trustDomain)) return undefined
  const isSegment = (segment: string) => /^[A-Za-z0-9._-]+$/.test(segment) && segment !== '.' && segment !== '..'
  return path.every(isSegment) ? { trustDomain, path } : undefined
}

/** Parses a workload identity, `spiffe://<trust domain>/ns/<namespace>/sa/<service account>`. Undefined for any other text. */
export function parseWorkload(text: string): Workload | undefined {
  const id = parseSpiffeId(text)
  if (id?.path.length !== 4) return undefined
  const [ns, namespace = '', sa, account = ''] = id.path
  if (ns !== 'ns' || sa !== 'sa' || !isNamespace(namespace) || !isAccount(account)) return undefined
  return { trustDomain: id.trustDomain, namespace, account }
}

/** Returns the SPIFFE id of a service account. Throws RangeError when the trust domain, namespace or account is invalid. */
export function workloadId(trustDomain: string, { namespace, account }: ServiceAccount): string {
  const id = `${scheme}${canonicalTrustDomain(trustDomain) ?? ''}/ns/${namespace}/sa/${account}`
  if (!parseWorkload(id)) throw new RangeError(`${JSON.stringify(id.slice(0, 300))} is not the identity of a workload`)
  return id
}

/**
 * Returns the service account of a token's subject: `sub` must be `system:serviceaccount:<namespace>:<account>`. Undefined for any other
 * value.
 */
export function serviceAccountOf(subject: unknown): ServiceAccount | undefined {
  if (typeof subject !== 'string' || subject.length > longestId) return undefined
  const parts = subject.split(':')
  const [system, kind, namespace = '', account = ''] = parts
  if (parts.length !== 4 || system !== 'system' || kind !== 'serviceaccount') return undefined
  return isNamespace(namespace) && isAccount(account) ? { namespace, account } : undefined
}

/** Whether a text is a valid namespace: a DNS label (RFC 1123). */
export function isNamespace(name: string): boolean {
  return /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name)
}

/** Whether a text is a valid service account: a DNS subdomain (RFC 1123), labels joined by dots, at most 253 characters. */
export function isAccount(name: string): boolean {
  return name.length <= 253 && name.split('.').every((label) => /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(label))
}
