/** Secrets as an agent serves them, encoded once (`envoy.extensions.transport_sockets.tls.v3.Secret`). */
import { hash } from 'node:crypto'
import type { PairFiles } from '../../protocols/messages/credentials.ts'
import { encodeAuthorities, encodePair } from '../xds/secrets/encode-secret.ts'

/** Names under which Envoy asks an agent: the workload's certificate with its key, and the roots that peers are verified with. */
export const pairName = 'default'
export const rootsName = 'ROOTCA'

/** A secret that can be sent. */
export interface SecretResource {
  readonly name: string
  /** From the content: equal secrets have equal versions, also after a restart. */
  readonly version: string
  /** Field 2 of a response, in both forms of the protocol: tag, length and the `Any`. */
  readonly element: Buffer
}

/** Finds a secret that may be served at present. */
export type SecretLookup = (name: string) => SecretResource | undefined

/** A certificate chain, leaf first, and the private key of the leaf, both PEM, with the secret that is made of them. */
export interface PairSecret {
  readonly chain: string
  readonly key: string
  readonly secret: SecretResource
}

/** Roots in PEM, with the secret that is made of them. */
export interface RootsSecret {
  readonly pem: string
  readonly secret: SecretResource
}

/** Makes the secret of a pair. */
export function pairSecret({ chain, key }: Omit<PairSecret, 'secret'>, name = pairName): PairSecret {
  return { chain, key, secret: resource(name, encodePair(name, { chain: Buffer.from(chain), key: Buffer.from(key) })) }
}

/** Makes the secret of roots. */
export function rootsSecret(pem: string, name = rootsName): RootsSecret {
  return { pem, secret: resource(name, encodeAuthorities(name, Buffer.from(pem))) }
}

const resource = (name: string, element: Buffer): SecretResource => ({ name, version: hash('sha256', element).slice(0, 32), element })

/** Secrets that are in files, by the name under which Envoy asks for them. */
export type FileSecretName = { readonly kind: 'pair'; readonly files: PairFiles } | { readonly kind: 'roots'; readonly file: string }

const pairPrefix = 'file-cert:'
const rootsPrefix = 'file-root:'
/** Most bytes of a path that the system takes (PATH_MAX of Linux, less the NUL at its end). */
const longestPath = 4095

/** Reads the name of a secret in files: `file-cert:<chain>~<key>` or `file-root:<roots>`, absolute paths of files in PEM. Undefined for any other name. */
export function readFileSecretName(name: string): FileSecretName | undefined {
  if (name.startsWith(pairPrefix)) {
    const [chain, key, ...more] = name.slice(pairPrefix.length).split('~')
    return isPath(chain) && isPath(key) && more.length === 0 ? { kind: 'pair', files: { chain, key } } : undefined
  }
  const file = name.startsWith(rootsPrefix) ? name.slice(rootsPrefix.length) : undefined
  return isPath(file) ? { kind: 'roots', file } : undefined
}

const isPath = (text: string | undefined): text is string => text !== undefined && /^\/[^\0]+$/.test(text) && Buffer.byteLength(text) <= longestPath

/** Whether an agent may have a secret of a name. */
export function isSecretName(name: string): boolean {
  return name === pairName || name === rootsName || readFileSecretName(name) !== undefined
}
