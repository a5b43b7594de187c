/** What the Secrets of the certificate authority hold (docs/certificates.md, K8), as texts. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { fingerprintOf, pemOf } from '../identity/pem.ts'
import { findChain } from './chain.ts'
import { type AuthorityRecord, type AuthorityState, emptyState } from './state.ts'

/** The values of a Secret, decoded. */
export type SecretTexts = Readonly<Record<string, string>>

/** The values of a Secret by which it is one of a certificate authority. */
const parts = { signing: 'ca-cert.pem', key: 'ca-key.pem', chain: 'cert-chain.pem', roots: 'root-cert.pem' } as const

/** The same in a Secret of the type `kubernetes.io/tls` with the certificate of the root. */
const tlsParts = { signing: 'tls.crt', key: 'tls.key', roots: 'ca.crt' } as const

/** The texts of an authority, and what errors about them are named by. */
export interface AuthorityTexts {
  readonly signing: string
  /** The private key in PEM; undefined when there is none. */
  readonly key: string | undefined
  readonly chain: string
  readonly roots: string
  readonly names: { readonly signing: string; readonly key: string; readonly roots: string }
}

/** Returns the authority of a Secret `cacerts` in either of its forms. */
export function authorityTexts(data: SecretTexts): AuthorityTexts {
  const isTls = !filled(data[parts.key]) && filled(data[tlsParts.key])
  const names = isTls ? tlsParts : parts
  const key = data[names.key]
  return {
    signing: data[names.signing] ?? '',
    key: filled(key) ? key : undefined,
    chain: isTls ? '' : (data[parts.chain] ?? ''),
    roots: data[names.roots] ?? '',
    names,
  }
}

const filled = (text: string | undefined): text is string => text !== undefined && text.trim() !== ''

/**
 * Returns the state of an authority whose only root is that of a Secret `mesh-ca-secret`, with its key. Which certificates it has issued
 * is not known. Throws an Error that names the value and says what is wrong.
 */
export function importedState(data: SecretTexts, now: number): { readonly state: AuthorityState; readonly id: string; readonly key: string } {
  const { signing, key, chain, roots } = authorityTexts(data)
  if (!filled(signing)) throw new Error(`${parts.signing}: is missing`)
  if (key === undefined) throw new Error(`${parts.key}: is missing`)
  const found = named(parts.signing, () => findChain(signing, chain, filled(roots) ? roots : signing))
  const certificate = pemOf('CERTIFICATE', found.signing.encoded)
  checkKey(certificate, key)
  const id = fingerprintOf(certificate)
  const intermediates = found.intermediates.replace(certificate, '')
  const record: AuthorityRecord = { id, certificate, intermediates, root: found.root, cross: '', origin: 'imported' }
  return { state: { ...emptyState, authorities: [record], since: now, epoch: 1, inForce: [found.root] }, id, key }
}

/** Throws an Error without the key when a text is not the private key of a certificate. */
function checkKey(certificate: string, key: string): void {
  let isRight = false
  try {
    isRight = new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key))
  } catch {
    // The library's error may quote the key.
    throw new Error(`${parts.key}: holds no private key in PEM, or one that is encrypted`)
  }
  if (!isRight) throw new Error(`${parts.key}: is not the key of ${parts.signing}`)
}

function named<T>(name: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new Error(`${name}: ${(error as Error).message}`)
  }
}

/** The authority whose key signs workload certificates; undefined without a root. */
export function signingRecord({ authorities: [old, next], stage }: AuthorityState): AuthorityRecord | undefined {
  return (stage === 'sign-with-new' || stage === 'retire') && next ? next : old
}

/** Returns the data of `mesh-ca-secret` for an authority and its key. Three values are empty for the root of its own that others expect. */
export function rootTexts({ certificate, intermediates, root }: AuthorityRecord, key: string): SecretTexts {
  return {
    [parts.signing]: certificate,
    [parts.key]: key,
    [parts.chain]: intermediates,
    [parts.roots]: certificate === root ? '' : root,
    'key.pem': '',
  }
}

/** The id of the signing certificate in the data of `mesh-ca-secret`; undefined when it holds none. */
export function rootIn(data: SecretTexts): string | undefined {
  try {
    return fingerprintOf(data[parts.signing] ?? '')
  } catch {
    return undefined
  }
}

/** The name under which the Secret of the state has the key of a certificate. */
export const keyName = (id: string): string => `${id}.pem`

/** The name of the value with the state. */
export const stateName = 'state.json'
