/** Orders and checks the certificate chain from a signing certificate to its root (docs/certificates.md, A1 to A4). */
import { X509Certificate } from 'node:crypto'
import { pemOf } from '../identity/pem.ts'
import { count } from '../model/counts.ts'
import { type Certificate, readCertificates } from './certificate.ts'
import type { Validity } from './lifetime.ts'

/** A signing certificate and its chain to a root. The validity is the intersection of the validities of all certificates in the chain. */
export interface Chain extends Validity {
  readonly signing: Certificate
  /**
   * The certificates from the signing certificate to the one below the root, in PEM. They are sent after a leaf. Empty when the signing
   * certificate is the root.
   */
  readonly intermediates: string
  /** The root at the end of the chain, PEM. */
  readonly root: string
  /** The certificates of the chain, the signing one first, the root last. */
  readonly path: readonly Certificate[]
}

/** The maximum number of certificates between a leaf and its root. */
const longestChain = 8
/** The maximum number of certificates in the input, roots included. */
const maxCertificates = 256

/**
 * Finds the chain from a signing certificate, the first of `signing`, through any of `others` to one of the `roots`. All three are PEM.
 * Throws an Error with the reason when there is no chain, or when a certificate of the chain may not sign certificates. Whether they are
 * valid at present is another question ({@link chainFault}).
 */
export function findChain(signing: string, others: string, roots: string): Chain {
  const [first] = readCertificates(signing)
  if (!first) throw new Error('holds no certificate in PEM')
  const trusted = readCertificates(roots)
  const known = [...readCertificates(others), ...readCertificates(signing).slice(1)]
  if (trusted.length + known.length > maxCertificates) throw new Error(`there are more than ${maxCertificates} certificates`)
  const path = wayTo(trusted, known, [first])
  if (!path)
    throw new Error('the signing certificate does not lead to a root that is given: an authority in between is missing, or signatures do not verify')
  for (const [index, one] of path.entries()) checkAuthority(one, index)
  const root = path.at(-1) as Certificate
  const below = path.slice(0, -1)
  return {
    signing: first,
    intermediates: below.map(({ encoded }) => pemOf('CERTIFICATE', encoded)).join(''),
    root: pemOf('CERTIFICATE', root.encoded),
    path,
    notBefore: Math.max(...path.map(({ notBefore }) => notBefore)),
    notAfter: Math.min(...path.map(({ notAfter }) => notAfter)),
  }
}

/**
 * Finds the way from a leaf to one of the roots through any of `others`. Throws an Error with the reason when there is none, or when a
 * certificate on it may not sign certificates.
 */
export function pathOfLeaf(leaf: Certificate, others: readonly Certificate[], roots: readonly Certificate[]): readonly Certificate[] {
  if (roots.length + others.length > maxCertificates) throw new Error(`there are more than ${maxCertificates} certificates`)
  const path = wayTo(roots, others, [leaf])
  if (!path || path.length === 1) throw new Error('it leads to none of the roots that are given')
  for (const [index, one] of path.slice(1).entries()) checkAuthority(one, index)
  return path
}

/** Extends a path to one of the roots by depth-first search. Returns undefined when no extension reaches a root. */
function wayTo(roots: readonly Certificate[], known: readonly Certificate[], path: readonly Certificate[]): readonly Certificate[] | undefined {
  const last = path.at(-1) as Certificate
  if (roots.some(({ encoded }) => encoded.equals(last.encoded))) return path
  if (path.length > longestChain) return undefined
  const root = roots.find((one) => hasSigned(one, last))
  if (root) return [...path, root]
  for (const next of known) {
    if (path.includes(next) || !hasSigned(next, last)) continue
    const found = wayTo(roots, known, [...path, next])
    if (found) return found
  }
  return undefined
}

function hasSigned(authority: Certificate, certificate: Certificate): boolean {
  if (!authority.subject.equals(certificate.issuer)) return false
  const [above, below] = [new X509Certificate(authority.encoded), new X509Certificate(certificate.encoded)]
  return below.verify(above.publicKey)
}

/**
 * Throws an Error when a certificate of the chain may not sign certificates. `below` is the number of authorities of the chain below this
 * one.
 */
function checkAuthority(one: Certificate, below: number): void {
  const name = nameOf(one)
  if (!one.isAuthority) throw new Error(`${name} may not sign certificates: its basic constraints do not say CA:TRUE`)
  if (!one.signsCertificates) throw new Error(`${name} may not sign certificates: its key usage has no certificate signing`)
  if (one.pathLength < below) throw new Error(`${name} allows ${count(one.pathLength, 'authority', 'authorities')} below it, but has ${below}`)
  if (one.publicKey.kind.type === 'rsa' && one.publicKey.kind.bits < 2048) throw new Error(`${name} has an RSA key of less than 2048 bits`)
}

/** Which certificate of a chain is not valid at the Unix time `now` in milliseconds, and why; undefined when all are. */
export function chainFault({ path }: Pick<Chain, 'path'>, now: number): string | undefined {
  const faults = path.map((one) => {
    if (now < one.notBefore) return `${nameOf(one)} is not valid before ${new Date(one.notBefore).toISOString()}`
    return now >= one.notAfter ? `${nameOf(one)} has expired on ${new Date(one.notAfter).toISOString()}` : undefined
  })
  return faults.find((fault) => fault !== undefined)
}

const nameOf = ({ encoded }: Certificate): string =>
  `the authority ${JSON.stringify((new X509Certificate(encoded).subject ?? '').replaceAll('\n', ', '))}`
