/** A client of the certificate service based on a stock gRPC library. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js'
import { MeshCertificateRequestSchema, MeshCertificateResponseSchema } from '../../protocols/gen/mesh/v1/auth/ca_pb.js'
import { until } from './until.ts'

/** The client's credentials and the roots that it trusts; all PEM, except the token. */
export interface ClientCredentials {
  readonly roots: string
  readonly key?: string
  readonly cert?: string
  readonly token?: string
}

/** The path of the method under the name that agents of the reference use. */
export const createCertificate = '/istio.v1.auth.IstioCertificateService/CreateCertificate'

/** The outcome of a call: the chain, or the status with its metadata. */
export type CertificateOutcome =
  | { readonly chain: readonly string[] }
  | { readonly code: number; readonly details: string; readonly metadata: Record<string, unknown> }

/** A client of one server. */
export class CertificateClient {
  readonly #client: Client

  constructor(port: number, { roots, key, cert, token }: ClientCredentials) {
    const bytes = (text: string | undefined) => (text === undefined ? null : Buffer.from(text))
    const tls = credentials.createSsl(Buffer.from(roots), bytes(key), bytes(cert), { checkServerIdentity: () => undefined })
    const bearer = credentials.createFromMetadataGenerator((_, give) => {
      const metadata = new Metadata()
      metadata.set('authorization', `Bearer ${token}`)
      give(null, metadata)
    })
    this.#client = new Client(`127.0.0.1:${port}`, token === undefined ? tls : credentials.combineChannelCredentials(tls, bearer))
  }

  /** Requests a certificate with a lifetime of `seconds`, and waits `withinMs` milliseconds, by default without limit. */
  ask(csr: string, seconds = 0n, path = createCertificate, withinMs = Number.POSITIVE_INFINITY): Promise<CertificateOutcome> {
    const message = toBinary(MeshCertificateRequestSchema, create(MeshCertificateRequestSchema, { csr, validityDuration: seconds }))
    return this.call(message, path, withinMs)
  }

  /**
   * Requests a certificate with a deadline that only the server is told: it decides alone which calls are too late, and every answer that
   * it sends in time arrives, however slow this process is.
   */
  askTelling(csr: string, deadlineMs: number): Promise<CertificateOutcome> {
    const message = toBinary(MeshCertificateRequestSchema, create(MeshCertificateRequestSchema, { csr }))
    const metadata = new Metadata()
    metadata.set('grpc-timeout', `${deadlineMs}m`)
    return this.call(message, createCertificate, Number.POSITIVE_INFINITY, metadata)
  }

  /** Requests a certificate until the authority is available: as agents do, a call that is answered UNAVAILABLE is made again. */
  async obtain(csr: string, seconds = 0n, path = createCertificate): Promise<CertificateOutcome> {
    const unavailable = 14
    let outcome: CertificateOutcome | undefined
    await until('the authority to be available', async () => {
      outcome = await this.ask(csr, seconds, path)
      return 'chain' in outcome || outcome.code !== unavailable
    })
    return outcome as unknown as CertificateOutcome
  }

  /** Sends an encoded message. */
  call(message: Uint8Array, path = createCertificate, withinMs = Number.POSITIVE_INFINITY, headers = new Metadata()): Promise<CertificateOutcome> {
    const request = (bytes: Buffer) => bytes
    const response = (bytes: Buffer) => fromBinary(MeshCertificateResponseSchema, bytes).certChain
    return new Promise((resolve) =>
      this.#client.makeUnaryRequest(
        path,
        request,
        response,
        Buffer.from(message),
        headers,
        { deadline: Date.now() + withinMs },
        (error: ServiceError | null, chain) =>
          resolve(error ? { code: error.code, details: error.details, metadata: error.metadata.getMap() } : { chain: chain ?? [] }),
      ),
    )
  }

  close(): void {
    this.#client.close()
  }
}
