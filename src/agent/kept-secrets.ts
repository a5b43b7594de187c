/** What an agent keeps of its workload's secrets over a restart, as text, and what of it may be used again (docs/certificates.md, H1 to H4). */
import { createPrivateKey, type KeyObject } from 'node:crypto'
import type { CertificateConfig, KeyKind } from '../../protocols/messages/agent.ts'
import { certificatesOf } from '../identity/pem.ts'
import { parseWorkload } from '../identity/spiffe-id.ts'
import { BadAnswer, type Issued, readIssued } from './issued.ts'

/** What is kept. */
export interface KeptSecrets {
  /** The identity that was asked for, a SPIFFE id: the authority may have named another trust domain. */
  readonly identity: string
  /** `<host>:<port>` of the authority. */
  readonly authority: string
  /** PEM. */
  readonly chain: string
  readonly roots: string
  readonly key: string
  /** Unix milliseconds. */
  readonly issuedAt: number
}

const version = 1

/** The text of what is kept. */
export function keptText(kept: KeptSecrets): string {
  return `${JSON.stringify({ version, ...kept })}\n`
}

/** Reads {@link keptText}. Throws an Error that says what is wrong with it. */
export function readKept(text: string): KeptSecrets {
  let read: unknown
  try {
    read = JSON.parse(text)
  } catch {
    // What the parser says may quote the key.
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

/** What of the kept secrets may be used. */
export interface Restored {
  /** Roots that peers are verified with, PEM. */
  readonly roots: string
  /** The pair, or why there is none. */
  readonly pair: { readonly issued: Issued; readonly key: string } | string
  /** Whether a certificate is asked for at once: the authority is another than before. */
  readonly isDue: boolean
}

/**
 * What may be used by a workload of these settings at the Unix time `now` in milliseconds: the roots, and the pair while it is valid. Throws
 * an Error that says why nothing of it may: it is of another workload or for a key of another kind, or it is garbled.
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

/** A private key in PEM: PKCS #8, or the older form of its kind (PKCS #1, SEC 1). */
export function keyText(key: KeyObject, { format }: KeyKind): string {
  const type = format === 'pkcs8' ? 'pkcs8' : key.asymmetricKeyType === 'rsa' ? 'pkcs1' : 'sec1'
  return key.export({ type, format: 'pem' }).toString()
}

function privateKey(text: string): KeyObject {
  try {
    return createPrivateKey(text)
  } catch {
    // What OpenSSL says of a key that it cannot read says nothing to a user.
    throw new Error('has no private key')
  }
}
