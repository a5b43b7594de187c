/** Decodes configuration files: YAML may be written in UTF-8, UTF-16 or UTF-32 (YAML 1.2, section 5.2). */

import { documentTexts } from './yaml-documents.ts'

const utf8 = new TextDecoder('utf-8', { ignoreBOM: true })

/** Replaces bytes that are not valid in the file's encoding: a lone surrogate, which no field accepts. */
export const unreadable = '\uDC80'

/**
 * Decodes a file by its byte order mark, or by the position of zero bytes in the first character. Invalid bytes become a character that no
 * field accepts, so that only the documents that contain them are faulty.
 */
export function fileText(bytes: Uint8Array): string {
  const wide = wideCodingOf(bytes)
  if (wide) return lines(wideText(bytes, wide))
  const text = utf8.decode(bytes)
  // Most files contain no replacement character. Then there were no invalid bytes, and the check is skipped.
  return lines(text.includes('\uFFFD') && !isUtf8(bytes) ? text.replaceAll('\uFFFD', unreadable) : text)
}

/** UTF-16 or UTF-32: the number of bytes of a code unit, and whether it is little-endian. */
interface WideCoding {
  readonly unit: 2 | 4
  readonly isLittle: boolean
}

/**
 * Detects the encoding of a file that is not UTF-8. Without a byte order mark the zero bytes decide: in UTF-16 and UTF-32 every space,
 * colon and line end has some, while a few zero bytes elsewhere are errors in UTF-8.
 */
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

/** Whether most line feeds are units of two bytes. In text with few other ASCII characters nothing else identifies UTF-16. */
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

/** Whether a number is a Unicode scalar value. Surrogates are valid only as code units of UTF-16. */
const isCharacter = (code: number): boolean => code <= 0x10ffff && (code < 0xd800 || code > 0xdfff)

/**
 * Converts lone carriage returns, which also end a line (YAML 1.2, section 5.4), to line feeds, because the YAML library does not recognise
 * them.
 */
const lines = (text: string): string => (text.includes('\r') ? text.replace(/\r(?!\n)/g, '\n') : text)

function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return true
  } catch {
    return false
  }
}

/** Returns the first line with bytes that are no characters of the file's encoding, by the number of the document that has it. */
export function undecodedLines(content: string): ReadonlyMap<number, number> {
  if (!content.includes(unreadable)) return new Map()
  return new Map(
    documentTexts(content).flatMap(({ text, line }, index) => {
      const at = text.indexOf(unreadable)
      return at < 0 ? [] : [[index + 1, line + text.slice(0, at).split('\n').length] as const]
    }),
  )
}
