/**
 * The distinguished encoding rules of ASN.1 (X.690), as far as certificates and requests for them need: short tags, definite lengths in
 * their shortest form. Nothing is decoded that nobody asks for, and nothing is recursive: depth is that of the reading code.
 */

/** Tags of the universal class, and of structures; context-specific ones are 0x80 and the number, 0xa0 for structures. */
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

/** Bytes that are not what they should be. The message says what and where, in words of the structure that is read. */
export class DerFault extends Error {}

/** One value: views into the bytes that are read. */
export interface DerValue {
  readonly tag: number
  readonly content: Buffer
  /** Tag and length included. */
  readonly whole: Buffer
}

/** Reads the values of a structure one after the other. */
export class DerReader {
  readonly #bytes: Buffer
  readonly #what: string
  #at = 0

  /** `what` names the structure in messages. */
  constructor(bytes: Buffer, what: string) {
    this.#bytes = bytes
    this.#what = what
  }

  /** Reads bytes that hold one structure and nothing else. */
  static of(bytes: Buffer, wanted: number, what: string): DerReader {
    const outer = new DerReader(bytes, what)
    const { content } = outer.take(wanted, what)
    outer.end()
    return new DerReader(content, what)
  }

  get isDone(): boolean {
    return this.#at === this.#bytes.length
  }

  /** The tag of the next value; undefined at the end. */
  get tag(): number | undefined {
    return this.#bytes[this.#at]
  }

  /** The next value, whatever it is. Throws {@link DerFault} at the end and where it is cut short or not encoded as it must be. */
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

  /** The next value, which must have this tag. */
  take(wanted: number, what: string): DerValue {
    if (this.tag !== wanted) throw new DerFault(this.isDone ? `${this.#what} has no ${what}` : `${this.#what} has something else instead of ${what}`)
    return this.next()
  }

  /** Reads the next value as a structure. */
  structure(wanted: number, what: string): DerReader {
    return new DerReader(this.take(wanted, what).content, what)
  }

  /** The next value when it has this tag; else undefined, and nothing is read. */
  optional(wanted: number): DerValue | undefined {
    return this.tag === wanted ? this.next() : undefined
  }

  /** Throws when something is left. */
  end(): void {
    if (!this.isDone) throw new DerFault(`${this.#what} has more in it than it may`)
  }
}

/** The bytes of a bit string whose length is whole bytes. */
export function bitsOf({ content }: DerValue, what: string): Buffer {
  if (content[0] !== 0) throw new DerFault(`${what} is not a whole number of bytes`)
  return content.subarray(1)
}

/** A boolean. */
export function booleanOf({ content }: DerValue, what: string): boolean {
  if (content.length !== 1 || (content[0] !== 0 && content[0] !== 0xff)) throw new DerFault(`${what} is neither true nor false`)
  return content[0] === 0xff
}

/** The bytes of an integer above zero, without a leading zero. */
export function positiveOf({ content }: DerValue, what: string): Buffer {
  const [first = 0x80, second = 0x80] = content
  if (first > 0x7f) throw new DerFault(`${what} is not above zero`)
  if (first !== 0) return content
  // A zero stands in front only where the number would be negative without it.
  if (second < 0x80 || content.length < 2) throw new DerFault(`${what} is not above zero, or not in its shortest form`)
  return content.subarray(1)
}

/** The Unix time of a `Time` in milliseconds. */
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

/** A value of this tag around others that are encoded. */
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

/** An object identifier from its dotted form. */
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

/** An integer above zero from its bytes, largest first. */
export function positive(bytes: Uint8Array): Buffer {
  let start = 0
  while (start < bytes.length - 1 && bytes[start] === 0) start++
  const digits = bytes.subarray(start)
  return (digits[0] ?? 0) > 0x7f ? der(tag.integer, zero, digits) : der(tag.integer, digits)
}

/** A bit string of whole bytes. */
export const bits = (bytes: Uint8Array): Buffer => der(tag.bitString, zero, bytes)

/** The `Time` of a Unix time in milliseconds, whole seconds: a UTCTime until 2049 (RFC 5280, 4.1.2.5). */
export function time(at: number): Buffer {
  const iso = new Date(at).toISOString()
  const rest = `${iso.slice(5, 7)}${iso.slice(8, 10)}${iso.slice(11, 13)}${iso.slice(14, 16)}${iso.slice(17, 19)}Z`
  const year = iso.slice(0, 4)
  return year < '2050' ? der(tag.utcTime, Buffer.from(year.slice(2) + rest, 'latin1')) : der(tag.generalizedTime, Buffer.from(year + rest, 'latin1'))
}
