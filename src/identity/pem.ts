/** Certificates in PEM (RFC 7468). */
import { X509Certificate } from 'node:crypto'

/** All certificates of a PEM text, of which there is at least one. Throws when one of them is cut off or garbled. */
export function certificatesOf(text: string): X509Certificate[] {
  const begun = text.match(/^-----BEGIN [A-Z0-9 ]*CERTIFICATE-----/gm)?.length ?? 0
  const blocks = text.match(/^-----BEGIN [A-Z0-9 ]*CERTIFICATE-----[^-]*-----END [A-Z0-9 ]*CERTIFICATE-----/gm) ?? []
  if (begun === 0) throw new Error('holds no certificate in PEM')
  if (blocks.length < begun) throw new Error('ends within a certificate')
  return blocks.map((block) => new X509Certificate(block))
}

/** SHA-256 fingerprint of a certificate: 64 hexadecimal digits in lower case. Of a PEM text with several the first counts. Throws when it has none. */
export function fingerprintOf(certificate: X509Certificate | string): string {
  const { fingerprint256 } = typeof certificate === 'string' ? new X509Certificate(certificate) : certificate
  return fingerprint256.replaceAll(':', '').toLowerCase()
}
