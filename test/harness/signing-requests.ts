/** Certificate signing requests with arbitrary, also invalid, parts. */
import { createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { bits, der, oid, sequence, tag } from '../../src/ca/der.ts'
import { distinguishedName, extension, objects, signatureAlgorithms } from '../../src/ca/objects.ts'
import { pemOf } from '../../src/identity/pem.ts'

/** The parts of a request. Omitted parts are valid. */
export interface RequestParts {
  readonly key?: KeyObject
  /** An encoded `SubjectPublicKeyInfo` in place of the key's own. */
  readonly publicKey?: Buffer
  readonly version?: number
  readonly commonName?: string
  /** Subject alternative names, encoded. */
  readonly names?: readonly Buffer[]
  readonly extensions?: readonly Buffer[]
  /** Encoded attributes in place of those for names and extensions. */
  readonly attributes?: Buffer
  readonly algorithm?: Buffer
  /** Modifies the request after it was signed. */
  readonly garble?: (request: Buffer) => void
}

/** Keys that are shared by all tests. */
export const keys = {
  p256: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
  p384: generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey,
  rsa: generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
}

export const uri = (text: string): Buffer => der(0x86, Buffer.from(text, 'latin1'))
export const dns = (text: string): Buffer => der(0x82, Buffer.from(text, 'latin1'))
export const named = (...names: readonly Buffer[]): Buffer => extension(objects.subjectAltName, true, sequence(...names))

/** Encodes an extension request attribute. */
export const asksFor = (...extensions: readonly Buffer[]): Buffer => sequence(objects.extensionRequest, der(tag.set, sequence(...extensions)))

/** Requests the certificate of an authority. */
export const authority = extension(oid('2.5.29.19'), true, sequence(der(tag.boolean, Buffer.from([0xff]))))
/** Requests a key usage that permits signing certificates. */
export const certificateSigning = extension(oid('2.5.29.15'), true, der(tag.bitString, Buffer.from([1, 0x06])))

/** Encodes a request. */
export function requestBytes(parts: RequestParts = {}): Buffer {
  const key = parts.key ?? keys.p256
  const publicKey = parts.publicKey ?? createPublicKey(key).export({ type: 'spki', format: 'der' })
  const extensions = [...(parts.names ? [named(...parts.names)] : []), ...(parts.extensions ?? [])]
  const attributes = parts.attributes ?? (extensions.length > 0 ? asksFor(...extensions) : Buffer.alloc(0))
  const subject = distinguishedName(parts.commonName === undefined ? [] : [[objects.commonName, parts.commonName]])
  const body = sequence(der(tag.integer, Buffer.from([parts.version ?? 0])), subject, publicKey, der(0xa0, attributes))
  const known = signatureAlgorithms.find(({ keyType, hash }) => keyType === (key.asymmetricKeyType === 'rsa' ? 'rsa' : 'ec') && hash === 'sha256')
  const whole = sequence(body, parts.algorithm ?? (known?.encoded as Buffer), bits(sign('sha256', body, key)))
  parts.garble?.(whole)
  return whole
}

/** Encodes a request in PEM. */
export const requestPem = (parts: RequestParts = {}): string => pemOf('CERTIFICATE REQUEST', requestBytes(parts))
