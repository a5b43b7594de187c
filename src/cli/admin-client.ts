/** The admin service of a running server (`mesh.admin.v1.AdminService`), asked over its admin socket, at an address, or over a connection that is there. */
import { resolve } from 'node:path'
import type { Duplex } from 'node:stream'
import { type Client, Code, ConnectError, createClient, type Interceptor } from '@connectrpc/connect'
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node'
import { AdminService } from '../../protocols/gen/mesh/admin/v1/admin_pb.js'
import { connectionFault, foreignAnswer } from './address-faults.ts'
import { explained } from './admin-socket.ts'

/** How long a call may take that has no bound of its own, in milliseconds: some times what a busy server needs. */
const timeoutMs = 30_000
/** The same of calls with much to send, or after which something is other than before. */
export const longerMs = 60_000

/** How often a question is asked that the server is not ready to answer. */
const mostAsked = 6

/** The maximum size of an answer in bytes: some times that of a page of the ledger, and about that of the configuration of a large proxy. */
const largestAnswer = 16 * 1_048_576
const largestConfiguration = 256 * 1_048_576

/** A server to which a connection is open, such as that to a forwarded port. */
export interface ForwardedServer {
  /** The name of the replica. */
  readonly replica: string
  /** `https://<name of the server>:<port>`. */
  readonly origin: string
  /** Returns the connection, over TLS. Throws an Error when it is lost. */
  open(): Duplex
  /** Whether the connection is lost. */
  isLost(): boolean
  /** Returns the token that is sent. */
  token(): Promise<string>
  /** Tells that a call begins or ends: the connection keeps the process alive during calls only. */
  hold(isAsked: boolean): void
  close(): void
}

/** Where a server is asked. */
export type ServerPlace =
  | { readonly socket: string }
  | { readonly forwarded: ForwardedServer }
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
    return new AdminClient(place, { limitMs: longerMs, readMaxBytes: largestConfiguration })
  }

  /**
   * Resolves with an answer. Rejects with an Error that has the reason of the server, and with `NoServerError` when no server listens on the
   * socket.
   */
  async asked<Answer>(answer: Promise<Answer>): Promise<Answer> {
    const forwarded = 'forwarded' in this.#place ? this.#place.forwarded : undefined
    forwarded?.hold(true)
    try {
      return await answer
    } catch (error) {
      if (forwarded?.isLost()) throw new Error(`replica ${forwarded.replica}: the connection was lost`, { cause: error })
      const { cause } = error as Error
      if (cause instanceof Error && ('syscall' in cause || 'code' in cause)) throw this.#unreached(cause as NodeJS.ErrnoException)
      if (!(error instanceof ConnectError)) throw error
      const { code, rawMessage } = error
      const foreign = 'address' in this.#place ? foreignAnswer(this.#place.address, rawMessage) : undefined
      const what = code === Code.DeadlineExceeded ? `${this.#where()}: the server has not answered in time` : `the server answered: ${rawMessage}`
      throw new Error(foreign ?? what, { cause: error })
    } finally {
      forwarded?.hold(false)
    }
  }

  /** The same of a question that is asked again while the server says that it is to be: a thread starts, for which it waits some seconds each time. */
  async askedAgain<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    for (let asked = 1; ; asked++)
      try {
        return await this.asked(ask())
      } catch (error) {
        const { cause } = error as Error
        const isEarly = cause instanceof ConnectError && cause.code === Code.Unavailable && cause.rawMessage.endsWith(': ask again')
        if (!isEarly || asked === mostAsked) throw error
      }
  }

  #unreached(cause: NodeJS.ErrnoException): Error {
    if ('socket' in this.#place) return explained(this.#place.socket, cause)
    if ('address' in this.#place) return new Error(connectionFault(this.#place.address, this.#place.roots !== undefined, cause))
    return new Error(`${this.#where()}: ${cause.message}`)
  }

  /** Names the place in errors. */
  #where(): string {
    if ('socket' in this.#place) return resolve(this.#place.socket)
    return 'address' in this.#place ? this.#place.address : `replica ${this.#place.forwarded.replica}`
  }
}

function transportTo(place: ServerPlace, bounds: object) {
  if ('socket' in place) {
    const nodeOptions = { socketPath: place.socket, agent: false } as const
    return createConnectTransport({ httpVersion: '1.1', baseUrl: 'http://localhost', nodeOptions, ...bounds })
  }
  if ('forwarded' in place) {
    const { origin, open, token } = place.forwarded
    return createGrpcTransport({ baseUrl: origin, interceptors: [bearing(token)], nodeOptions: { createConnection: open }, ...bounds })
  }
  const { address: baseUrl, token, roots } = place
  const interceptors = token === undefined ? [] : [bearing(async () => token)]
  if (baseUrl.startsWith('https:'))
    return createGrpcTransport({ baseUrl, interceptors, nodeOptions: { ...(roots !== undefined && { ca: roots }) }, ...bounds })
  return createConnectTransport({ httpVersion: '1.1', baseUrl, interceptors, nodeOptions: { agent: false }, ...bounds })
}

/** Sends a token with each call. */
const bearing =
  (token: () => Promise<string>): Interceptor =>
  (next) =>
  async (request) => {
    request.header.set('authorization', `Bearer ${await token()}`)
    return next(request)
  }
