/**
 * Single calls to the API server of a cluster, on the main thread: the operations and types of the client library over the HTTP/2 connection of
 * {@link ApiSession}. The library's own transport would make a connection for each call.
 */
import type { Configuration } from '@kubernetes/client-node'
import type { DiscoveryOptions } from '../../../protocols/messages/discovery.ts'
import { buildInfo } from '../../../src/cli/build-info.ts'
import { type AccessVerb, checkDeclared } from '../../../src/orchestrator/access.ts'
import type { Resource } from '../../../src/orchestrator/resources.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { deadlineAfter } from '../../runtime/timers.ts'
import { type ApiCall, ApiSession, type SessionParts } from './api-session.ts'
import type { ClusterConnection } from './cluster-connection.ts'
import { FollowedResource, type ResourceEvents } from './followed-resource.ts'

/** What a call does: the verb and the resource as in RBAC rules (`create`, `tokenreviews.authentication.k8s.io`). */
export interface CallName {
  readonly verb: Exclude<AccessVerb, 'watch'>
  readonly resource: string
  /** The object: `<namespace>/<name>`, or a name; undefined for one that has none yet. */
  readonly object?: string
}

/** A call that failed. `code`: the HTTP status; 0: the server was not reached, or its answer cannot be read. */
export class ApiFailure extends Error {
  readonly code: number
  /** The word of the server for the reason: `AlreadyExists`, `Conflict`, `Expired`; empty without one. */
  readonly reason: string
  /** The object that the server names in its `Status`: its resource and its name, where it tells them. It need not be the one that was called for. */
  readonly subject: { readonly kind?: unknown; readonly name?: unknown }
  /** Whether it is the size of this object that the store does not take, which the server tells as a fault of its own. */
  readonly isTooLarge: boolean
  /** Whether the caller may not make such calls. A quota or an admission refuses one object, with the same code. */
  readonly isOfRole: boolean

  /** `said`: the whole message of the server, of which `message` may have the beginning. */
  constructor(message: string, code: number, reason: string, subject: ApiFailure['subject'] = {}, said = message) {
    super(message)
    this.code = code
    this.reason = reason
    this.subject = subject
    this.isTooLarge = code === 413 || (code >= 500 && /request is too large|message larger than max/.test(said))
    this.isOfRole = code === 403 && (reason !== 'Forbidden' || /cannot \S+ (resource|path) /.test(said))
  }

  /** Whether the object does not exist. A server that cannot be reached does not say that. */
  get isMissing(): boolean {
    return this.code === 404
  }

  /** Whether somebody else has created or changed the object meanwhile. */
  get isConflict(): boolean {
    return this.code === 409
  }

  /** Whether the same call may succeed later: the server was not reached, is overloaded, or has a fault. */
  get mayPass(): boolean {
    return this.code === 0 || this.code === 401 || this.code === 429 || (this.code >= 500 && !this.isTooLarge)
  }
}

/** The settings of requests to an API server: of each thread that sends some. */
export type RequestSettings = Omit<SessionParts, 'access' | 'log'>

/** The settings of requests that flags give. */
export const requestSettings = (options: Pick<DiscoveryOptions, 'orchestratorApiQPS' | 'orchestratorApiBurst'>): RequestSettings => ({
  perSecond: options.orchestratorApiQPS,
  burst: options.orchestratorApiBurst,
  userAgent: `pilot-discovery/${buildInfo().version} (${process.platform}/${process.arch})`,
})

/** The longest time of a call, and the largest answer. */
const limits = { callMs: 10_000, answerBytes: 32 * 1024 * 1024 }

/** What permits calls to be made. */
export interface Fence {
  /** Throws an Error when nothing may be sent any more. Called immediately before each request is sent, after all that it had to wait for. */
  permit(): void
  /** Aborted when calls under way are to be given up. */
  readonly signal: AbortSignal
}

