/** Requests certificates from a certificate authority: one gRPC call on a connection of its own (docs/decisions.md). */
import { randomUUID } from 'node:crypto'
import type { CloudAuthority } from '../../../protocols/messages/agent.ts'
import type { ServerAddress } from '../../../protocols/messages/credentials.ts'
import { certificateChain, certificateRequest, cloudCertificateRequest } from '../../../src/agent/certificate-call.ts'
import { servicePaths } from '../../../src/names/mesh-names.ts'
import { type ConnectionCredentials, connectSession } from '../credentials/http2-client.ts'
import { callUnary, UnaryMethod } from '../unary-call.ts'

/** The names of the method: that of this project, and its alias, under which authorities of the reference serve it. */
const paths = servicePaths('mesh.v1.auth.MeshCertificateService', 'CreateCertificate')
/** Its name at the certificate service of a cloud. */
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

/** Requests certificates from one authority. */
export class CertificateClient {
  readonly #authority: ServerAddress
  readonly #cloud: CloudAuthority | undefined
  readonly #method: UnaryMethod

  /** `cloud` is given for the certificate service of a cloud. */
  constructor(authority: ServerAddress, cloud: CloudAuthority | undefined) {
    this.#authority = authority
    this.#cloud = cloud
    this.#method = new UnaryMethod(...(cloud ? [cloudPath] : paths))
  }

  /** Requests a certificate. Resolves with the chain: leaf, intermediates, roots last. Rejects with CallFailed. */
  create({ csr, ttlSeconds, clusterId }: CertificateOrder, { token, ...credentials }: Credentials): Promise<string[]> {
    return callUnary({
      method: this.#method,
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
