/** The stored form of a workload's secrets, and which of them may be used after a restart of the agent (docs/certificates.md, H1 to H4). */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import type { CertificateConfig, KeyKind } from '../../protocols/messages/agent.ts'
import { certificatesOf } from '../identity/pem.ts'
import { parseWorkload } from '../identity/spiffe-id.ts'
import { BadAnswer, type Issued, readIssued } from './issued.ts'

/** The stored secrets. */
export interface KeptSecrets {
  /** The requested identity, a SPIFFE id. The trust domain of the issued certificate may differ, because the authority decides it. */
  readonly identity: string
  /** `<host>:<port>` of the authority that issued the certificate. */
  readonly authority: string
  /** PEM, as are `roots` and `key`. */
  readonly chain: string
  readonly roots: string
  readonly key: string
  /** When the certificate was issued, in Unix milliseconds. */
  readonly issuedAt: number
}

const version = 1

/** Returns the secrets in their stored form. */
export function keptText(kept: KeptSecrets): string {
  return `${JSON.stringify({ version, ...kept })}\n`
}

/** Parses {@link keptText}. Throws an Error with the fault. */
export function readKept(text: string): KeptSecrets {
  let read: unknown
  try {
    read = JSON.parse(text)
  } catch {
    // The error of the parser is discarded because it may quote the private key.
    throw new Error('is not JSON')
  }
  const object = Object(read) as Record<string, unknown>
  if (object.version !== version) throw new Error(`is not of version ${version}`)
  const field = (name: keyof KeptSecrets): string => {
    const value = object[name]
    if (typeof value !== 'string') throw new Error(`${name} is not text`)
    return value
  }
  const { issuedAt } = object
  if (typeof issuedAt !== 'number' || !Number.isFinite(issuedAt)) throw new Error('issuedAt is not a number')
  return { identity: field('identity'), authority: field('authority'), chain: field('chain'), roots: field('roots'), key: field('key'), issuedAt }
}

/** The stored secrets that may be used. */
export interface Restored {
  /** The roots that peers are verified with, PEM. */
  readonly roots: string
  /** The certificate with its key, or the reason why it may not be used. */
  readonly pair: { readonly issued: Issued; readonly key: string } | string
  /** Whether a new certificate must be requested at once, because the address of the authority has changed. */
  readonly isDue: boolean
}

/**
 * Returns the stored secrets that a workload with the settings `config` may use at the Unix time `now` in milliseconds: the roots, and the
 * certificate with its key while it is valid. Throws an Error with the reason when none of them may be used: they are another workload's,
 * the key is of another type, or a key or certificate cannot be parsed.
 */
export function restore(kept: KeptSecrets, config: Pick<CertificateConfig, 'identity' | 'key'>, authority: string, now: number): Restored {
  if (kept.identity !== config.identity) throw new Error(`is of ${JSON.stringify(kept.identity.slice(0, 300))}`)
  const key = privateKey(kept.key)
  if (key.asymmetricKeyType !== config.key.type) throw new Error(`has a key of type ${key.asymmetricKeyType}`)
  const roots = certificatesOf(kept.roots).join('')
  return { roots, isDue: kept.authority !== authority, pair: pairOf(kept, key, config.key, now) }
}

function pairOf({ identity, chain, roots }: KeptSecrets, key: KeyObject, kind: KeyKind, now: number): Restored['pair'] {
  try {
    const issued = readIssued([chain, roots], key, now)
    const [asked, named] = [parseWorkload(identity), parseWorkload(issued.identity)]
    if (asked?.namespace !== named?.namespace || asked?.account !== named?.account) return `the certificate is of ${issued.identity}`
    return { issued, key: keyText(key, kind) }
  } catch (error) {
    if (error instanceof BadAnswer) return error.message
    throw error
  }
}

/** Returns a private key in PEM: PKCS #8, or the traditional form of its type (PKCS #1 or SEC 1). */
export function keyText(key: KeyObject, { format }: KeyKind): string {
  const type = format === 'pkcs8' ? 'pkcs8' : key.asymmetricKeyType === 'rsa' ? 'pkcs1' : 'sec1'
  return key.export({ type, format: 'pem' }).toString()
}

function privateKey(text: string): KeyObject {
  try {
    return createPrivateKey(text)
  } catch {
    // The error of OpenSSL is discarded because it does not help a user.
    throw new Error('has no private key')
  }
}
