/** The certificates that the authority makes, and what each kind holds (docs/certificates.md, L1 to L8). */
import { createPublicKey, type KeyObject } from 'node:crypto'
import { parseWorkload, type Workload } from '../identity/spiffe-id.ts'
import { type Certificate, keyIdOf, makeCertificate, type SigningKey, signingKey } from './certificate.ts'
import { sequence } from './der.ts'
import type { Validity } from './lifetime.ts'
import { authorityConstraints, authorityUsage, bothEnds, distinguishedName, extension, leafConstraints, leafUsage, objects } from './objects.ts'
import { readPublicKey } from './public-key.ts'
import { type AltName, altNames, RequestFault, readSigningRequest, type SigningRequest } from './signing-request.ts'

/** Longest common name, in characters (RFC 5280, ub-common-name); that of an organization is the same. */
const longestName = 64

/** The caller has no identity that a certificate can name. */
export class IdentityFault extends Error {}

/** What a certificate gets that no request says. */
export interface Grant extends Validity {
  /** Sixteen bytes of chance. */
  readonly serial: Buffer
}

/**
 * Makes the certificate of a workload: it names the caller's identity and nothing that the request names. Throws
 * {@link RequestFault} when the request cannot be read or asks for what it may not, {@link IdentityFault} when the identity is none.
 */
export function issueWorkload(request: string, identity: string, grant: Grant, signer: SigningKey): Buffer {
  const workload = parseWorkload(identity)
  if (!workload) throw new IdentityFault(`${JSON.stringify(identity.slice(0, 200))} is not the identity of a workload`)
  const read = readSigningRequest(request)
  checkNames(read.names, workload)
  const commonName = read.hasCommonName && identity.length <= longestName ? identity : undefined
  return leaf(read, commonName, altNames([{ uri: identity }]), grant, signer)
}

/**
 * Makes the serving certificate of this process, with the DNS names and addresses of its request. Throws {@link RequestFault} when the
 * request cannot be read, names nothing or something else.
 */
export function issueServing(request: string, grant: Grant, signer: SigningKey): Buffer {
  const read = readSigningRequest(request)
  if (read.names.length === 0) throw new RequestFault('the request names no host')
  const other = read.names.find(({ kind }) => kind !== 'DNS' && kind !== 'IP')
  if (other) throw new RequestFault(`the request of a server names something other than hosts (${other.kind})`)
  return leaf(read, undefined, sequence(...read.names.map(({ encoded }) => encoded)), grant, signer)
}

const noName = distinguishedName([])
const ofLeaves = Buffer.concat([leafUsage, bothEnds, leafConstraints])
const ofAuthorities = Buffer.concat([authorityConstraints, authorityUsage])

function leaf(request: SigningRequest, commonName: string | undefined, names: Buffer, grant: Grant, signer: SigningKey): Buffer {
  const subject = commonName === undefined ? noName : distinguishedName([[objects.commonName, commonName]])
  // The names must be understood where they are all there is to say who this is (RFC 5280, 4.2.1.6).
  const named = extension(objects.subjectAltName, commonName === undefined, names)
  return makeCertificate({ ...grant, subject, publicKey: request.publicKey, extensions: Buffer.concat([ofLeaves, named]) }, signer)
}

/**
 * A request may name nothing, or the caller's identity: what it names is not used, and a name of somebody else says that the caller
 * takes itself for another. The trust domain may be another: agents are told it apart from the mesh.
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

/** The signer of an authority's certificate and private key. */
export function signingKeyOf({ subject, keyId, publicKey }: Certificate, key: KeyObject): SigningKey {
  return signingKey(key, subject, keyId ?? keyIdOf(publicKey))
}

/** Makes a self-signed root for a key pair, in the name of an organization. */
export function issueRoot(organization: string, grant: Grant, key: KeyObject): Buffer {
  const subject = distinguishedName([[objects.organization, [...organization].slice(0, longestName).join('')]])
  const publicKey = readPublicKey(createPublicKey(key).export({ type: 'spki', format: 'der' }))
  return makeCertificate({ ...grant, subject, publicKey, extensions: ofAuthorities }, signingKey(key, subject, keyIdOf(publicKey)))
}

/** Makes another certificate for the subject and key of a root, signed by another authority: who trusts only that one comes to trust the root. */
export function issueCross(root: Certificate, grant: Grant, signer: SigningKey): Buffer {
  const { subject, publicKey } = root
  return makeCertificate({ ...grant, subject, publicKey, extensions: ofAuthorities }, signer)
}
