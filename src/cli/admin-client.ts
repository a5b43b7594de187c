/** The admin service of a running server (`mesh.admin.v1.AdminService`), asked over its admin socket or at an address. */
import { type Client, Code, ConnectError, createClient, type Interceptor } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node'
import { AdminService } from '../../protocols/gen/mesh/admin/v1/admin_pb.js'
import { explained } from './admin-socket.ts'

/** How long a call may take, in milliseconds. */
const timeoutMs = 60_000

/** The maximum size of an answer in bytes: some times that of a page of the ledger, and about that of the configuration of a large proxy. */
const largestAnswer = 16 * 1_048_576
const largestConfiguration = 256 * 1_048_576

/** Where a server is asked. */
export type ServerPlace =
  | { readonly socket: string }
  | {
      /** `http://<host>:<port>` of --httpAddr or --monitoringAddr, or `https://<host>:<port>` of --secureGRPCAddr. */
      readonly address: string
      /** Undefined: none is sent. */
      readonly token: string | undefined
      /** The roots that the certificate of the server may come from, as PEM; undefined: those of the system. */
      readonly roots: string | undefined
    }

/** The admin service of a server. */
export class AdminClient {
  /** The methods. Their answers are awaited by {@link asked}. */
  readonly rpcs: Client<typeof AdminService>
  readonly #place: ServerPlace

  /** A call takes at most `limitMs`. */
  constructor(place: ServerPlace, { limitMs = timeoutMs, readMaxBytes = largestAnswer } = {}) {
    this.#place = place
    const bounds = { acceptCompression: [], defaultTimeoutMs: limitMs, readMaxBytes }
    this.rpcs = createClient(AdminService, transportTo(place, bounds))
  }

  /** A client for whole configurations of proxies. */
  static ofConfigurations(place: ServerPlace): AdminClient {
    return new AdminClient(place, { readMaxBytes: largestConfiguration })
  }

  /**
   * Resolves with an answer. Rejects with an Error that has the reason of the server, and with `NoServerError` when no server listens on the
   * socket.
   */
  async asked<Answer>(answer: Promise<Answer>): Promise<Answer> {
    try {
      return await answer
    } catch (error) {
      const { cause } = error as Error
      if (cause instanceof Error && ('syscall' in cause || 'code' in cause)) throw this.#unreached(cause as NodeJS.ErrnoException)
      if (!(error instanceof ConnectError)) throw error
      const what = error.code === Code.DeadlineExceeded ? 'the server has not answered in time' : `the server answered: ${error.rawMessage}`
      throw new Error(what, { cause: error })
    }
  }

  #unreached(cause: NodeJS.ErrnoException): Error {
    return 'socket' in this.#place ? explained(this.#place.socket, cause) : new Error(`${this.#place.address}: ${cause.message}`)
  }
}

function transportTo(place: ServerPlace, bounds: object) {
  if ('socket' in place) {
    const nodeOptions = { socketPath: place.socket, agent: false } as const
    return createConnectTransport({ httpVersion: '1.1', baseUrl: 'http://localhost', nodeOptions, ...bounds })
  }
  const { address: baseUrl, token, roots } = place
  const interceptors = token === undefined ? [] : [bearing(token)]
  if (baseUrl.startsWith('https:'))
    return createGrpcTransport({ baseUrl, interceptors, nodeOptions: { ...(roots !== undefined && { ca: roots }) }, ...bounds })
  return createConnectTransport({ httpVersion: '1.1', baseUrl, interceptors, nodeOptions: { agent: false }, ...bounds })
}

/** Sends a token with each call. */
const bearing =
  (token: string): Interceptor =>
  (next) =>
  (request) => {
    request.header.set('authorization', `Bearer ${token}`)
    return next(request)
  }
