/** Requests certificates from a certificate authority: one gRPC call on a connection of its own (docs/decisions.md). */
import type { ServerAddress } from '../../../protocols/messages/credentials.ts'
import { certificateChain, certificateRequest } from '../../../src/agent/certificate-call.ts'
import { status } from '../../../src/model/status-codes.ts'
import { servicePaths } from '../../../src/names/mesh-names.ts'
import { type ConnectionCredentials, connectSession } from '../credentials/http2-client.ts'
import { CallFailed, callOnce } from '../unary-call.ts'

/** The paths of the method: by the name of this project and by its alias, under which authorities of the reference serve it. */
const paths = servicePaths('mesh.v1.auth.MeshCertificateService', 'CreateCertificate')

/** The timeout of a call, connecting included, in seconds, and the maximum size of a response in bytes. */
const limits = { seconds: 30, answerBytes: 1_048_576 }

/** The contents of a request. */
export interface CertificateOrder {
  /** PEM. */
  readonly csr: string
  readonly ttlSeconds: number
  readonly clusterId: string
}

/** The credentials of a call. PEM, except for the token. */
export interface Credentials extends ConnectionCredentials {
  readonly token: string | undefined
}

/** Requests certificates. Remembers which of the paths the authority implements. */
export class CertificateClient {
  readonly #authority: ServerAddress
  /** The paths in the order of attempts: the one that the authority implemented last comes first. */
  #paths: readonly string[] = paths

  constructor(authority: ServerAddress) {
    this.#authority = authority
  }

  /** Requests a certificate. Resolves with the chain: leaf, intermediates, roots last. Rejects with {@link CallFailed}. */
  async create(order: CertificateOrder, credentials: Credentials): Promise<string[]> {
    for (const [index, path] of this.#paths.entries()) {
      try {
        return await createCertificate(this.#authority, path, order, credentials)
      } catch (error) {
        if (!(error instanceof CallFailed) || error.code !== status.unimplemented || index === this.#paths.length - 1) throw error
        this.#paths = [...this.#paths.filter((one) => one !== path), path]
      }
    }
    throw new RangeError('there is no path')
  }
}

function createCertificate(
  authority: ServerAddress,
  path: string,
  { csr, ttlSeconds, clusterId }: CertificateOrder,
  { token, ...credentials }: Credentials,
): Promise<string[]> {
  return callOnce({
    path,
    headers: { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...(clusterId === '' ? {} : { clusterid: clusterId }) },
    message: certificateRequest(csr, ttlSeconds),
    ...limits,
    connect: () => connectSession(authority, { maxSessionMemory: 4 }, credentials),
    read: certificateChain,
  })
}
