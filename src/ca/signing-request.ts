/** Certificate signing requests (PKCS #10, RFC 2986): parses and checks them by docs/certificates.md, Q1 to Q7, and makes them. */
import { createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import { PemFault, pemOf, readPem } from '../identity/pem.ts'
import { bits, bitsOf, booleanOf, DerFault, DerReader, der, positive, sequence, tag } from './der.ts'
import { algorithmFor, distinguishedName, extension, objects, signatureAlgorithms } from './objects.ts'
import { type PublicKeyInfo, readPublicKey, weakness } from './public-key.ts'

/** The maximum size of a request, in bytes of PEM. A request for an RSA key of 4,096 bits has 1,700 bytes. */
export const largestRequest = 16_384
/** The maximum number of names in a request. */
const maxNames = 64

/** Thrown when a request is refused. The message is written for the sender of the request. */
export class RequestFault extends Error {}

/** A subject alternative name of a request (`GeneralName`). */
export interface AltName {
  readonly kind: 'URI' | 'DNS' | 'IP' | 'other'
  /** The text of a URI or a DNS name; the bytes of any other name in hexadecimal. */
  readonly value: string
  /** In DER. */
  readonly encoded: Buffer
}

/** The contents of a request. */
export interface SigningRequest {
  readonly publicKey: PublicKeyInfo
  readonly names: readonly AltName[]
  /** Whether the subject has a common name. */
  readonly hasCommonName: boolean
  /** Whether the subject has any name. */
  readonly hasSubject: boolean
  /** Whether it asks for extensions other than names, key usages and basic constraints. */
  readonly hasOthers: boolean
}

/**
 * Parses a request in PEM and verifies its signature. Throws {@link RequestFault} when the request cannot be parsed, asks for the
 * certificate of an authority, has a key that is not certified (docs/certificates.md, Q3), or has a signature that does not verify.
 */
export function readSigningRequest(pem: string): SigningRequest {
  try {
    return readWhole(derOf(pem))
  } catch (error) {
    if (error instanceof DerFault || error instanceof PemFault) throw new RequestFault(error.message)
    throw error
  }
}

function derOf(pem: string): Buffer {
  if (pem.length > largestRequest) throw new RequestFault(`the request has more than ${largestRequest} bytes`)
  const blocks = readPem(pem)
  const [block] = blocks
  if (!block || blocks.length > 1 || !/^(NEW )?CERTIFICATE REQUEST$/.test(block.label))
    throw new RequestFault('the request is not one CERTIFICATE REQUEST in PEM')
  return block.der
}

function readWhole(bytes: Buffer): SigningRequest {
  const request = DerReader.of(bytes, tag.sequence, 'the request')
  const body = request.take(tag.sequence, 'body')
  const algorithm = request.take(tag.sequence, 'algorithm').whole
  const signature = bitsOf(request.take(tag.bitString, 'signature'), 'the signature')
  request.end()

  const info = DerReader.of(body.whole, tag.sequence, 'the body of the request')
  const version = info.take(tag.integer, 'version').content
  if (version.length !== 1 || version[0] !== 0) throw new RequestFault('the request is of a version other than 1')
  const subject = info.take(tag.sequence, 'subject').content
  const hasCommonName = readSubject(subject)
  const publicKey = readPublicKey(info.take(tag.sequence, 'public key').whole)
  const attributes = info.optional(0xa0)
  info.end()
  const asked = attributes ? readAttributes(new DerReader(attributes.content, 'the attributes')) : { names: [], hasOthers: false }
  const weak = weakness(publicKey)
  if (weak !== undefined) throw new RequestFault(weak)
  checkSignature(body.whole, algorithm, signature, publicKey)
  return { publicKey, hasCommonName, hasSubject: subject.length > 0, ...asked }
}

function checkSignature(signed: Buffer, algorithm: Buffer, signature: Buffer, { encoded, kind }: PublicKeyInfo): void {
  const known = signatureAlgorithms.find((one) => one.encoded.equals(algorithm))
  if (!known) throw new RequestFault('the request is signed with an algorithm other than RSA and ECDSA with SHA-256, SHA-384 or SHA-512')
  let isGood = false
  try {
    isGood = kind.type === known.keyType && verify(known.hash, signed, keyOf(encoded), signature)
  } catch {
    // OpenSSL rejects the key, for example a point that is not on its curve.
  }
  if (!isGood) throw new RequestFault('the signature of the request does not verify with its own key')
}

const keyOf = (encoded: Buffer): KeyObject => createPublicKey({ key: encoded, format: 'der', type: 'spki' })

/** Whether a subject has a common name. */
function readSubject(content: Buffer): boolean {
  let hasCommonName = false
  for (const names = new DerReader(content, 'the subject'); !names.isDone; ) {
    const relative = names.structure(tag.set, 'relative name')
    while (!relative.isDone) {
      const attribute = relative.structure(tag.sequence, 'attribute of the subject')
      const id = attribute.take(tag.oid, 'name').whole
      const { content: text } = attribute.next()
      attribute.end()
      if (id.equals(objects.commonName)) hasCommonName ||= text.length > 0
    }
  }
  return hasCommonName
}

type Asked = Pick<SigningRequest, 'names' | 'hasOthers'>

function readAttributes(attributes: DerReader): Asked {
  let extensions: DerReader | undefined
  while (!attributes.isDone) {
    const attribute = attributes.structure(tag.sequence, 'attribute')
    const id = attribute.take(tag.oid, 'name').whole
    const values = attribute.structure(tag.set, 'values of an attribute')
    attribute.end()
    if (!id.equals(objects.extensionRequest)) continue
    if (extensions) throw new RequestFault('the request asks for extensions twice')
    extensions = values.structure(tag.sequence, 'list of extensions')
    values.end()
  }
  return extensions ? readExtensions(extensions) : { names: [], hasOthers: false }
}

/**
 * Returns the subject alternative names among the requested extensions. Throws {@link RequestFault} when an extension asks for an
 * authority. All other extensions are ignored and not granted.
 */
function readExtensions(extensions: DerReader): Asked {
  let names: readonly AltName[] = []
  let hasOthers = false
  const seen = new Set<string>()
  while (!extensions.isDone) {
    const one = extensions.structure(tag.sequence, 'extension')
    const id = one.take(tag.oid, 'name').whole
    const critical = one.optional(tag.boolean)
    if (critical) booleanOf(critical, 'the mark of an extension as critical')
    const value = one.take(tag.octetString, 'value').content
    one.end()
    const key = id.toString('hex')
    if (seen.has(key)) throw new RequestFault('the request asks for one extension twice')
    seen.add(key)
    if (id.equals(objects.subjectAltName)) names = readNames(value)
    else if (id.equals(objects.basicConstraints)) refuseAuthority(value)
    else if (id.equals(objects.keyUsage)) refuseSigningUsage(value)
    else hasOthers ||= !id.equals(objects.extendedKeyUsage)
  }
  return { names, hasOthers }
}

function refuseAuthority(value: Buffer): void {
  const constraints = DerReader.of(value, tag.sequence, 'the basic constraints')
  const isAuthority = constraints.optional(tag.boolean)
  if (isAuthority && booleanOf(isAuthority, 'the basic constraint'))
    throw new RequestFault('the request asks for the certificate of an authority (CA:TRUE)')
}

function refuseSigningUsage(value: Buffer): void {
  const [, first = 0] = new DerReader(value, 'the key usage').take(tag.bitString, 'key usage').content
  if ((first & 0x06) !== 0) throw new RequestFault('the request asks for a key that signs certificates or revocation lists')
}

const nameKinds: Readonly<Record<number, AltName['kind']>> = { 134: 'URI', 130: 'DNS', 135: 'IP' }

/** Reads a list of names (`GeneralNames` in DER). Throws {@link RequestFault} or `DerFault`. */
export function readNames(value: Buffer): readonly AltName[] {
  const found: AltName[] = []
  for (const names = DerReader.of(value, tag.sequence, 'the list of names'); !names.isDone; ) {
    const { tag: form, content, whole } = names.next()
    const kind = nameKinds[form] ?? 'other'
    const isText = kind === 'URI' || kind === 'DNS'
    if (isText && content.some((byte) => byte < 0x21 || byte > 0x7e))
      throw new RequestFault('a name that the request asks for has a character that is not printable ASCII')
    found.push({ kind, value: content.toString(isText ? 'latin1' : 'hex'), encoded: whole })
    if (found.length > maxNames) throw new RequestFault(`the request asks for more than ${maxNames} names`)
  }
  return found
}

/** A name for a request or a certificate: a URI or a DNS name as text, an IP address as its bytes. */
export type WantedName = { readonly uri: string } | { readonly dns: string } | { readonly address: Uint8Array }

/** Encodes names as `GeneralNames`. */
export function altNames(names: readonly WantedName[]): Buffer {
  const encoded = names.map((name) => {
    if ('uri' in name) return der(0x86, Buffer.from(name.uri, 'latin1'))
    return 'dns' in name ? der(0x82, Buffer.from(name.dns, 'latin1')) : der(0x87, name.address)
  })
  return sequence(...encoded)
}

/** Makes a signing request in PEM for a key pair, with an empty subject. `privateKey` is RSA, or ECDSA on P-256 or P-384. */
export function makeSigningRequest(privateKey: KeyObject, names: readonly WantedName[]): string {
  const publicKey = createPublicKey(privateKey).export({ type: 'spki', format: 'der' })
  const wanted = extension(objects.subjectAltName, true, altNames(names))
  const attributes = names.length === 0 ? [] : [sequence(objects.extensionRequest, der(tag.set, sequence(wanted)))]
  const body = sequence(positive(Buffer.from([0])), distinguishedName([]), publicKey, der(0xa0, ...attributes))
  const algorithm = algorithmFor(privateKey.asymmetricKeyType === 'rsa' ? 'rsa' : 'ec', privateKey.asymmetricKeyDetails?.namedCurve)
  return pemOf('CERTIFICATE REQUEST', sequence(body, algorithm.encoded, bits(sign(algorithm.hash, body, privateKey))))
}
