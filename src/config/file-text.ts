/** Bytes of a configuration file as text: YAML is written in UTF-8, UTF-16 or UTF-32 (YAML 1.2, section 5.2). */

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true })

/** Stands where bytes are none of the file's characters: half a surrogate pair, which no field takes. */
const unreadable = '\uDC80'

/**
 * Reads bytes by their byte order mark, or by where the zeros stand in the first character. Bytes that are no characters become something that no field
 * takes, so that they cost the documents in which they stand.
 */
export function fileText(bytes: Uint8Array): string {
  const wide = wideCodingOf(bytes)
  if (wide) return lines(wideText(bytes, wide))
  const text = utf8.decode(bytes)
  // Most files hold no replacement character: then there was nothing to replace.
  return lines(text.includes('\uFFFD') && !isUtf8(bytes) ? text.replaceAll('\uFFFD', unreadable) : text)
}

/** UTF-16 or UTF-32 by the bytes of a unit, and which end of it comes first. */
interface WideCoding {
  readonly unit: 2 | 4
  readonly isLittle: boolean
}

/** The coding of a file that is not UTF-8. Without a mark every space, colon and end of a line has zeros: a few zeros elsewhere are mistakes in UTF-8. */
function wideCodingOf(bytes: Uint8Array): WideCoding | undefined {
  const [first, second, third, fourth] = bytes
  const begins = (...mark: readonly number[]) => mark.every((byte, at) => bytes[at] === byte)
  if (begins(0xff, 0xfe, 0, 0)) return { unit: 4, isLittle: true }
  if (begins(0, 0, 0xfe, 0xff)) return { unit: 4, isLittle: false }
  if (begins(0xff, 0xfe)) return { unit: 2, isLittle: true }
  if (begins(0xfe, 0xff)) return { unit: 2, isLittle: false }
  if (first === undefined || second === undefined || (first !== 0 && second !== 0 && third !== 0)) return undefined
  const zeros = bytes.reduce((sum, byte) => sum + (byte === 0 ? 1 : 0), 0) / bytes.length
  const isQuad = zeros >= 1 / 4 && third !== undefined && fourth !== undefined
  if (isQuad && first !== 0 && second === 0 && third === 0 && fourth === 0) return { unit: 4, isLittle: true }
  if (isQuad && first === 0 && second === 0 && third === 0 && fourth !== 0) return { unit: 4, isLittle: false }
  if ((first === 0) === (second === 0)) return undefined
  const coding: WideCoding = { unit: 2, isLittle: second === 0 }
  return zeros >= 1 / 16 || endsLines(bytes, coding) ? coding : undefined
}

/** Whether most line feeds are units of two bytes: in text of few other ASCII characters nothing else tells UTF-16. */
function endsLines(bytes: Uint8Array, { isLittle }: WideCoding): boolean {
  let units = 0
  let others = 0
  for (let at = bytes.indexOf(0x0a); at >= 0; at = bytes.indexOf(0x0a, at + 1)) {
    const isUnit = isLittle ? at % 2 === 0 && bytes[at + 1] === 0 : at % 2 === 1 && bytes[at - 1] === 0
    if (isUnit) units++
    else others++
  }
  return units > others
}

function wideText(bytes: Uint8Array, { unit, isLittle }: WideCoding): string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const whole = bytes.length - (bytes.length % unit)
  const text: string[] = []
  for (let at = 0; at < whole; ) {
    const units: number[] = []
    for (; at < whole && units.length < 8192; at += unit) units.push(unit === 2 ? view.getUint16(at, isLittle) : view.getUint32(at, isLittle))
    text.push(
      unit === 2 ? String.fromCharCode(...units) : units.map((code) => (isCharacter(code) ? String.fromCodePoint(code) : unreadable)).join(''),
    )
  }
  return text.join('') + (whole < bytes.length ? unreadable : '')
}

/** Whether a number is a character of Unicode: surrogates are halves of characters in UTF-16 alone. */
const isCharacter = (code: number): boolean => code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)

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
