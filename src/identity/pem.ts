/** PEM encoding of certificates, requests and keys (RFC 7468). */
import { X509Certificate } from 'node:crypto'

/** Thrown for invalid PEM. */
export class PemFault extends Error {}

/** One PEM block. */
export interface PemBlock {
  readonly label: string
  readonly der: Buffer
}

const begin = /-----BEGIN ([A-Z0-9 ]{1,64})-----/

/**
 * Parses the blocks of a text whose labels are wanted; all by default. Text between blocks is ignored. Throws {@link PemFault} when a block
 * is truncated or a wanted one is not valid base64.
 */
export function readPem(text: string, isWanted: (label: string) => boolean = () => true): PemBlock[] {
  const blocks: PemBlock[] = []
  for (let rest = text; ; ) {
    const found = begin.exec(rest)
    if (!found) return blocks
    const label = found[1] as string
    const content = rest.slice(found.index + found[0].length)
    const end = content.indexOf(`-----END ${label}-----`)
    if (end < 0) throw new PemFault(`the ${label} has no end`)
    rest = content.slice(end + label.length + 14)
    if (!isWanted(label)) continue
    const base64 = content.slice(0, end).replace(/\s+/g, '')
    if (!/^[A-Za-z0-9+/]+={0,2}$/.test(base64) || base64.length % 4 !== 0) throw new PemFault(`the ${label} is not base64`)
    blocks.push({ label, der: Buffer.from(base64, 'base64') })
  }
}

/** Encodes a structure as PEM, with a trailing newline. */
export function pemOf(label: string, bytes: Buffer): string {
  const base64 = bytes.toString('base64')
  let lines = `-----BEGIN ${label}-----\n`
  for (let at = 0; at < base64.length; at += 64) lines += `${base64.slice(at, at + 64)}\n`
  return `${lines}-----END ${label}-----\n`
}

/** Parses all certificates of a PEM text; other blocks are ignored. Throws when there is none, or when one is truncated or invalid. */
export function certificatesOf(text: string): X509Certificate[] {
  const found = readPem(text, (label) => label.endsWith('CERTIFICATE'))
  if (found.length === 0) throw new PemFault('holds no certificate in PEM')
  return found.map(({ der }) => new X509Certificate(der))
}

/** Returns the public key of the first certificate of a PEM text (SubjectPublicKeyInfo in base64). Throws when there is none. */
export function publicKeyOf(certificate: string): string {
  return new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
}

/**
 * Returns the SHA-256 fingerprint of a certificate: 64 hexadecimal digits in lower case. Of a PEM text with several certificates, the first
 * is used. Throws when it has none.
 */
export function fingerprintOf(certificate: X509Certificate | string): string {
  const { fingerprint256 } = typeof certificate === 'string' ? new X509Certificate(certificate) : certificate
  return fingerprint256.replaceAll(':', '').toLowerCase()
}
