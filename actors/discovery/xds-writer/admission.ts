/** Who opens a stream or makes a call on the secured port (docs/identity.md, T7 to T10). */
import type { IncomingHttpHeaders } from 'node:http'
import type { Caller, TokenAnswer, TokenQuestion } from '../../../protocols/messages/identity.ts'
import { status } from '../../../src/model/status-codes.ts'
import type { CallStatus } from '../../grpc/unary.ts'

/** What is known of who asks: a stream or a call. */
export interface Asker {
  readonly isSecure: boolean
  readonly certificateCaller: Caller | undefined
  readonly headers: IncomingHttpHeaders
  /** The same object for all that comes on one connection. */
  readonly connection: object
}

/** The caller, or the status with which a stream or a call is refused. `reason` is for the log alone. */
export type Admitted = Caller | Refusal

/** A refusal; its message is the same whatever the reason. */
export interface Refusal extends CallStatus {
  readonly reason: string
}

/** Whether somebody was refused. */
export const isRefused = (admitted: Admitted): admitted is Refusal => 'code' in admitted

/** Tokens that may be under examination at a time, for one connection and for a whole writer. Streams of a connection that bring the same token wait for one answer. */
const mostTokens = { connection: 4, all: 1000 }

/** Longest token that is examined, in bytes. */
const tokenBytes = 16_384

/** Asks whose token it is. */
export type Authenticate = (question: TokenQuestion) => Promise<TokenAnswer>

/** Finds out who asks: by the client certificate of the connection, or else by the token of the stream or call. */
export class Admission {
  readonly #authenticate: Authenticate
  /** Answers that are waited for: by connection, then by question. */
  readonly #open = new Map<object, Map<string, Promise<Admitted>>>()
  #waiting = 0

  constructor(authenticate: Authenticate) {
    this.#authenticate = authenticate
  }

  /**
   * The caller of a stream or call, at once where the connection has a client certificate or there is no token. In plain text there is
   * no caller. Never rejects.
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
    if (open.size >= mostTokens.connection || this.#waiting >= mostTokens.all) return unavailable('too many tokens are being examined')
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
