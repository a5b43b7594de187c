/** Requests certificates from a certificate authority: one gRPC call on a connection of its own (docs/decisions.md). */
import { randomUUID } from 'node:crypto'
import type { CloudAuthority } from '../../../protocols/messages/agent.ts'
import type { ServerAddress } from '../../../protocols/messages/credentials.ts'
import { certificateChain, certificateRequest, cloudCertificateRequest } from '../../../src/agent/certificate-call.ts'
import { status } from '../../../src/model/status-codes.ts'
import { servicePaths } from '../../../src/names/mesh-names.ts'
import { type ConnectionCredentials, connectSession } from '../credentials/http2-client.ts'
import { CallFailed, callOnce } from '../unary-call.ts'

/** The paths of the method: by the name of this project and by its alias, under which authorities of the reference serve it. */
const paths = servicePaths('mesh.v1.auth.MeshCertificateService', 'CreateCertificate')

/** The path of the method at the certificate service of a cloud. */
const cloudPath = '/google.security.meshca.v1.MeshCertificateService/CreateCertificate'

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
  readonly #cloud: CloudAuthority | undefined
  /** The paths in the order of attempts: the one that the authority implemented last comes first. */
  #paths: readonly string[]

  /** `cloud` is given for the certificate service of a cloud. */
  constructor(authority: ServerAddress, cloud: CloudAuthority | undefined) {
    this.#authority = authority
    this.#cloud = cloud
    this.#paths = cloud ? [cloudPath] : paths
  }

  /** Requests a certificate. Resolves with the chain: leaf, intermediates, roots last. Rejects with {@link CallFailed}. */
  async create(order: CertificateOrder, credentials: Credentials): Promise<string[]> {
    for (const [index, path] of this.#paths.entries()) {
      try {
        return await this.#call(path, order, credentials)
      } catch (error) {
        if (!(error instanceof CallFailed) || error.code !== status.unimplemented || index === this.#paths.length - 1) throw error
        this.#paths = [...this.#paths.filter((one) => one !== path), path]
      }
    }
    throw new RangeError('there is no path')
  }

  #call(path: string, { csr, ttlSeconds, clusterId }: CertificateOrder, { token, ...credentials }: Credentials): Promise<string[]> {
    return callOnce({
      path,
      headers: { ...(token === undefined ? {} : { authorization: `Bearer ${token}` }), ...this.#origin(clusterId) },
      message: this.#cloud ? cloudCertificateRequest(randomUUID(), csr, ttlSeconds) : certificateRequest(csr, ttlSeconds),
      ...limits,
      connect: () => connectSession(this.#authority, { maxSessionMemory: 4 }, credentials),
      read: certificateChain,
    })
  }

  /** Returns the headers that say where the workload is: its cluster, or the zone by which a cloud routes the call. */
  #origin(clusterId: string): Readonly<Record<string, string>> {
    if (!this.#cloud) return clusterId === '' ? {} : { clusterid: clusterId }
    const { zone } = this.#cloud
    return zone === undefined ? {} : { 'x-goog-request-params': `location=locations/${zone}` }
  }
}
