/**
 * The agent's token service as an actor (docs/agent.md, "STS"): exchanges the workload's token for a token of its cloud, for the proxy over
 * HTTP and for the relay. It has no peers. Asks: `exchange`, {@link ExchangedToken}, with the subject token; `state`, {@link
 * TokenServiceState}.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { ExchangedToken, TokenServiceConfig, TokenServiceState } from '../../../protocols/messages/sts.ts'
import { accessRequest, federatedRequest, readAccess, readFederated } from '../../../src/sts/cloud-exchange.ts'
import { type Exchanged, requestKey, TokenCache } from '../../../src/sts/token-cache.ts'
import { faultAnswer, formBytes, formType, readTokenRequest, TokenFault, type TokenRequest, tokenAnswer } from '../../../src/sts/token-request.ts'
import { boundedBody } from '../../http/bounded-body.ts'
import { HttpServer } from '../../http/http-server.ts'
import { isOperator } from '../../http/loopback.ts'
import { type OutgoingRequests, outgoingMetrics } from '../../http/outgoing-metrics.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../runtime/actor.ts'
import { patient } from '../../runtime/ask.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { exchange } from '../exchange-client.ts'

/** The maximum number of connections, the timeout for receiving a request in milliseconds, and the maximum number of concurrent exchanges. */
const limits = { connections: 128, requestMs: 10_000, exchanges: 16 }

/** An exchange in progress, and how many requests wait for its result. It is ended when none does. */
interface Running {
  readonly result: Promise<Exchanged>
  readonly unwanted: AbortController
  waiting: number
}

class TokenService implements Behaviour<never, never> {
  readonly asks = {
    exchange: (subjectToken: string, { signal } = patient) => this.#exchangeFor(subjectToken, signal),
    state: (): TokenServiceState => ({ port: this.#server.port }),
  }
  readonly #config: TokenServiceConfig
  readonly #log: ScopedLogger
  /** The log of requests to the cloud. */
  readonly #client: ScopedLogger
  readonly #calls: OutgoingRequests
  readonly #server: HttpServer
  readonly #cache = new TokenCache()
  readonly #running = new Map<string, Running>()

  constructor({ config, log, metrics }: ActorContext<TokenServiceConfig>) {
    this.#config = config
    this.#log = log('stsserver')
    this.#client = log('stsclient')
    this.#calls = outgoingMetrics(metrics)('token_exchange')
    this.#server = new HttpServer((request, response) => void this.#serve(request, response), limits)
  }

  /** Starts to listen, if a port is configured. Rejects when it cannot listen on the port. */
  async start(): Promise<this> {
    const { port, isIpv6Only, plugin } = this.#config
    if ('fault' in plugin) this.#log.warn(`tokens cannot be exchanged: ${plugin.fault}`)
    if (port === undefined) return this
    const host = isIpv6Only ? '::1' : '127.0.0.1'
    await this.#server.listen(host, port).catch((error: Error) => {
      throw new Error(`--stsPort ${port}: ${error.message}`)
    })
    this.#log.info(`token service listens on ${host}, port ${this.#server.port}`)
    return this
  }

  receive(): void {}