/** Calls the API server of one cluster. */
export class ClusterCalls {
  readonly #session: ApiSession
  readonly #callMs: number
  readonly #fence: Fence | undefined
  readonly #answerBytes: number
  #configuration: Promise<Configuration> | undefined
  readonly #apis = new Map<unknown, unknown>()

  constructor(session: ApiSession, callMs: number, fence?: Fence, answerBytes = limits.answerBytes) {
    this.#session = session
    this.#callMs = callMs
    this.#fence = fence
    this.#answerBytes = answerBytes
  }

  /**
   * Calls an operation of the client library. `apiOf` picks the class of its API. Rejects with {@link ApiFailure}, after at most 10 s unless told otherwise. A
   * credential that the server refuses is replaced and the call repeated once.
   */
  async call<Api, Answer>(
    name: CallName,
    apiOf: (library: typeof import('@kubernetes/client-node')) => new (configuration: Configuration) => Api,
    operation: (api: Api) => Promise<Answer>,
  ): Promise<Answer> {
    checkDeclared(name.verb, name.resource)
    const library = await import('@kubernetes/client-node')
    const type = apiOf(library)
    const configuration = await (this.#configuration ??= this.#configure())
    const api = (this.#apis.get(type) as Api | undefined) ?? new type(configuration)
    this.#apis.set(type, api)
    const attempt = () => operation(api).catch((error: unknown) => Promise.reject(failureOf(name, error)))
    return attempt().catch((failure: ApiFailure) => {
      if (failure.code !== 401) throw failure
      this.#session.refused()
      return attempt()
    })
  }

  /**
   * Sends a request that the client library has no types for, as {@link ClusterCalls.call} does. Resolves with the body of the answer.
   */
  async request(name: CallName, request: Pick<ApiCall, 'method' | 'path' | 'accept' | 'body'>): Promise<string> {
    checkDeclared(name.verb, name.resource)
    const attempt = async () => {
      const { status, body } = await this.#exchange(request).catch((error: unknown) => Promise.reject(failureOf(name, error)))
      const text = body.toString('utf8')
      if (status >= 300) throw failureOf(name, { code: status, body: text })
      return text
    }
    return attempt().catch((failure: ApiFailure) => {
      if (failure.code !== 401) throw failure
      this.#session.refused()
      return attempt()
    })
  }

  async #configure(): Promise<Configuration> {
    const { createConfiguration, ResponseContext, ServerConfiguration, wrapHttpLibrary } = await import('@kubernetes/client-node')
    return createConfiguration({
      // The session knows the address, which may change, and adds it and the credential.
      baseServer: new ServerConfiguration('https://cluster', {}),
      httpApi: wrapHttpLibrary({
        send: async (request) => {
          const { pathname, search } = new URL(request.getUrl())
          const text = request.getBody()
          const type = request.getHeaders()['Content-Type'] ?? 'application/json'
          const { status, headers, body } = await this.#exchange({
            method: request.getHttpMethod() as ApiCall['method'],
            path: `${pathname}${search}`,
            accept: 'application/json',
            ...(typeof text === 'string' ? { body: { text, type } } : {}),
          })
          const answer = body.toString('utf8')
          return new ResponseContext(status, headers, { text: async () => answer, binary: async () => body, stream: () => null })
        },
      }),
    })
  }

  #exchange(request: Omit<ApiCall, 'permit'>): Promise<ApiAnswer> {
    return exchange(this.#session, request, { callMs: this.#callMs, answerBytes: this.#answerBytes, fence: this.#fence })
  }
}

/** A whole answer of an API server. */
interface ApiAnswer {
  readonly status: number
  readonly headers: Record<string, string>
  readonly body: Buffer
}

