/** Encodings, digests and JSON. */
import { createCipheriv, createDecipheriv, createHash } from 'node:crypto'
import type { Budget } from '../budget.ts'
import { type Functions, templateFunction } from '../function.ts'
import { type JsonStyle, toJson } from '../printed.ts'
import { bytesOf, fail, fromGoJson, TemplateError, textOf, type Value } from '../values.ts'

/** Returns random bytes. */
export type Random = (count: number) => Buffer

const digest = (algorithm: string) => templateFunction(['string'], (_, text) => createHash(algorithm).update(bytesOf(text)).digest('hex'))

function adler32(text: string): string {
  let [one, two] = [1, 0]
  for (const byte of bytesOf(text)) {
    one = (one + byte) % 65521
    two = (two + one) % 65521
  }
  return String(two * 65536 + one)
}

const letters32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'

function base32(bytes: Buffer): string {
  const parts: string[] = []
  for (let at = 0; at < bytes.length; at += 5) {
    const group = bytes.subarray(at, at + 5)
    const bits = [...group].map((byte) => byte.toString(2).padStart(8, '0')).join('')
    const text = (bits.match(/.{1,5}/g) ?? []).map((five) => letters32[Number.parseInt(five.padEnd(5, '0'), 2)]).join('')
    parts.push(text.padEnd(8, '='))
  }
  return parts.join('')
}

const illegal = (name: string, at: number): string => `illegal ${name} data at input byte ${at}`

/** Decodes base64. Of what is none, returns the error's text with the position that Go's decoder reports. */
export function bytesOf64(text: string): Buffer | string {
  const bytes = bytesOf(text)
  const isBreak = (byte: number | undefined) => byte === 10 || byte === 13
  let [at, inGroup] = [0, 0]
  while (at < bytes.length) {
    const letter = String.fromCharCode(bytes[at++] as number)
    if (/^[A-Za-z0-9+/]$/.test(letter)) inGroup = (inGroup + 1) % 4
    else if (letter === '=') {
      if (inGroup < 2) return illegal('base64', at - 1)
      if (inGroup === 2) {
        while (isBreak(bytes[at])) at++
        if (at === bytes.length) return illegal('base64', at)
        if (bytes[at++] !== 61) return illegal('base64', at - 2)
      }
      while (isBreak(bytes[at])) at++
      return at < bytes.length ? illegal('base64', at) : Buffer.from(text, 'base64')
    } else if (letter !== '\n' && letter !== '\r') return illegal('base64', at - 1)
  }
  return inGroup > 0 ? illegal('base64', at - inGroup) : Buffer.from(text, 'base64')
}

/** Decodes base64. What is none becomes the error's text, as in Go. */
function decoded64(text: string): string {
  const bytes = bytesOf64(text)
  return typeof bytes === 'string' ? bytes : textOf(bytes)
}

/** Decodes base32, in the same way. */
function decoded32(text: string): string {
  const bare = bytesOf(text)
    .toString('latin1')
    .replaceAll(/[\r\n]/g, '')
  const body = /^[A-Z2-7]*/.exec(bare)?.[0] ?? ''
  const rest = bare.slice(body.length)
  const last = body.length % 8
  if (rest === '' && last > 0) return illegal('base32', body.length - last)
  if (rest !== '') {
    if (!rest.startsWith('=') || last < 2 || rest.length > 8) return illegal('base32', body.length)
    if (rest.length < 8 - last) return illegal('base32', bare.length)
    const bad = rest.slice(0, 8 - last).search(/[^=]/)
    if (bad >= 0) return illegal('base32', body.length + bad - 1)
    if ([1, 3, 6].includes(last)) return illegal('base32', body.length)
  }
  const bits = [...body].map((letter) => letters32.indexOf(letter).toString(2).padStart(5, '0')).join('')
  return textOf(Buffer.from((bits.match(/.{8}/g) ?? []).map((eight) => Number.parseInt(eight, 2))))
}

/** The key of the cipher: the first 32 bytes of a password, filled with zeros. */
const keyOf = (password: string): Buffer => Buffer.concat([bytesOf(password), Buffer.alloc(32)]).subarray(0, 32)

