/** Textual encodings of X.509 structures (RFC 7468). */

/** A text that is not PEM of what it should be. */
export class PemFault extends Error {}

/** One encapsulated structure. */
export interface PemBlock {
  readonly label: string
  readonly der: Buffer
}

const begin = /-----BEGIN ([A-Z0-9 ]{1,64})-----/

/** All blocks of a text. Text around them is passed over. Throws {@link PemFault} when one is cut off or garbled. */
export function readPem(text: string): PemBlock[] {
  const blocks: PemBlock[] = []
  for (let rest = text; ; ) {
    const found = begin.exec(rest)
    if (!found) return blocks
    const label = found[1] as string
    const content = rest.slice(found.index + found[0].length)
    const end = content.indexOf(`-----END ${label}-----`)
    if (end < 0) throw new PemFault(`the ${label} has no end`)
    const base64 = content.slice(0, end).replace(/\s+/g, '')
    if (!/^[A-Za-z0-9+/]+={0,2}$/.test(base64) || base64.length % 4 !== 0) throw new PemFault(`the ${label} is not base64`)
    blocks.push({ label, der: Buffer.from(base64, 'base64') })
    rest = content.slice(end + label.length + 14)
  }
}

/** A structure as PEM, with a line break at the end. */
export function pemOf(label: string, bytes: Buffer): string {
  const base64 = bytes.toString('base64')
  let lines = `-----BEGIN ${label}-----\n`
  for (let at = 0; at < base64.length; at += 64) lines += `${base64.slice(at, at + 64)}\n`
  return `${lines}-----END ${label}-----\n`
}
