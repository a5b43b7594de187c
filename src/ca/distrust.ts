/** Which root a command names, and whether it may be distrusted (docs/certificates.md, R16). */
import { fingerprintOf, publicKeyOf } from '../identity/pem.ts'
import type { Stage } from './state.ts'

/** The least number of digits of a fingerprint that name a root. */
const leastDigits = 8

/**
 * Finds the root (PEM) that the first digits of a fingerprint name. Throws an Error when the text is no such beginning, and when it names
 * none or several of the roots, of which `kind` says what they are.
 */
export function rootNamed(id: string, roots: readonly string[], kind = 'root'): string {
  const digits = id.toLowerCase()
  if (!/^[0-9a-f]{8,64}$/.test(digits))
    throw new Error(
      `${JSON.stringify(id.slice(0, 100))} does not name a root: at least ${leastDigits} digits of its fingerprint are needed, as "ca show" prints them`,
    )
  const all = byFingerprint(roots)
  const [found, other] = [...all].filter(([fingerprint]) => fingerprint.startsWith(digits))
  if (!found) throw new Error(`no ${kind} begins with ${digits}; there are: ${[...all.keys()].map(short).join(', ') || 'none'}`)
  if (other) throw new Error(`${digits} names more than one root: ${short(found[0])} and ${short(other[0])}`)
  return found[1]
}

/** The authority in force, as far as it decides which roots may be distrusted. Roots are fingerprints. */
export interface RootUses {
  readonly source: 'own' | 'plugged-in'
  readonly workloads: string
  readonly serving: string
  /** Of an own authority: the root that the rotation goes to, or the only one. */
  readonly last: string | undefined
  readonly stage: Stage
}

/** Why a root (its fingerprint) may not be distrusted now, and what to do first; undefined when it may be. */
export function keptInTrust(root: string, { source, workloads, serving, last, stage }: RootUses): string | undefined {
  if (root === workloads || root === serving) {
    const use = root === workloads ? 'workload certificates' : 'the serving certificates of this process'
    const first =
      source === 'own'
        ? 'take the rotation to the stage sign-with-new first ("pilot-discovery ca rotate", with --force over holders that are not ready)'
        : 'plug in an authority of another root first ("pilot-discovery ca import --replace")'
    return `root ${short(root)} signs ${use}: ${first}`
  }
  return root === last && stage !== 'stable' ? `root ${short(root)} is the one that the rotation goes to, and signs next` : undefined
}

/** Returns those of some roots (PEM), each once, that have the key of a certificate: what one of them signed verifies with all. */
export function rootsOfKey(certificate: string, roots: readonly string[]): string[] {
  const key = publicKeyOf(certificate)
  return [...byFingerprint(roots).values()].filter((root) => publicKeyOf(root) === key)
}

/** Returns roots (PEM), each once, without those that have the key of a distrusted one. */
export function withoutDistrusted(roots: readonly string[], distrusted: readonly string[]): string[] {
  const keys = new Set(distrusted.map(publicKeyOf))
  const all = [...byFingerprint(roots).values()]
  return keys.size === 0 ? all : all.filter((root) => !keys.has(publicKeyOf(root)))
}

const byFingerprint = (roots: readonly string[]) => new Map(roots.map((root) => [fingerprintOf(root), root]))

/** Throws an Error when a root (PEM) that would sign is distrusted, or another one with its key. */
export function checkTrust(certificate: string, distrusted: readonly string[]): void {
  const root = fingerprintOf(certificate)
  if (withoutDistrusted([certificate], distrusted).length === 0)
    throw new Error(`root ${short(root)} is distrusted, and nothing is signed with it: exchange it, or trust it again ("pilot-discovery ca trust")`)
}

const short = (fingerprint: string): string => fingerprint.slice(0, 16)
