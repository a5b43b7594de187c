/** Authenticates streams and calls on the secured port (docs/identity.md, T7 to T10). */
import type { IncomingHttpHeaders } from 'node:http'
import type { Caller, TokenAnswer, TokenQuestion } from '../../../protocols/messages/identity.ts'
import { status } from '../../../src/model/status-codes.ts'
import type { CallStatus } from '../../grpc/unary.ts'

/** The properties of a stream or call that authentication looks at. */
export interface Asker {
  readonly isSecure: boolean
  readonly certificateCaller: Caller | undefined
  readonly headers: IncomingHttpHeaders
  /** Identifies the connection: the same object for all streams and calls on one connection. */
  readonly connection: object
}

/** The result of authentication: the caller, or the status with which the stream or call is refused. */
export type Admitted = Caller | Refusal

/** A refusal. `message` is sent to the client and does not depend on the reason; `reason` is for the log only. */
export interface Refusal extends CallStatus {
  readonly reason: string
}

/** Whether the result is a refusal. */
export const isRefused = (admitted: Admitted): admitted is Refusal => 'code' in admitted

/**
 * Maximum number of tokens being verified at a time, for one connection and for the whole writer. Streams of one connection with the same
 * token share one verification.
 */
const maxTokens = { connection: 4, all: 1000 }

/** Maximum length of a token, in bytes. */
const tokenBytes = 16_384

/** Verifies a token and returns its caller. */
export type Authenticate = (question: TokenQuestion) => Promise<TokenAnswer>

/** Authenticates callers by the client certificate of the connection, or else by the bearer token of the stream or call. */
export class Admission {
  readonly #authenticate: Authenticate
  /** Verifications under way: by connection, then by question. */
  readonly #open = new Map<object, Map<string, Promise<Admitted>>>()
  #waiting = 0

  constructor(authenticate: Authenticate) {
    this.#authenticate = authenticate
  }

  /**
   * Returns the caller of a stream or call, or a refusal. The result is synchronous unless a token must be verified. Plain-text
   * connections are always refused. The promise never rejects.
   */
  admit({ isSecure, certificateCaller, headers, connection }: Asker, service: TokenQuestion['service'] = 'xds'): Admitted | Promise<Admitted> {
    if (!isSecure) return unauthenticated('the connection is in plain text')
    if (certificateCaller) return certificateCaller
    const { authorization = '', clusterid } = headers
    const [, token] = /^bearer +([^ ]+) *$/i.exec(authorization) ?? []
    if (token === undefined) return unauthenticated('neither a client certificate nor a token')
    if (token.length > tokenBytes) return unauthenticated(`the token has more than ${tokenBytes} bytes`)
    return this.#examine(connection, { token, service, ...(typeof clusterid === 'string' ? { clusterId: clusterid } : {}) })
  }

  #examine(connection: object, question: TokenQuestion): Promise<Admitted> | Refusal {
    const open = this.#open.get(connection) ?? new Map<string, Promise<Admitted>>()
    const key = JSON.stringify([question.service, question.clusterId, question.token])
    const same = open.get(key)
    if (same) return same
    if (open.size >= maxTokens.connection || this.#waiting >= maxTokens.all) return unavailable('too many tokens are being examined')
    this.#waiting++
    const answer = this.#ask(question).finally(() => {
      this.#waiting--
      open.delete(key)
      if (open.size === 0) this.#open.delete(connection)
    })
    open.set(key, answer)
    this.#open.set(connection, open)
    return answer
  }

  async #ask(question: TokenQuestion): Promise<Admitted> {
    try {
      const answer = await this.#authenticate(question)
      if ('caller' in answer) return answer.caller
      return answer.unavailable ? unavailable(answer.refused) : unauthenticated(answer.refused)
    } catch (error) {
      return unavailable((error as Error).message)
    }
  }
}

const unauthenticated = (reason: string): Refusal => ({ code: status.unauthenticated, message: 'authentication failure', reason })
const unavailable = (reason: string): Refusal => ({ code: status.unavailable, message: 'credentials cannot be checked at present', reason })
