/** Authenticates streams and calls on the secured port (docs/identity.md, T7 to T10). */
import type { IncomingHttpHeaders } from 'node:http'
import type { Caller, TokenAnswer, TokenQuestion } from '../../../protocols/messages/identity.ts'
import { clientKey } from '../../../src/model/client-address.ts'
import { status } from '../../../src/model/status-codes.ts'
import { described } from '../../../src/policy/signed-token.ts'
import type { CallStatus } from '../../rpc/call.ts'
import { FairWork, refusedJob } from '../../runtime/fair-work.ts'

/** The properties of a stream or call that authentication looks at. */
export interface Asker {
  readonly isSecure: boolean
  readonly certificateCaller: Caller | undefined
  readonly headers: IncomingHttpHeaders
  /** Identifies the connection: the same object for all streams and calls on one connection. */
  readonly connection: object
  /** Address of the client. */
  readonly peer: string
}

/** The result of authentication: the caller, or the status with which the stream or call is refused. */
export type Authenticated = Caller | Refusal

/** A refusal. `message` is sent to the client and does not depend on the reason; `reason` is for the log only. */
export interface Refusal extends CallStatus {
  readonly reason: string
}

/** Whether the result is a refusal. */
export const isRefused = (authenticated: Authenticated): authenticated is Refusal => 'code' in authenticated

/**
 * Bounds of the tokens being verified: how many at a time, of all clients and of one, and how many wait, with their size in bytes. A token that waits costs less than one that is refused at once, because its client then sends the next. Clients take
 * turns. Streams of one connection with the same token share one verification.
 */
const bounds = { atOnce: 32, ofClient: 8, waiting: 4096, bytes: 8_388_608 }

/** Maximum length of a token, in bytes. */
const tokenBytes = 16_384

/** A verification under way, for streams and calls of one connection. It is given up when all of them have ended. */
class Verification {
  readonly #gone = new AbortController()
  readonly answer: Promise<Authenticated>
  #waiting = 0

  constructor(begin: (gone: AbortSignal) => Promise<Authenticated>) {
    this.answer = begin(this.#gone.signal)
  }

  get isGone(): boolean {
    return this.#gone.signal.aborted
  }

  /** Adds a stream or call, whose signal is aborted when it has ended. */
  join(signal: AbortSignal | undefined): Promise<Authenticated> {
    this.#waiting++
    signal?.addEventListener('abort', () => --this.#waiting === 0 && this.#gone.abort(), { once: true })
    return this.answer
  }
}

/** Verifies a token and returns its caller. `signal` is aborted when nobody waits for the answer any more. */
export type Authenticate = (question: TokenQuestion, signal: AbortSignal) => Promise<TokenAnswer>

/** Whether a remote secret names a cluster. Rejects while that is not known. */
export type IsNamed = (cluster: string) => Promise<boolean>

/** Authenticates callers by the client certificate of the connection, or else by the bearer token of the stream or call. */
export class Authentication {
  readonly #authenticate: Authenticate
  readonly #trusted: (asker: Asker) => void
  readonly #isNamed: IsNamed | undefined
  /** The clusters that are asked about. */
  readonly #asked = new Map<string, Promise<boolean>>()
  readonly #work = new FairWork(bounds)
  /** Verifications under way: by connection, then by question. */
  readonly #open = new Map<object, Map<string, Verification>>()

  /**
   * `trusted` is called for each stream or call whose token was accepted. `isNamed`: for certificates for which another cluster vouches; undefined
   * where no clusters are followed.
   */
  constructor(authenticate: Authenticate, trusted: (asker: Asker) => void = () => undefined, isNamed?: IsNamed) {
    this.#authenticate = authenticate
    this.#trusted = trusted
    this.#isNamed = isNamed
  }

  /**
   * Returns the caller of a stream or call, or a refusal. The result is synchronous unless a token must be verified, or another cluster vouches for a
   * certificate. Plain-text
   * connections are always refused. The promise never rejects. A token is not verified when `signal` is aborted: nobody waits.
   */
  authenticate(asker: Asker, service: TokenQuestion['service'] = 'xds', signal?: AbortSignal): Authenticated | Promise<Authenticated> {
    if (!asker.isSecure) return unauthenticated('the connection is in plain text')
    if (asker.certificateCaller) return this.#vouchedFor(asker.certificateCaller)
    const { authorization = '', clusterid } = asker.headers
    const [, token] = /^bearer +([^ ]+) *$/i.exec(authorization) ?? []
    if (token === undefined) return unauthenticated('neither a client certificate nor a token')
    if (token.length > tokenBytes) return unauthenticated(`the token has more than ${tokenBytes} bytes`)
    const cluster = typeof clusterid === 'string' ? { clusterId: clusterid } : {}
    const authenticated = this.#examine(asker.connection, { token, service, client: clientKey(asker.peer), ...cluster }, signal)
    if (!(authenticated instanceof Promise)) return authenticated
    return authenticated.then((result) => {
      if (!isRefused(result)) this.#trusted(asker)
      return result
    })
  }

  /** A certificate of a pod of another cluster counts as long as the cluster is one of the mesh (docs/identity.md, I12). */
  #vouchedFor(caller: Caller): Authenticated | Promise<Authenticated> {
    const { cluster } = caller
    if (!this.#isNamed || !cluster || cluster.isOwn) return caller
    const { id } = cluster
    const answer = this.#asked.get(id) ?? this.#isNamed(id).finally(() => this.#asked.delete(id))
    this.#asked.set(id, answer)
    return answer.then(
      (isNamed) => (isNamed ? caller : unauthenticated(`no remote secret names the cluster ${described(id)}, which vouches for the certificate`)),
      (error: Error) => unavailable(error.message),
    )
  }

  #examine(
    connection: object,
    question: TokenQuestion & { readonly client: string },
    signal: AbortSignal | undefined,
  ): Promise<Authenticated> | Refusal {
    const open = this.#open.get(connection) ?? new Map<string, Verification>()
    const key = JSON.stringify([question.service, question.clusterId, question.token])
    const same = open.get(key)
    if (same && !same.isGone) return same.join(signal)
    const { client, token } = question
    const verification: Verification = new Verification((gone) => {
      const run = () => this.#verify(question, gone)
      return this.#work
        .run({ client, bytes: token.length, run, isGone: () => gone.aborted })
        .then((authenticated) => (authenticated === refusedJob ? unavailable('too many tokens are being examined') : authenticated))
        .finally(() => {
          if (open.get(key) === verification) open.delete(key)
          if (open.size === 0) this.#open.delete(connection)
        })
    })
    open.set(key, verification)
    this.#open.set(connection, open)
    return verification.join(signal)
  }

  async #verify(question: TokenQuestion, gone: AbortSignal): Promise<Authenticated> {
    try {
      const answer = await this.#authenticate(question, gone)
      if ('caller' in answer) return answer.caller
      return answer.unavailable ? unavailable(answer.refused) : unauthenticated(answer.refused)
    } catch (error) {
      return unavailable((error as Error).message)
    }
  }
}

const unauthenticated = (reason: string): Refusal => ({ code: status.unauthenticated, message: 'authentication failure', reason })
const unavailable = (reason: string): Refusal => ({ code: status.unavailable, message: 'credentials cannot be checked at present', reason })
