/**
 * ASN.1 values of key stores, read and encoded by node-forge. Unlike the reader of requests and certificates (`src/ca/der.ts`) it accepts
 * BER, which Windows and older Java write. Bytes are strings of one character a byte in node-forge, and buffers outside this file.
 */
import forge from 'node-forge'
import { KeyStoreFault } from './fault.ts'

const { asn1 } = forge

/** A value that was read or is to be encoded. */
export type Value = forge.asn1.Asn1

/** The maximum depth of values in each other. Key stores need about twelve. */
const maxDepth = 32

type FromDer = (bytes: string, options: { strict: boolean; decodeBitStrings: boolean; maxDepth: number }) => Value

/** Parses one value. Throws {@link KeyStoreFault} when the bytes are none, go on after it, or are nested deeper than 32 values. */
export function readValue(bytes: Buffer, what: string): Value {
  try {
    // What a bit string holds is not looked at: the signature of an EC key would be taken for a structure and encoded anew.
    return (asn1.fromDer as unknown as FromDer)(bytes.toString('latin1'), { strict: true, decodeBitStrings: false, maxDepth })
  } catch {
    throw new KeyStoreFault(`${what} cannot be read: it is cut short, nested too deep, or no ASN.1`)
  }
}

/** Encodes a value in DER. */
export const encode = (value: Value): Buffer => Buffer.from(asn1.toDer(value).getBytes(), 'latin1')

const universal = (type: number, content: string | Value[]): Value => asn1.create(asn1.Class.UNIVERSAL, type, typeof content !== 'string', content)

export const sequence = (...parts: Value[]): Value => universal(asn1.Type.SEQUENCE, parts)
export const set = (...parts: Value[]): Value => universal(asn1.Type.SET, parts)
export const octets = (bytes: Buffer): Value => universal(asn1.Type.OCTETSTRING, bytes.toString('latin1'))
export const bmpString = (text: string): Value => universal(asn1.Type.BMPSTRING, text)
export const nothing = (): Value => universal(asn1.Type.NULL, '')
/** Encodes an integer from 0 to 2^31-1. */
export const integer = (value: number): Value => universal(asn1.Type.INTEGER, asn1.integerToDer(value).getBytes())
/** Encodes an object identifier in dotted form. */
export const oid = (dotted: string): Value => universal(asn1.Type.OID, asn1.oidToDer(dotted).getBytes())
/** Encodes values within the context-specific tag `[number]`. */
export const tagged = (number: number, ...parts: Value[]): Value => asn1.create(asn1.Class.CONTEXT_SPECIFIC, number, true, parts)
/** Encodes bytes with the context-specific tag `[number]`, in place of the tag of an octet string. */
export const taggedOctets = (number: number, bytes: Buffer): Value =>
  asn1.create(asn1.Class.CONTEXT_SPECIFIC, number, false, bytes.toString('latin1'))

/** Returns the members of a sequence, a set or a tagged value. Throws {@link KeyStoreFault} when the value is missing or none of these. */
export function membersOf(value: Value | undefined, what: string): readonly Value[] {
  if (value === undefined || !Array.isArray(value.value)) throw new KeyStoreFault(`${what} is not there, or is something else`)
  return value.value
}

/** Returns the value of an object identifier in dotted form. Throws {@link KeyStoreFault} when the value is missing or none. */
export function oidOf(value: Value | undefined, what: string): string {
  return asn1.derToOid(contentOf(value, asn1.Type.OID, what).toString('latin1'))
}

/** Returns the value of an integer from 0 to 2^47-1. Throws {@link KeyStoreFault} when the value is missing or another one. */
export function integerOf(value: Value | undefined, what: string): number {
  const content = contentOf(value, asn1.Type.INTEGER, what)
  if (content.length === 0 || content.length > 6 || (content[0] ?? 0) > 0x7f) throw new KeyStoreFault(`${what} is not a number of a size that can be`)
  return content.readUIntBE(0, content.length)
}

/**
 * Returns the bytes of an octet string, which may be in pieces (BER), or of one whose tag is replaced by `[number]`. Throws
 * {@link KeyStoreFault} when the value is missing or something else.
 */
export function octetsOf(value: Value | undefined, what: string, number?: number): Buffer {
  if (value === undefined) throw new KeyStoreFault(`${what} is not there`)
  const isTagged = value.tagClass === asn1.Class.CONTEXT_SPECIFIC && value.type === number
  if (!isTagged && (value.tagClass !== asn1.Class.UNIVERSAL || value.type !== asn1.Type.OCTETSTRING))
    throw new KeyStoreFault(`${what} is not a sequence of bytes`)
  return Array.isArray(value.value) ? Buffer.concat(value.value.map((piece) => octetsOf(piece, what))) : Buffer.from(value.value, 'latin1')
}

/** Returns the member with the context-specific tag `[number]`, if there is one. */
export function taggedIn(members: readonly Value[], number: number): Value | undefined {
  return members.find(({ tagClass, type }) => tagClass === asn1.Class.CONTEXT_SPECIFIC && type === number)
}

/** Returns the text of a BMP string. Undefined when the value is missing or none. */
export function bmpStringOf(value: Value | undefined): string | undefined {
  return value?.type === asn1.Type.BMPSTRING && typeof value.value === 'string' ? value.value : undefined
}

/** Whether a value is a sequence. */
export const isSequence = (value: Value | undefined): boolean => value?.type === asn1.Type.SEQUENCE && value.tagClass === asn1.Class.UNIVERSAL

function contentOf(value: Value | undefined, type: number, what: string): Buffer {
  if (value === undefined || value.tagClass !== asn1.Class.UNIVERSAL || value.type !== type || typeof value.value !== 'string')
    throw new KeyStoreFault(`${what} is not there, or is something else`)
  return Buffer.from(value.value, 'latin1')
}