function encrypted(random: Random, password: string, text: string): string {
  if (text === '') return ''
  const iv = random(16)
  const cipher = createCipheriv('aes-256-cbc', keyOf(password), iv)
  return Buffer.concat([iv, cipher.update(bytesOf(text)), cipher.final()]).toString('base64')
}

function decrypted(password: string, text: string): string {
  if (text === '') return ''
  const bytes = bytesOf64(text)
  if (typeof bytes === 'string') return fail(bytes)
  if (bytes.length < 32 || bytes.length % 16 !== 0) return fail('the encrypted text is not a whole number of blocks')
  const cipher = createDecipheriv('aes-256-cbc', keyOf(password), bytes.subarray(0, 16)).setAutoPadding(false)
  const padded = Buffer.concat([cipher.update(bytes.subarray(16)), cipher.final()])
  // As in Go, only the last byte of the padding is read.
  const length = padded.length - (padded.at(-1) as number)
  return length < 0 ? fail('the text was not encrypted with this password') : textOf(padded.subarray(0, length))
}

/** JSON, or what `otherwise` says where a value has none. */
const json = (style: JsonStyle, isStrict: boolean) =>
  templateFunction(['any'], (budget, value) => {
    try {
      return toJson(value, budget, style)
    } catch (error) {
      if (!isStrict && error instanceof TemplateError && error.message.startsWith('json:')) return ''
      throw error
    }
  })

/** Decodes JSON as Go does: numbers become floats. */
function parsed(budget: Budget, text: string): Value {
  // Every element of a document has a comma or a bracket of its own.
  budget.make(text.match(/[,[{]/g)?.length ?? 0)
  let found: unknown
  try {
    checkDepth(budget, text)
    found = JSON.parse(text)
  } catch (error) {
    if (error instanceof TemplateError) throw error
    return fail('json: the text is not JSON')
  }
  return fromGoJson(found)
}

/** Checks the depth before the document is read, which recurses. In one pass: a text that does not end is looked at once. */
function checkDepth(budget: Budget, text: string): void {
  let depth = 0
  let isText = false
  for (let at = 0; at < text.length; at++) {
    const mark = text[at]
    if (isText && mark === '\\') at++
    else if (mark === '"') isText = !isText
    else if (isText) continue
    else if (mark === '[' || mark === '{') budget.deep(++depth)
    else if (mark === ']' || mark === '}') depth--
  }
}

/** The functions by name. */
export const encodingFunctions = (random: Random): Functions =>
  new Map(
    Object.entries({
      sha1sum: digest('sha1'),
      sha256sum: digest('sha256'),
      sha512sum: digest('sha512'),
      adler32sum: templateFunction(['string'], (_, text) => adler32(text)),
      b64enc: templateFunction(['string'], (_, text) => bytesOf(text).toString('base64')),
      b64dec: templateFunction(['string'], (_, text) => decoded64(text)),
      b32enc: templateFunction(['string'], (_, text) => base32(bytesOf(text))),
      b32dec: templateFunction(['string'], (_, text) => decoded32(text)),
      encryptAES: templateFunction(['string', 'string'], (_, password, text) => encrypted(random, password, text)),
      decryptAES: templateFunction(['string', 'string'], (_, password, text) => decrypted(password, text)),
      toJson: json({ isHtml: true }, false),
      mustToJson: json({ isHtml: true }, true),
      toPrettyJson: json({ isHtml: true, indent: '  ' }, false),
      mustToPrettyJson: json({ isHtml: true, indent: '  ' }, true),
      toRawJson: json({ isHtml: false }, true),
      mustToRawJson: json({ isHtml: false }, true),
      fromJson: templateFunction(['string'], (budget, text) => {
        try {
          return parsed(budget, text)
        } catch (error) {
          if (error instanceof TemplateError && error.message.startsWith('json:')) return null
          throw error
        }
      }),
      mustFromJson: templateFunction(['string'], parsed),
    }),
  )
