/** Secrets as the agent serves them to Envoy, encoded once (`envoy.extensions.transport_sockets.tls.v3.Secret`). */
import { hash } from 'node:crypto'
import type { PairFiles } from '../../protocols/messages/credentials.ts'
import { encodeAuthorities, encodePair } from '../xds/secrets/encode-secret.ts'

/** The resource names of the workload's certificate with its key, and of the roots that peers are verified with. */
export const pairName = 'default'
export const rootsName = 'ROOTCA'

/** An encoded secret. */
export interface SecretResource {
  readonly name: string
  /** A hash of the content: equal secrets have equal versions, also after a restart. */
  readonly version: string
  /** Field 2 of a SotW or delta response: tag, length and the `Any`. */
  readonly element: Buffer
}

/** Returns the secret with a name, or undefined when it cannot be served at present. */
export type SecretLookup = (name: string) => SecretResource | undefined

/** A certificate chain, leaf first, and the leaf's private key, both in PEM, with the secret that is encoded from them. */
export interface PairSecret {
  readonly chain: string
  readonly key: string
  readonly secret: SecretResource
}

/** Roots in PEM, with the secret that is encoded from them. */
export interface RootsSecret {
  readonly pem: string
  readonly secret: SecretResource
}

/** Encodes the secret of a certificate chain and its key. */
export function pairSecret({ chain, key }: Omit<PairSecret, 'secret'>, name = pairName): PairSecret {
  return { chain, key, secret: resource(name, encodePair(name, { chain: Buffer.from(chain), key: Buffer.from(key) })) }
}

/** Encodes the secret of roots, with revocation lists (PEM) if there are any. */
export function rootsSecret(pem: string, name = rootsName, revocations?: string): RootsSecret {
  const lists = revocations === undefined ? undefined : Buffer.from(revocations)
  return { pem, secret: resource(name, encodeAuthorities(name, Buffer.from(pem), lists)) }
}

const resource = (name: string, element: Buffer): SecretResource => ({ name, version: hash('sha256', element).slice(0, 32), element })

/** The files of a secret whose resource name contains their paths. */
export type FileSecretName =
  | { readonly kind: 'pair'; readonly files: PairFiles }
  | { readonly kind: 'roots'; readonly file: string; readonly revocations: string | undefined }

const pairPrefix = 'file-cert:'
const rootsPrefix = 'file-root:'
/** The maximum length of a path in bytes (PATH_MAX of Linux, less the terminating NUL). */
const longestPath = 4095

/**
 * Parses the resource name of a secret in files: `file-cert:<chain>~<key>`, `file-root:<roots>` or `file-root:<roots>~<revocation lists>`,
 * absolute paths of PEM files. Undefined for any other name.
 */
export function readFileSecretName(name: string): FileSecretName | undefined {
  if (name.startsWith(pairPrefix)) {
    const [chain, key, ...more] = name.slice(pairPrefix.length).split('~')
    return isPath(chain) && isPath(key) && more.length === 0 ? { kind: 'pair', files: { chain, key } } : undefined
  }
  if (!name.startsWith(rootsPrefix)) return undefined
  const [file, revocations, ...more] = name.slice(rootsPrefix.length).split(/~(?=\/)/)
  const isRead = isPath(file) && (revocations === undefined || isPath(revocations)) && more.length === 0
  return isRead ? { kind: 'roots', file, revocations } : undefined
}

const isPath = (text: string | undefined): text is string => text !== undefined && /^\/[^\0]+$/.test(text) && Buffer.byteLength(text) <= longestPath

/** Whether the agent can serve a secret with this name, now or later. */
export function isSecretName(name: string): boolean {
  return name === pairName || name === rootsName || readFileSecretName(name) !== undefined
}
