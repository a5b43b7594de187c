/** Secrets as an agent serves them, encoded once (`envoy.extensions.transport_sockets.tls.v3.Secret`). */
import { hash } from 'node:crypto'
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

/** A certificate chain, leaf first, and the private key of the leaf. Both PEM. */
export function pairSecret(chain: string, key: string): SecretResource {
  return resource(pairName, encodePair(pairName, { chain: Buffer.from(chain), key: Buffer.from(key) }))
}

/** Roots in PEM. */
export function rootsSecret(roots: string): SecretResource {
  return resource(rootsName, encodeAuthorities(rootsName, Buffer.from(roots)))
}

const resource = (name: string, element: Buffer): SecretResource => ({ name, version: hash('sha256', element).slice(0, 32), element })
