/**
 * Reads and writes the distinguished encoding rules of ASN.1 (X.690), as far as certificates and signing requests need them: single-byte
 * tags, and definite lengths in their shortest form. Values are decoded on demand, and the reader does not recurse: the caller decides how
 * deep to read.
 */

/**
 * Tags of the universal class, constructed where the type is. Context-specific tags are 0x80 plus the number, 0xa0 plus the number for
 * constructed values.
 */
export const tag = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  oid: 0x06,
  utf8String: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const

/** Thrown for bytes that violate the encoding or the expected structure. The message names the structure and the violation. */
export class DerFault extends Error {}

/** One encoded value. The buffers are views into the bytes that are read. */
export interface DerValue {
  readonly tag: number
  readonly content: Buffer
  /** Tag and length included. */
  readonly whole: Buffer
}

/** Reads the values of a structure in sequence. */
export class DerReader {
  readonly #bytes: Buffer
  readonly #what: string
  #at = 0

  /** `what` names the structure in error messages. */
  constructor(bytes: Buffer, what: string) {
    this.#bytes = bytes
    this.#what = what
  }

  /**
   * Returns a reader of the contents of a structure with the tag `wanted`. Throws {@link DerFault} when `bytes` hold anything else or
   * anything more.
   */
  static of(bytes: Buffer, wanted: number, what: string): DerReader {
    const outer = new DerReader(bytes, what)
    const { content } = outer.take(wanted, what)
    outer.end()
    return new DerReader(content, what)
  }

  get isDone(): boolean {
    return this.#at === this.#bytes.length
  }

  /** The tag of the next value. Undefined at the end. */
  get tag(): number | undefined {
    return this.#bytes[this.#at]
  }

  /** Reads the next value of any tag. Throws {@link DerFault} at the end, when the value is truncated, and when its encoding is not DER. */
  next(): DerValue {
    const bytes = this.#bytes
    const start = this.#at
    const first = bytes[start]
    const short = bytes[start + 1]
    if (first === undefined || short === undefined) throw new DerFault(`${this.#what} is cut short`)
    if ((first & 0x1f) === 0x1f) throw new DerFault(`${this.#what} has a tag that nothing in it can have`)
    let at = start + 2
    let length: number = short
    if (short > 0x7f) {
      const digits = short & 0x7f
      if (digits === 0 || digits > 3) throw new DerFault(`${this.#what} has a length that cannot be`)
      length = 0
      for (const end = at + digits; at < end; at++) length = length * 256 + (bytes[at] ?? 0)
      if (length < 0x80 || length < 256 ** (digits - 1)) throw new DerFault(`${this.#what} has a length that is not in its shortest form`)
    }
    const end = at + length
    if (end > bytes.length) throw new DerFault(`${this.#what} is cut short`)
    this.#at = end
    return { tag: first, content: bytes.subarray(at, end), whole: bytes.subarray(start, end) }
  }

  /** Reads the next value. Throws {@link DerFault} when its tag is not `wanted`. */
  take(wanted: number, what: string): DerValue {
    if (this.tag !== wanted) throw new DerFault(this.isDone ? `${this.#what} has no ${what}` : `${this.#what} has something else instead of ${what}`)
    return this.next()
  }

  /** Returns a reader of the contents of the next value, which must have the tag `wanted`. */
  structure(wanted: number, what: string): DerReader {
    return new DerReader(this.take(wanted, what).content, what)
  }

  /** Reads the next value if its tag is `wanted`. Otherwise returns undefined and reads nothing. */
  optional(wanted: number): DerValue | undefined {
    return this.tag === wanted ? this.next() : undefined
  }

  /** Throws {@link DerFault} when bytes are left. */
  end(): void {
    if (!this.isDone) throw new DerFault(`${this.#what} has more in it than it may`)
  }
}

/** Returns the bytes of a bit string. Throws {@link DerFault} when its length is not a whole number of bytes. */
export function bitsOf({ content }: DerValue, what: string): Buffer {
  if (content[0] !== 0) throw new DerFault(`${what} is not a whole number of bytes`)
  return content.subarray(1)
}