/** Sends a request and resolves with the whole answer. Rejects with the reason when there is none within the bounds. */
export function exchange(
  session: Pick<ApiSession, 'send'>,
  request: Omit<ApiCall, 'permit'>,
  { callMs = limits.callMs, answerBytes = limits.answerBytes, fence }: { callMs?: number; answerBytes?: number; fence?: Fence | undefined } = {},
): Promise<ApiAnswer> {
  return new Promise((resolve, reject) => {
    const parts: Uint8Array[] = []
    let [status, length] = [0, 0]
    let headers: Record<string, string> = {}
    const end = () => {
      late.cancel()
      fence?.signal.removeEventListener('abort', given)
    }
    const fail = (reason: string) => {
      end()
      reject(new Error(reason))
    }
    const giveUp = (reason: string) => {
      sent.abandon()
      fail(reason)
    }
    const given = () => giveUp('the call was given up')
    fence?.signal.addEventListener('abort', given)
    const sent = session.send(
      { ...request, permit: fence && (() => fence.permit()) },
      {
        answered: (code, all) => {
          status = code
          headers = Object.fromEntries(Object.entries(all).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])))
        },
        received: (bytes) => {
          length += bytes.length
          if (length > answerBytes) throw new Error(`the answer has more than ${answerBytes} bytes`)
          parts.push(bytes)
        },
        ended: () => {
          end()
          resolve({ status, headers, body: Buffer.concat(parts) })
        },
        broken: fail,
      },
    )
    const late = deadlineAfter(callMs, () => giveUp(`no answer within ${callMs / 1000} s`))
  })
}

/** Calls the API server of one cluster over a connection of its own, which is opened with the first call. */
export class ClusterApi extends ClusterCalls {
  readonly #session: ApiSession
  readonly #callMs: number
  #log: ScopedLogger | undefined

  /** `callMs`: the longest time of a call. `answerBytes`: the largest answer. */
  constructor(connection: Pick<ClusterConnection, 'access'>, settings: RequestSettings, callMs = limits.callMs, answerBytes = limits.answerBytes) {
    // The log is opened later.
    const line = (level: 'debug' | 'info' | 'warn' | 'error') => (text: string) => this.#log?.[level](text)
    const session = new ApiSession({
      ...settings,
      access: (isRefused) => connection.access(isRefused),
      log: { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') },
    })
    super(session, callMs, undefined, answerBytes)
    this.#session = session
    this.#callMs = callMs
  }

  /** Returns one on the same connection whose calls are sent only while a fence permits it. */
  fenced(fence: Fence): ClusterCalls {
    return new ClusterCalls(this.#session, this.#callMs, fence)
  }

  /** Returns the following of a resource on the same connection. Nothing is sent before it is started. */
  followed<Item>(resource: Resource, events: ResourceEvents<Item>): FollowedResource<Item> {
    for (const verb of ['list', 'watch'] as const) checkDeclared(verb, resource.name)
    return new FollowedResource(resource, this.#session, events)
  }

  /** Sets where connections and requests are logged. */
  logTo(log: ScopedLogger): void {
    this.#log = log
  }

  /** Has the next call open another connection: the present one may be dead without having been closed. */
  reconnect(): void {
    this.#session.renew()
  }

  /** Ends the connection. Calls under way fail. */
  close(): void {
    this.#session.close()
  }
}

/** Describes what went wrong with a call, in words for an operator. */
function failureOf({ verb, resource, object }: CallName, error: unknown): ApiFailure {
  const what = `${verb} of ${resource}${object === undefined ? '' : ` ${object}`}`
  const { code, body, message } = error as { code?: unknown; body?: unknown; message?: string }
  if (typeof code !== 'number') return new ApiFailure(`${what} failed: ${message}`, 0, '')
  const status = statusIn(body)
  const said = status.message ?? `status ${code}`
  const failure = (beginning: string) => new ApiFailure(`${beginning}: ${said.slice(0, 500)}`, code, status.reason ?? '', status.details ?? {}, said)
  const other = failure(`${what} failed`)
  return other.isOfRole ? failure(`the role of this service account does not permit "${verb}" of "${resource}"`) : other
}

/** The `Status` object of a refusal, which the library leaves as text where it does not know the HTTP status. */
function statusIn(body: unknown): { readonly message?: string; readonly reason?: string; readonly details?: ApiFailure['subject'] } {
  try {
    const value: unknown = typeof body === 'string' ? JSON.parse(body) : body
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}
