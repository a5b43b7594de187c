/** Requests certificates from a certificate authority: one gRPC call on a connection of its own (docs/decisions.md). */
import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2'
import type { ServerAddress } from '../../../protocols/messages/credentials.ts'
import { callEnd, certificateChain, certificateRequest } from '../../../src/agent/certificate-call.ts'
import { status } from '../../../src/model/status-codes.ts'
import { servicePaths } from '../../../src/names/mesh-names.ts'
import { FrameBuffers, FrameReader, messageFrame } from '../../../src/xds/stream/frames.ts'
import { deadlineAfter } from '../../runtime/timers.ts'
import { type ConnectionCredentials, connectSession, reasonOf } from '../credentials/http2-client.ts'

/** The paths of the method: by the name of this project and by its alias, under which authorities of the reference serve it. */
const paths = servicePaths('mesh.v1.auth.MeshCertificateService', 'CreateCertificate')

/** The timeout of a call, connecting included, in seconds, and the maximum size of a response in bytes. */
const limits = { seconds: 30, answerBytes: 1_048_576 }

/** A failed call: the gRPC status, and the minimum delay before a retry that the authority asks for, in milliseconds. */
export class CallFailed extends Error {
  readonly code: number
  readonly retryAfterMs: number
  constructor(code: number, message: string, retryAfterMs = 0) {
    super(message)
    this.code = code
    this.retryAfterMs = retryAfterMs
  }
}

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

function createCertificate(authority: ServerAddress, path: string, order: CertificateOrder, credentials: Credentials): Promise<string[]> {
  return new Promise((resolve, reject) => {
    let session: ClientHttp2Session | undefined
    const end = deadlineAfter(limits.seconds * 1000, () => done(new CallFailed(status.deadlineExceeded, `no answer within ${limits.seconds} s`)))
    const done = (outcome: CallFailed | string[]) => {
      end.cancel()
      session?.destroy()
      if (Array.isArray(outcome)) resolve(outcome)
      else reject(outcome)
    }
    const failed = (error: unknown) => done(failureOf(error))
    try {
      session = connectSession(authority, { maxSessionMemory: 4 }, credentials)
      session.on('error', failed)
      session.on('close', () => done(new CallFailed(status.unavailable, 'the connection was closed before a response arrived')))
      call(session, path, order, credentials.token, done)
    } catch (error) {
      failed(error)
    }
  })
}

function failureOf(error: unknown): CallFailed {
  return error instanceof CallFailed ? error : new CallFailed(status.unavailable, reasonOf(error))
}

function call(
  session: ClientHttp2Session,
  path: string,
  order: CertificateOrder,
  token: string | undefined,
  done: (outcome: CallFailed | string[]) => void,
): void {
  const stream = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/grpc',
    te: 'trailers',
    'grpc-timeout': `${limits.seconds}S`,
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(order.clusterId === '' ? {} : { clusterid: order.clusterId }),
  })
  const reader = new FrameReader(limits.answerBytes, new FrameBuffers())
  let chain: string[] | undefined
  let trailers: IncomingHttpHeaders | undefined
  const guarded = (take: () => void) => {
    try {
      take()
    } catch (error) {
      done(new CallFailed(status.internal, `the answer cannot be read: ${(error as Error).message}`))
    }
  }
  stream.on('response', (headers) => {
    // A response without messages has its status in the headers (Trailers-Only).
    if (headers['grpc-status'] !== undefined) trailers = headers
    else if (headers[':status'] !== 200) {
      // HTTP status 404 means that the method does not exist (gRPC, "HTTP to gRPC Status Code Mapping").
      const code = headers[':status'] === 404 ? status.unimplemented : status.unavailable
      done(new CallFailed(code, `answered with HTTP status ${headers[':status']}`))
    }
  })
  stream.on('trailers', (headers) => {
    trailers = headers
  })
  stream.on('data', (bytes: Buffer) => guarded(() => reader.take(bytes, (message) => (chain = certificateChain(message)) && true)))
  stream.on('error', (error) => done(failureOf(error)))
  stream.on('close', () => guarded(() => done(outcomeOf(chain, trailers))))
  send(stream, order)
}

function send(stream: ClientHttp2Stream, { csr, ttlSeconds }: CertificateOrder): void {
  stream.end(messageFrame(certificateRequest(csr, ttlSeconds)))
}

function outcomeOf(chain: string[] | undefined, trailers: IncomingHttpHeaders | undefined): CallFailed | string[] {
  if (!trailers) return new CallFailed(status.unavailable, 'the call ended without a status')
  const { code, message, retryAfterMs } = callEnd(trailers)
  if (code !== status.ok) return new CallFailed(code, message, retryAfterMs)
  return chain ?? new CallFailed(status.internal, 'the answer has no message')
}
