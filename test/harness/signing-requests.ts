/** Certificate signing requests as nobody honest makes them: each part can be another. */
import { createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'
import { bits, der, oid, sequence, tag } from '../../src/ca/der.ts'
import { distinguishedName, extension, objects, signatureAlgorithms } from '../../src/ca/objects.ts'
import { pemOf } from '../../src/identity/pem.ts'

/** Parts of a request; what is left out is as it should be. */
export interface RequestParts {
  readonly key?: KeyObject
  /** Encoded `SubjectPublicKeyInfo` instead of that of the key. */
  readonly publicKey?: Buffer
  readonly version?: number
  readonly commonName?: string
  /** Encoded names. */
  readonly names?: readonly Buffer[]
  readonly extensions?: readonly Buffer[]
  /** Encoded attributes instead of those of the names and extensions. */
  readonly attributes?: Buffer
  readonly algorithm?: Buffer
  /** Changes the signed bytes after they were signed. */
  readonly garble?: (request: Buffer) => void
}

/** Keys that are made once for all tests. */
export const keys = {
  p256: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey,
  p384: generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey,
  rsa: generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
}

export const uri = (text: string): Buffer => der(0x86, Buffer.from(text, 'latin1'))
export const dns = (text: string): Buffer => der(0x82, Buffer.from(text, 'latin1'))
export const named = (...names: readonly Buffer[]): Buffer => extension(objects.subjectAltName, true, sequence(...names))

/** An attribute of a request that asks for extensions. */
export const asksFor = (...extensions: readonly Buffer[]): Buffer => sequence(objects.extensionRequest, der(tag.set, sequence(...extensions)))

/** Asks for the certificate of an authority. */
export const authority = extension(oid('2.5.29.19'), true, sequence(der(tag.boolean, Buffer.from([0xff]))))
/** Asks for a key that signs certificates. */
export const certificateSigning = extension(oid('2.5.29.15'), true, der(tag.bitString, Buffer.from([1, 0x06])))

/** A request, encoded. */
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

/** A request in PEM. */
export const requestPem = (parts: RequestParts = {}): string => pemOf('CERTIFICATE REQUEST', requestBytes(parts))
