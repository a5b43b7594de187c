/** The authority in force: the certificates that sign, and the roots that are distributed, from either source. */
import { readCertificates } from '../../../src/ca/certificate.ts'
import { withoutDistrusted } from '../../../src/ca/distrust.ts'
import type { Validity } from '../../../src/ca/lifetime.ts'
import { chainExpiry, materialOf, type Signer } from '../../../src/ca/rotation.ts'
import type { AuthorityRecord, AuthorityState } from '../../../src/ca/state.ts'
import { fingerprintOf } from '../../../src/identity/pem.ts'
import type { PluggedIn } from './plugged-in.ts'
import type { SigningReference } from './sign-task.ts'
import type { KeyPlace } from './storage.ts'

/** A signing certificate in force. */
export interface ActiveSigner {
  readonly by: SigningReference
  /** Certificates sent after a leaf, PEM; empty when the root signs. */
  readonly intermediates: string
  /** SHA-256 fingerprint of the root at the end of the chain. */
  readonly root: string
  /** Limits of the validity of leaf certificates. */
  readonly within: Validity
}

/** The authority in force. */
export interface InForce {
  readonly workloads: ActiveSigner
  readonly serving: ActiveSigner
  /** Roots in answers, PEM each. Of an own authority, the root of the workload signer comes first. */
  readonly bundle: readonly string[]
  /** Roots that the process's own servers accept for client certificates, PEM each. */
  readonly trusted: readonly string[]
  readonly source: 'plugged-in' | 'own'
}

/**
 * Describes a plugged-in authority in force. `former`: replaced roots that stay trusted; `distrusted`: roots that are left out; PEM each.
 */
export function pluggedInForce({ by, chain, roots }: PluggedIn, former: readonly string[], distrusted: readonly string[]): InForce {
  const within = { notBefore: chain.notBefore, notAfter: chain.notAfter }
  const signs = { by, intermediates: chain.intermediates, root: fingerprintOf(chain.root), within }
  const all = withoutDistrusted([...roots, ...former], distrusted)
  return { workloads: signs, serving: signs, bundle: all, trusted: all, source: 'plugged-in' }
}

/**
 * Describes the own authority in force at the Unix time `now` in milliseconds; undefined before the first root. `others`: roots that are
 * trusted as well, PEM each. Distrusted roots of the state are left out.
 */
export function ownInForce(state: AuthorityState, place: KeyPlace, others: readonly string[], now: number): InForce | undefined {
  const material = materialOf(state, now)
  if (!material) return undefined
  const signs = ({ id, certificate, intermediates }: Signer): ActiveSigner => {
    const record = state.authorities.find((one) => one.id === id) as AuthorityRecord
    const [signing] = readCertificates(certificate)
    const within = { notBefore: signing?.notBefore ?? now, notAfter: chainExpiry(record) }
    return { by: { id, certificate, key: place }, intermediates, root: fingerprintOf(record.root), within }
  }
  return {
    workloads: signs(material.workloads),
    serving: signs(material.serving),
    bundle: withoutDistrusted([...material.bundle, ...others], state.distrusted),
    trusted: withoutDistrusted([...material.trusted, ...others], state.distrusted),
    source: 'own',
  }
}

/** Whether two authorities in force have the same content. */
export function isSameInForce(one: InForce | undefined, other: InForce): boolean {
  return one !== undefined && JSON.stringify(one) === JSON.stringify(other)
}

/** The kinds of actors that are told of roots and of the signing certificate. */
export const informed: ReadonlySet<string> = new Set(['xds-writer', 'root-certificates', 'webhooks', 'validation-controller'])
