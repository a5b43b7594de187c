/** Bytes of a configuration file as text: YAML is written in UTF-8 or UTF-16 (YAML 1.2, section 5.2). */

/** Either the text, or why there is none. */
export type FileText = { readonly text: string } | { readonly fault: string }

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true })

/** Stands where bytes are no UTF-8: half a surrogate pair, which no field takes. */
const unreadable = '\uDC80'

/**
 * Reads bytes by their byte order mark, or by where the zeros stand in the first character. Bytes that are no UTF-8 become something that no field
 * takes, so that they cost the documents in which they stand.
 */
export function fileText(bytes: Uint8Array): FileText {
  const [first, second, third, fourth] = bytes
  if ((first === 0xff && second === 0xfe && third === 0 && fourth === 0) || (first === 0 && second === 0 && third === 0xfe && fourth === 0xff))
    return { fault: 'is written in UTF-32; UTF-8 and UTF-16 can be read' }
  if ((first === 0xff && second === 0xfe) || (first !== 0 && second === 0)) return utf16(bytes, true)
  if ((first === 0xfe && second === 0xff) || (first === 0 && second !== undefined && second !== 0)) return utf16(bytes, false)
  const text = utf8.decode(bytes)
  // Most files hold no replacement character: then there was nothing to replace.
  return { text: lines(text.includes('\uFFFD') && !isUtf8(bytes) ? text.replaceAll('\uFFFD', unreadable) : text) }
}

function utf16(bytes: Uint8Array, isLittle: boolean): FileText {
  if (bytes.length % 2 === 1) return { fault: 'is written in UTF-16 and ends within a character' }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const text: string[] = []
  for (let at = 0; at < bytes.length; ) {
    const units: number[] = []
    for (; at < bytes.length && units.length < 8192; at += 2) units.push(view.getUint16(at, isLittle))
    text.push(String.fromCharCode(...units))
  }
  return { text: lines(text.join('')) }
}

/** A carriage return by itself ends a line too (YAML 1.2, section 5.4), which the library does not know. */
const lines = (text: string): string => (text.includes('\r') ? text.replace(/\r(?!\n)/g, '\n') : text)

function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return true
  } catch {
    return false
  }
}
