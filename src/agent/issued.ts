/** Validates a response of the certificate authority before it is used (docs/certificates.md, N6). */
import type { KeyObject } from 'node:crypto'
import { ClientTrust, uriNames } from '../identity/client-trust.ts'
import { certificatesOf } from '../identity/pem.ts'
import { parseSpiffeId } from '../identity/spiffe-id.ts'
import { count } from '../model/counts.ts'

/** A certificate that was issued for a key of this agent, after validation. */
export interface Issued {
  /** The leaf and the intermediates up to the root, without the root. PEM. */
  readonly chain: string
  /** The roots that peers are verified with. PEM. */
  readonly roots: string
  /** When the leaf expires, in Unix milliseconds. */
  readonly notAfter: number
  /** The SPIFFE id of the leaf. */
  readonly identity: string
}

/** The maximum size of a response in characters of PEM, and the maximum number of certificates in it. */
const limits = { characters: 524_288, certificates: 100 }

/** Thrown when a response cannot be used. */
export class BadAnswer extends Error {}

/**
 * Parses and validates a response: the leaf, intermediates, and the roots last. Throws {@link BadAnswer} when the leaf is for another key,
 * has no SPIFFE id or several, is not valid at the Unix time `now` in milliseconds, or does not lead to one of the roots.
 */
export function readIssued(elements: readonly string[], key: KeyObject, now: number): Issued {
  if (elements.length < 2) throw new BadAnswer(`the answer has ${count(elements.length, 'element')}: a certificate and a root are expected`)
  if (elements.reduce((total, { length }) => total + length, 0) > limits.characters)
    throw new BadAnswer(`the answer has more than ${limits.characters} characters`)
  const roots = read(elements.at(-1) as string)
  const [leaf, ...between] = read(elements.slice(0, -1).join('\n'))
  if (!leaf || roots.length === 0) throw new BadAnswer('the answer has no certificate or no root')
  if (!leaf.checkPrivateKey(key)) throw new BadAnswer('the certificate is for another key')
  const verified = verify([leaf, ...between], textOf(roots), now)
  if ('refused' in verified) throw new BadAnswer(verified.refused)
  const { identities, expiresAt } = verified.caller
  return { chain: textOf([leaf, ...between]), roots: textOf(roots), notAfter: expiresAt, identity: identities[0] as string }
}

/**
 * Parses roots (PEM) that are announced apart from a response, and returns them as in {@link Issued}. Throws {@link BadAnswer} when there
 * is none, when there are too many, or when one cannot be parsed.
 */
export function readAnnounced(pem: string): string {
  if (pem.length > limits.characters) throw new BadAnswer(`the roots have more than ${limits.characters} characters`)
  return textOf(read(pem, 'the text'))
}

/** Whether a chain (PEM, leaf first) leads to one of the roots (PEM) and is valid at the Unix time `now` in milliseconds. */
export function leadsTo(chain: string, roots: string, now: number): boolean {
  return !('refused' in verify(read(chain), roots, now))
}

type Certificates = ReturnType<typeof certificatesOf>

const textOf = (certificates: Certificates): string => [...new Set(certificates.map((one) => one.toString()))].join('')

function verify([leaf, ...between]: Certificates, roots: string, now: number): ReturnType<ClientTrust['verify']> {
  if (!leaf) throw new BadAnswer('there is no certificate')
  const trust = new ClientTrust()
  for (const name of uriNames(leaf.subjectAltName ?? '')) trust.set('', { [parseSpiffeId(name)?.trustDomain ?? '']: roots })
  return trust.verify({ leaf, intermediates: () => between }, now)
}

function read(pem: string, what = 'the answer'): Certificates {
  let certificates: Certificates
  try {
    certificates = certificatesOf(pem)
  } catch (error) {
    throw new BadAnswer(`${what} is not certificates in PEM: ${(error as Error).message}`)
  }
  if (certificates.length > limits.certificates) throw new BadAnswer(`${what} has more than ${limits.certificates} certificates`)
  return certificates
}