  async drain(): Promise<void> {
    for (const { unwanted } of this.#running.values()) unwanted.abort()
    await this.#server.close()
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = URL.parse(request.url ?? '', 'http://localhost')?.pathname
    const answer = (status: number, body: string) => {
      if (!request.complete) response.setHeader('Connection', 'close')
      response.writeHead(status, { 'Content-Type': 'application/json', 'Cache-Control': 'no-store' }).end(body)
    }
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    try {
      if (!isOperator(request)) return answer(403, faultAnswer(new TokenFault('invalid_request', 'only clients on this machine get tokens')))
      if (path === '/stsStatus') return answer(200, this.#cache.status())
      if (path !== '/token') return void response.writeHead(404).end()
      const { access } = await this.#exchanged(await readRequest(request), gone.signal)
      answer(200, tokenAnswer(access.token, secondsLeft(access)))
    } catch (error) {
      const fault = error instanceof TokenFault ? error : new TokenFault('invalid_target', 'the request failed')
      this.#log.warn(`a request for a token failed: ${fault.message}`)
      answer(fault.status, faultAnswer(fault))
    }
  }

  async #exchangeFor(subjectToken: string, gone: AbortSignal): Promise<ExchangedToken> {
    const { access } = await this.#exchanged({ subjectToken, scope: '' }, gone)
    return { token: access.token, expiresInSeconds: secondsLeft(access) }
  }

  /**
   * Returns the result of an exchange: from the cache, from the same exchange in progress, or from a new one. Rejects with {@link
   * TokenFault}. An exchange ends with the last of those who wait for it, `gone`.
   */
  async #exchanged(request: TokenRequest, gone: AbortSignal): Promise<Exchanged> {
    const key = requestKey(request)
    const known = this.#cache.get(key, wallClockMs())
    if (known) return known
    if (gone.aborted) throw new TokenFault('invalid_target', 'the client has gone')
    const running = this.#running.get(key) ?? this.#begin(request, key)
    running.waiting++
    const leave = () => {
      running.waiting--
      if (running.waiting === 0) this.#end(running, key)
    }
    gone.addEventListener('abort', leave, { once: true })
    return running.result.finally(() => gone.removeEventListener('abort', leave))
  }

  #begin(request: TokenRequest, key: string): Running {
    if (this.#running.size >= limits.exchanges) throw new TokenFault('invalid_target', `${limits.exchanges} tokens are being exchanged already`)
    const unwanted = new AbortController()
    const result = this.#exchange(request, key, unwanted.signal).finally(() => {
      if (this.#running.get(key) === running) this.#running.delete(key)
    })
    const running: Running = { result, unwanted, waiting: 0 }
    this.#running.set(key, running)
    return running
  }

  /** Ends an exchange that nobody waits for. The next request for the same token begins another one. */
  #end(running: Running, key: string): void {
    if (this.#running.get(key) !== running) return
    this.#running.delete(key)
    running.unwanted.abort()
  }

  async #exchange(request: TokenRequest, key: string, unwanted: AbortSignal): Promise<Exchanged> {
    const { plugin } = this.#config
    if ('fault' in plugin) throw new TokenFault('invalid_target', plugin.fault)
    try {
      const federated = readFederated(await exchange(federatedRequest(plugin, request), this.#calls, this.#client, unwanted), wallClockMs())
      const access = readAccess(await exchange(accessRequest(plugin, federated.token), this.#calls, this.#client, unwanted), wallClockMs())
      const exchanged = { issuedAt: wallClockMs(), federated, access }
      this.#cache.set(key, exchanged)
      return exchanged
    } catch (error) {
      const reason = (error as Error).message
      const last = this.#cache.get(key, wallClockMs(), 0)
      if (!last || unwanted.aborted) throw new TokenFault('invalid_target', reason)
      this.#client.warn(`a token could not be exchanged again; the previous one is still valid and used: ${reason}`)
      return last
    }
  }
}

const secondsLeft = ({ expiresAt }: { readonly expiresAt: number }): number => Math.max(0, Math.floor((expiresAt - wallClockMs()) / 1000))

/** Reads a token request. Rejects with {@link TokenFault}. */
async function readRequest(request: IncomingMessage): Promise<TokenRequest> {
  const type = request.headers['content-type']
  if (request.method !== 'POST') throw new TokenFault('invalid_request', `the method must be POST, not ${request.method}`)
  if (type !== formType)
    throw new TokenFault('invalid_request', `the content type must be ${formType}, not ${JSON.stringify(type?.slice(0, 100) ?? '')}`)
  const form = await boundedBody(request, formBytes).catch((error: Error) => {
    throw new TokenFault('invalid_request', `the form cannot be read: ${error.message}`)
  })
  return readTokenRequest(form)
}

/** Definition of the actor. */
export const actor: ActorDefinition<TokenServiceConfig, never, never> = {
  kind: 'sts',
  start: (context) => new TokenService(context).start(),
}
