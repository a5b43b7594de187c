/** SPIFFE ids (SPIFFE ID standard, section 2) and the identities of workloads among them (docs/identity.md, I1 to I3). */
import { canonicalTrustDomain, isTrustDomain } from '../config/trust-domain.ts'

/** A SPIFFE id in its parts. */
export interface SpiffeId {
  readonly trustDomain: string
  /** Segments of the path, none for the id of a trust domain itself. */
  readonly path: readonly string[]
}

/** A service account of a namespace. */
export interface ServiceAccount {
  readonly namespace: string
  readonly account: string
}

/** A workload: a service account in a trust domain. */
export interface Workload extends ServiceAccount {
  readonly trustDomain: string
}

/** Most bytes of an id (section 2.3). */
const longestId = 2048
const scheme = 'spiffe://'

/**
 * Reads a SPIFFE id. Nothing is decoded, folded or completed: text that is not an id as it stands is none. Undefined when the scheme is
 * another, the trust domain is none, a segment of the path is empty, `.` or `..`, there is any other character than letters, digits,
 * `.`, `-`, `_` (so none of user, port, query, fragment and escapes), or it is longer than 2048 bytes.
 */
export function parseSpiffeId(text: string): SpiffeId | undefined {
  if (text.length > longestId || !text.startsWith(scheme)) return undefined
  const [trustDomain = '', ...path] = text.slice(scheme.length).split('/')
  if (!isTrustDomain(trustDomain)) return undefined
  const isSegment = (segment: string) => /^[A-Za-z0-9._-]+$/.test(segment) && segment !== '.' && segment !== '..'
  return path.every(isSegment) ? { trustDomain, path } : undefined
}

/** Reads the identity of a workload, `spiffe://<trust domain>/ns/<namespace>/sa/<service account>`. Undefined for any other text. */
export function parseWorkload(text: string): Workload | undefined {
  const id = parseSpiffeId(text)
  if (id?.path.length !== 4) return undefined
  const [ns, namespace = '', sa, account = ''] = id.path
  if (ns !== 'ns' || sa !== 'sa' || !isNamespace(namespace) || !isAccount(account)) return undefined
  return { trustDomain: id.trustDomain, namespace, account }
}

/** The SPIFFE id of a service account. Throws RangeError when trust domain, namespace or account are no such names. */
export function workloadId(trustDomain: string, { namespace, account }: ServiceAccount): string {
  const id = `${scheme}${canonicalTrustDomain(trustDomain) ?? ''}/ns/${namespace}/sa/${account}`
  if (!parseWorkload(id)) throw new RangeError(`${JSON.stringify(id.slice(0, 300))} is not the identity of a workload`)
  return id
}

/** The service account that a token is about: its `sub` must be `system:serviceaccount:<namespace>:<account>`. Undefined for any other value. */
export function serviceAccountOf(subject: unknown): ServiceAccount | undefined {
  if (typeof subject !== 'string' || subject.length > longestId) return undefined
  const parts = subject.split(':')
  const [system, kind, namespace = '', account = ''] = parts
  if (parts.length !== 4 || system !== 'system' || kind !== 'serviceaccount') return undefined
  return isNamespace(namespace) && isAccount(account) ? { namespace, account } : undefined
}

/** Whether text is the name of a namespace: a DNS label (RFC 1123). */
export function isNamespace(name: string): boolean {
  return /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(name)
}

/** Whether text is the name of a service account: a DNS subdomain (RFC 1123), labels joined by dots, at most 253 characters. */
export function isAccount(name: string): boolean {
  return name.length <= 253 && name.split('.').every((label) => /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(label))
}
