/** Checks what a signer of the orchestrator has signed (docs/certificates.md, E5): a signer that does anything else than was asked is refused. */
import { X509Certificate } from 'node:crypto'
import { fingerprintOf, pemOf } from '../identity/pem.ts'
import { count } from '../model/counts.ts'
import { type Certificate, readCertificates } from './certificate.ts'
import { chainFault, pathOfLeaf } from './chain.ts'
import { clockMargin } from './lifetime.ts'
import { type AltName, readNames, type SigningRequest } from './signing-request.ts'

/** What a certificate is checked against. */
export interface Asked {
  readonly request: Pick<SigningRequest, 'publicKey' | 'names'>
  /** The roots that verify it, PEM. */
  readonly roots: string
  /** The latest end of its validity, in Unix milliseconds; infinite where no lifetime was asked for. */
  readonly until: number
  /** Unix milliseconds. */
  readonly now: number
}

/** A certificate that may be used. */
export interface SignedLeaf {
  /** PEM, like the rest. */
  readonly leaf: string
  /** The authorities between leaf and root, in order; empty where the root has signed it. */
  readonly intermediates: string
  /** The SHA-256 fingerprint of the root at the end of the chain. */
  readonly root: string
  /** The serial number in hexadecimal. */
  readonly serial: string
  /** Unix milliseconds. */
  readonly notBefore: number
  readonly notAfter: number
}

/** What a signer has done wrong, in one word. */
type FaultKind = 'text' | 'key' | 'authority' | 'names' | 'use' | 'time' | 'root'

/** A signer has not signed what was asked for. The message says what it did. */
export class SignerFault extends Error {
  readonly kind: FaultKind

  constructor(kind: FaultKind, message: string) {
    super(message)
    this.kind = kind
  }
}

/** The most characters and certificates that a signer may answer with. */
const most = { characters: 131_072, certificates: 10 }
/** Both ends of TLS, as Node prints extended key usages. */
const bothEnds = ['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2']

/** Returns what the text of a signer holds: the leaf first, then authorities. Throws {@link SignerFault}. */
export function checkSigned(text: string, { request, roots, until, now }: Asked): SignedLeaf {
  if (text.length > most.characters) throw new SignerFault('text', `it answers with more than ${most.characters} characters`)
  const [leaf, ...others] = faulty('text', 'it signed what is no certificate: ', () => readCertificates(text))
  if (!leaf) throw new SignerFault('text', 'it answers with no certificate in PEM')
  if (others.length >= most.certificates) throw new SignerFault('text', `it answers with more than ${most.certificates} certificates`)
  checkLeaf(leaf, request)
  if (now < leaf.notBefore || now >= leaf.notAfter)
    throw new SignerFault('time', `it signed for the time from ${iso(leaf.notBefore)} to ${iso(leaf.notAfter)}, which is not now`)
  if (leaf.notAfter > until + clockMargin)
    throw new SignerFault('time', `it signed a longer lifetime than was asked for: until ${iso(leaf.notAfter)} instead of ${iso(until)}`)
  const path = faulty('root', 'its certificate is not verified by the roots of the signer: ', () => pathOfLeaf(leaf, others, readCertificates(roots)))
  const fault = chainFault({ path: path.slice(1) }, now)
  if (fault !== undefined) throw new SignerFault('root', `its certificate is not verified by the roots of the signer: ${fault}`)
  const pem = ({ encoded }: Certificate) => pemOf('CERTIFICATE', encoded)
  return {
    leaf: pem(leaf),
    intermediates: path.slice(1, -1).map(pem).join(''),
    root: fingerprintOf(pem(path.at(-1) as Certificate)),
    serial: leaf.serial.toString('hex'),
    notBefore: leaf.notBefore,
    notAfter: leaf.notAfter,
  }
}

function checkLeaf(leaf: Certificate, request: Asked['request']): void {
  if (!leaf.publicKey.encoded.equals(request.publicKey.encoded)) throw new SignerFault('key', 'it signed another key than that of the request')
  if (leaf.isAuthority) throw new SignerFault('authority', 'it signed the certificate of an authority (CA:TRUE)')
  const found = faulty('names', 'the names of its certificate cannot be read: ', () => (leaf.altNames ? readNames(leaf.altNames) : []))
  if (sorted(found) !== sorted(request.names))
    throw new SignerFault('names', `it signed other names than those of the request: ${shown(found)} instead of ${shown(request.names)}`)
  const ends = new X509Certificate(leaf.encoded).keyUsage as readonly string[] | undefined
  if (ends && !bothEnds.every((end) => ends.includes(end)))
    throw new SignerFault('use', 'its certificate is not for both ends of a TLS connection (extended key usage)')
}

const sorted = (names: readonly AltName[]): string => String([...new Set(names.map(({ encoded }) => encoded.toString('hex')))].sort())

/** The most names in a message. */
const shownNames = 5

function shown(names: readonly AltName[]): string {
  if (names.length === 0) return 'none'
  const first = names.slice(0, shownNames).map(({ kind, value }) => JSON.stringify(`${kind}:${value.slice(0, 100)}`))
  return `${first.join(', ')}${names.length > shownNames ? ` and ${count(names.length - shownNames, 'other')}` : ''}`
}

function faulty<Result>(kind: FaultKind, what: string, make: () => Result): Result {
  try {
    return make()
  } catch (error) {
    throw new SignerFault(kind, `${what}${(error as Error).message}`)
  }
}

const iso = (ms: number): string => (Number.isFinite(ms) ? new Date(ms).toISOString() : 'never')

/**
 * When a certificate is renewed, in Unix milliseconds: at half its life, or ten minutes before its end where that is earlier, but not before
 * a fifth of its life is over.
 */
export function renewalOf({ notBefore, notAfter }: Pick<SignedLeaf, 'notBefore' | 'notAfter'>): number {
  const life = notAfter - notBefore
  return notAfter - Math.max(life / 2, Math.min(minGraceMs, life * 0.8))
}

/** The shortest time before the end of a certificate at which it is renewed, in milliseconds. */
const minGraceMs = 600_000