/** Decodes a boolean. */
export function booleanOf({ content }: DerValue, what: string): boolean {
  if (content.length !== 1 || (content[0] !== 0 && content[0] !== 0xff)) throw new DerFault(`${what} is neither true nor false`)
  return content[0] === 0xff
}

/** Returns the bytes of an integer above zero, without the leading zero byte of its encoding. */
export function positiveOf({ content }: DerValue, what: string): Buffer {
  const [first = 0x80, second = 0x80] = content
  if (first > 0x7f) throw new DerFault(`${what} is not above zero`)
  if (first !== 0) return content
  // DER allows a leading zero byte only where the integer would be negative without it.
  if (second < 0x80 || content.length < 2) throw new DerFault(`${what} is not above zero, or not in its shortest form`)
  return content.subarray(1)
}

/** Returns the Unix time of a `Time` (UTCTime or GeneralizedTime), in milliseconds. */
export function timeOf({ tag: form, content }: DerValue, what: string): number {
  const text = content.toString('latin1')
  const [, year = '', month, day, hour, minute, second] =
    (form === tag.utcTime
      ? /^(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})Z$/
      : form === tag.generalizedTime
        ? /^(\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})Z$/
        : /^$/
    ).exec(text) ?? []
  const full = year.length === 2 ? Number(year) + (Number(year) < 50 ? 2000 : 1900) : Number(year)
  const time = month === undefined ? Number.NaN : Date.UTC(full, Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second))
  if (Number.isNaN(time)) throw new DerFault(`${what} is not a time`)
  return time
}

/** Encodes a value with the tag `form` and the concatenation of `parts`, which are encoded, as its contents. */
export function der(form: number, ...parts: readonly Uint8Array[]): Buffer {
  let length = 0
  for (const part of parts) length += part.length
  const head = length < 0x80 ? 2 : length < 0x100 ? 3 : length < 0x10000 ? 4 : 5
  const value = Buffer.allocUnsafe(head + length)
  value[0] = form
  value[1] = head === 2 ? length : 0x7e + head
  for (let at = head - 1, rest = length; at > 1; at--, rest >>= 8) value[at] = rest & 0xff
  let at = head
  for (const part of parts) {
    value.set(part, at)
    at += part.length
  }
  return value
}

export const sequence = (...parts: readonly Uint8Array[]): Buffer => der(tag.sequence, ...parts)

/** Encodes an object identifier given in dotted form. */
export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...others] = dotted.split('.').map(Number)
  const bytes = [first * 40 + second, ...others].flatMap((arc) => {
    const digits = [arc & 0x7f]
    for (let rest = Math.floor(arc / 128); rest > 0; rest = Math.floor(rest / 128)) digits.unshift((rest & 0x7f) | 0x80)
    return digits
  })
  return der(tag.oid, Buffer.from(bytes))
}

const zero = Buffer.from([0])

/** Encodes an integer above zero. `bytes` are its digits in big-endian order. */
export function positive(bytes: Uint8Array): Buffer {
  let start = 0
  while (start < bytes.length - 1 && bytes[start] === 0) start++
  const digits = bytes.subarray(start)
  return (digits[0] ?? 0) > 0x7f ? der(tag.integer, zero, digits) : der(tag.integer, digits)
}

/** Encodes a bit string of whole bytes. */
export const bits = (bytes: Uint8Array): Buffer => der(tag.bitString, zero, bytes)

/**
 * Encodes a Unix time in milliseconds as a `Time`, rounded down to whole seconds: UTCTime from 1950 to 2049, else GeneralizedTime (RFC
 * 5280, 4.1.2.5).
 */
export function time(at: number): Buffer {
  const iso = new Date(at).toISOString()
  const rest = `${iso.slice(5, 7)}${iso.slice(8, 10)}${iso.slice(11, 13)}${iso.slice(14, 16)}${iso.slice(17, 19)}Z`
  const year = iso.slice(0, 4)
  return year >= '1950' && year < '2050'
    ? der(tag.utcTime, Buffer.from(year.slice(2) + rest, 'latin1'))
    : der(tag.generalizedTime, Buffer.from(year + rest, 'latin1'))
}
