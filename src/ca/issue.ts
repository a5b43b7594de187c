/** Makes the kinds of certificates that the authority issues (docs/certificates.md, L1 to L8). */
import { createPublicKey, type KeyObject } from 'node:crypto'
import { parseWorkload, type Workload } from '../identity/spiffe-id.ts'
import { vouchedExtension } from '../identity/vouched.ts'
import { type Certificate, keyIdOf, makeCertificate, type SigningKey, signingKey } from './certificate.ts'
import { der, sequence, tag } from './der.ts'
import type { Validity } from './lifetime.ts'
import { authorityConstraints, authorityUsage, bothEnds, distinguishedName, extension, leafConstraints, leafUsage, objects } from './objects.ts'
import { readPublicKey } from './public-key.ts'
import { type AltName, altNames, RequestFault, readSigningRequest, type SigningRequest } from './signing-request.ts'

/** The maximum length of a common name and of an organization, in characters (RFC 5280, ub-common-name and ub-organization-name). */
const longestName = 64

/** Thrown when the identity of the caller is not the SPIFFE id of a workload. */
export class IdentityFault extends Error {}

/** The fields of a certificate that the authority decides: validity and serial number. */
export interface Grant extends Validity {
  /** Sixteen random bytes. */
  readonly serial: Buffer
}

/**
 * Makes the certificate of a workload. Its name is the caller's identity; names in the request are checked and not copied. Throws {@link
 * RequestFault} when the request cannot be parsed or asks for something that is not permitted, {@link IdentityFault} when `identity` is not
 * the SPIFFE id of a workload. `cluster`: the other cluster that vouches for the identity, which the certificate names.
 */
export function issueWorkload(request: string, identity: string, grant: Grant, signer: SigningKey, cluster?: string): Buffer {
  const workload = parseWorkload(identity)
  if (!workload) throw new IdentityFault(`${JSON.stringify(identity.slice(0, 200))} is not the identity of a workload`)
  const read = readSigningRequest(request)
  checkNames(read.names, workload)
  const commonName = read.hasCommonName && identity.length <= longestName ? identity : undefined
  const vouched = cluster === undefined ? none : extension(vouchedExtension, false, der(tag.utf8String, Buffer.from(cluster)))
  return leaf(read, commonName, altNames([{ uri: identity }]), grant, signer, vouched)
}

/**
 * Makes the serving certificate of this process, with the DNS names and IP addresses of the request. Throws {@link RequestFault} when the
 * request cannot be parsed, contains no name, or contains a name of another kind.
 */
export function issueServing(request: string, grant: Grant, signer: SigningKey): Buffer {
  const read = readSigningRequest(request)
  if (read.names.length === 0) throw new RequestFault('the request names no host')
  const other = read.names.find(({ kind }) => kind !== 'DNS' && kind !== 'IP')
  if (other) throw new RequestFault(`the request of a server names something other than hosts (${other.kind})`)
  return leaf(read, undefined, sequence(...read.names.map(({ encoded }) => encoded)), grant, signer)
}

const none: Buffer = Buffer.alloc(0)
const noName = distinguishedName([])
const ofLeaves = Buffer.concat([leafUsage, bothEnds, leafConstraints])
const ofAuthorities = Buffer.concat([authorityConstraints, authorityUsage])

function leaf(request: SigningRequest, commonName: string | undefined, names: Buffer, grant: Grant, signer: SigningKey, others = none): Buffer {
  const subject = commonName === undefined ? noName : distinguishedName([[objects.commonName, commonName]])
  // The subject alternative name is critical where the subject is empty (RFC 5280, 4.2.1.6).
  const named = extension(objects.subjectAltName, commonName === undefined, names)
  return makeCertificate({ ...grant, subject, publicKey: request.publicKey, extensions: Buffer.concat([ofLeaves, named, others]) }, signer)
}

/**
 * Throws {@link RequestFault} unless the request has no name, or one name with the namespace and service account of the caller. The names
 * are not used, but another workload's name shows a misconfigured caller. The trust domain may differ, because agents are configured with
 * it separately from the mesh.
 */
function checkNames(names: readonly AltName[], identity: Workload): void {
  const [name] = names
  if (!name) return
  if (names.length > 1) throw new RequestFault(`the request asks for ${names.length} names: it may ask for one, the identity of the caller`)
  const named = name.kind === 'URI' ? parseWorkload(name.value) : undefined
  if (!named) throw new RequestFault('the request asks for a name that is not the SPIFFE id of a workload')
  if (named.namespace !== identity.namespace || named.account !== identity.account)
    throw new RequestFault(`the request asks for ${JSON.stringify(name.value.slice(0, 200))}, which is not the identity of the caller`)
}

/** Returns the signing key for the certificate of an authority and its private key. */
export function signingKeyOf({ subject, keyId, publicKey }: Certificate, key: KeyObject): SigningKey {
  return signingKey(key, subject, keyId ?? keyIdOf(publicKey))
}

/** Makes a self-signed root certificate for a key pair, with the organization as its subject. */
export function issueRoot(organization: string, grant: Grant, key: KeyObject): Buffer {
  const subject = distinguishedName([[objects.organization, [...organization].slice(0, longestName).join('')]])
  const publicKey = readPublicKey(createPublicKey(key).export({ type: 'spki', format: 'der' }))
  return makeCertificate({ ...grant, subject, publicKey, extensions: ofAuthorities }, signingKey(key, subject, keyIdOf(publicKey)))
}

/**
 * Makes a cross-certificate: the subject and public key of a root, signed by another authority. Peers that trust only that authority can
 * then verify certificates of the root.
 */
export function issueCross(root: Certificate, grant: Grant, signer: SigningKey): Buffer {
  const { subject, publicKey } = root
  return makeCertificate({ ...grant, subject, publicKey, extensions: ofAuthorities }, signer)
}
