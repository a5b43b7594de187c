/** A small HTTP/1.1 server for pages: exact paths, GET and forms, limited requests; over TCP, TLS or a unix socket. */
import type { IncomingHttpHeaders, IncomingMessage, ServerOptions, ServerResponse } from 'node:http'
// biome-ignore lint/style/noRestrictedImports: given to HttpServer, which bounds it
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https'
import type { TlsOptions } from 'node:tls'
import type { ServingCertificate } from '../../protocols/messages/certificates.ts'
import type { ConnectionEnds } from '../../src/identity/socket-table.ts'
import { printable } from '../../src/logging/layout.ts'
import { nearest } from '../../src/model/edit-distance.ts'
import type { Rpcs } from '../rpc/rpc-methods.ts'
import type { WholeResponse } from '../rpc/unary-calls.ts'
import { mediaTypes } from '../runtime/metrics-format.ts'
import { BodyTooLarge, boundedBytes } from './bounded-body.ts'
import { serveWith, tlsDefaults } from './certificate.ts'
import { htmlPage, htmlType, linkTable, textPage } from './html.ts'
import { HttpServer, type HttpServerOptions } from './http-server.ts'
import { RpcPages } from './rpc-pages.ts'
import type { SocketPlace } from './unix-socket.ts'

/** A response. What a terminal obeys instead of showing it is escaped as it is sent, but in metrics; text is ended with a newline. */
export class Page {
  readonly status: number
  readonly type: string
  /** Text, or bytes that are sent as they are. */
  readonly body: string | Uint8Array
  readonly headers: Readonly<Record<string, string>>
  constructor(body: string | Uint8Array, type = 'text/plain; charset=utf-8', status = 200, headers: Readonly<Record<string, string>> = {}) {
    this.status = status
    this.type = type
    this.body = body
    this.headers = headers
  }
}

/** Thrown for a request that is refused, with the response. */
export class Refused extends Error {
  readonly page: Page
  constructor(page: Page) {
    super(String(page.body))
    this.page = page
  }
}

/** A request for a page. */
export interface PageRequest {
  /** HEAD requests have the method GET here. */
  readonly method: 'GET' | 'POST' | 'PUT'
  /** The path of the URL. */
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** The parameters of the URL. */
  readonly query: URLSearchParams
  /** Returns a signal that is aborted when the client is gone. */
  gone(): AbortSignal
  /** The ends of the connection, without addresses over a unix socket: the same object for all requests of one connection. */
  readonly connection: ConnectionEnds
  /**
   * The parameters of the form sent with POST; otherwise those of the URL. The body is read by this call; a body that is too long or not
   * a form is refused.
   */
  parameters(): Promise<URLSearchParams>
  /** The body as text, which is read by this call; one that is too long is refused. */
  body(): Promise<string>
  /**
   * The body, which is read by this call; one of more than `most` bytes is refused. `take` is called with the size of each piece, and may throw
   * a {@link Refused}.
   */
  bytes(most: number, take: (bytes: number) => void): Promise<Buffer>
}

/** Answers a request. Errors thrown are answered with 500 and their message. */
export type Answer = (request: PageRequest) => Page | Promise<Page>

/** The answers of a page by method; other methods are answered with 405. */
export interface Answers {
  readonly get?: Answer
  readonly post?: Answer
  readonly put?: Answer
}

/** Settings of a page server. */
export interface PageServerOptions {
  /** Maximum number of connections ({@link HttpServer}). */
  readonly maxConnections?: number
  /** Maximum size of a form, in bytes. */
  readonly formBytes?: number
  /** Maximum time for receiving a request, in milliseconds. */
  readonly requestMs?: number
  /** How long a connection stays open without a request, in milliseconds ({@link HttpServer}). */
  readonly idleMs?: number
  /** The first certificate, for pages over TLS ({@link PageServer.useCertificate}). Without it, pages are served in plain text. */
  readonly certificate?: ServingCertificate
  /** Settings of TLS without a certificate, in its place: with a key that both ends have. */
  readonly tls?: TlsOptions
  /** Called for each connection that is closed because of `maxConnections`. */
  readonly refused?: () => void
  /** Takes the connections of HTTP/2 ({@link HttpServer}). */
  readonly http2?: HttpServerOptions['http2']
}

/** Media types that a browser is shown as HTML. */
const wrapped: ReadonlySet<string> = new Set(['text/plain; charset=utf-8', 'application/json; charset=utf-8'])

/** Whether a request comes from a browser, which shows HTML. */
export const acceptsHtml = ({ accept }: IncomingHttpHeaders): boolean => accept?.includes('text/html') ?? false

/** The front page: the pages of a server with what they are about, for browsers in HTML, otherwise a line each. */
function frontPage(listed: ReadonlyMap<string, string>, isHtml: boolean): Page {
  if (!isHtml) return new Page([...listed].map(([path, about]) => `${path.padEnd(12)} ${about}`).join('\n'))
  return new Page(htmlPage('Pages', linkTable([...listed].map(([path, about]) => ({ href: path, text: path, about })))), htmlType)
}

/** Default of the maximum number of connections. */
const maxPages = 512

/** Serves pages, in plain text or over TLS. */
export class PageServer {
  readonly #pages = new Map<string, Answers>()
  /** What the pages are about that `/` lists, by path. */
  readonly #listed = new Map<string, string>()
  readonly #server: HttpServer
  #rpcs: RpcPages | undefined
  #secure: SecureServer | undefined
  readonly #formBytes: number

  constructor(options: PageServerOptions = {}) {
    const { maxConnections: connections = maxPages, formBytes = 1_048_576, requestMs = 60_000, idleMs, certificate, tls, refused, http2 } = options
    this.#formBytes = formBytes
    const serve = (request: IncomingMessage, response: ServerResponse) =>
      void this.#serve(request, response)
        .catch((error: unknown) => (error instanceof Refused ? error.page : new Page(String((error as Error)?.message ?? error), undefined, 500)))
        .then((answer) => send(request, response, answer))
    const isSecure = certificate !== undefined || tls !== undefined
    const secure = isSecure && { secure: (http: ServerOptions) => (this.#secure = createSecureServer({ ...http, ...tlsDefaults, ...tls })) }
    this.#server = new HttpServer(serve, { connections, requestMs, idleMs, ...(secure || {}), ...(refused ? { refused } : {}), http2 })
    if (certificate) this.useCertificate(certificate)
  }

  /** The port that it listens on; undefined when it does not listen, and for a unix socket. */
  get port(): number | undefined {
    return this.#server.port
  }

  /**
   * Adds a page with its answers by method; a function answers GET only. A path that ends with `/*` is that of all pages in a folder without
   * one of their own, with `/**` also of those in its folders. `about`: what the page is about; the front page `/`, which is there once one
   * page has that, lists it.
   */
  add(path: string, answers: Answers | Answer, about?: string): void {
    this.#pages.set(path, typeof answers === 'function' ? { get: answers } : answers)
    if (about === undefined) return
    this.#listed.set(path, about)
    if (!this.#pages.has('/')) this.add('/', ({ headers }) => frontPage(this.#listed, acceptsHtml(headers)))
  }

  /** Serves unary RPCs by Connect and gRPC-Web, which have their own access control. `failed` is called with errors that are not the client's. */
  addRpcs(rpcs: Rpcs, failed: (path: string, error: unknown) => void): void {
    this.#rpcs = new RpcPages(rpcs, failed)
  }

  /** Starts to listen. Rejects when the address cannot be bound. */
  listen(host: string, port: number): Promise<void> {
    return this.#server.listen(host, port)
  }

  /** Starts to listen on a unix socket (`LocalSocket`). */
  listenLocally(place: SocketPlace): Promise<void> {
    return this.#server.listenLocally(place)
  }

  /** Uses a certificate for new connections. No effect on a plain-text server. */
  useCertificate(certificate: ServingCertificate): void {
    if (this.#secure) serveWith(this.#secure, certificate)
  }

  /** Ends in order ({@link HttpServer.end}). */
  end(ms: number): Promise<void> {
    return this.#server.end(ms)
  }

  /** Stops listening and closes all connections. */
  close(): Promise<void> {
    return this.#server.close()
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<Page | WholeResponse> {
    const url = URL.parse(request.url ?? '', 'http://localhost')
    if (!url) return new Page('the request URL is invalid', undefined, 400)
    if (this.#rpcs?.has(url.pathname)) {
      return (await this.#rpcs.answer(url.pathname, request, goneSignal(response))) ?? new Page('internal error', undefined, 500)
    }
    const answers = this.#pages.get(url.pathname) ?? this.#pages.get(url.pathname.replace(/[^/]+$/, '*')) ?? this.#below(url.pathname)
    if (!answers) {
      const page = new Page(this.#unknown(url.pathname), undefined, 404)
      return acceptsHtml(request.headers) ? this.#forBrowser(url.pathname, page) : page
    }
    const method = request.method === 'HEAD' ? 'GET' : request.method
    if (method !== 'GET' && method !== 'POST' && method !== 'PUT') return notAnswered(request.method ?? '', answers)
    const answer = { GET: answers.get, POST: answers.post, PUT: answers.put }[method]
    if (!answer) return notAnswered(request.method ?? '', answers)
    const { headers, socket } = request
    const page = await answer({
      ...{ method, path: url.pathname, headers, query: url.searchParams, connection: socket },
      gone: () => goneSignal(response),
      parameters: () => this.#parameters(request, url),
      body: async () => (await this.#bytes(request)).toString(),
      bytes: (most, take) => this.#bytes(request, most, take),
    })
    return method === 'GET' && acceptsHtml(headers) ? this.#forBrowser(url.pathname, page) : page
  }

  /** What is said of a path that has no page. */
  #unknown(path: string): string {
    const pages = [...this.#pages.keys()].filter((page) => !page.includes('*'))
    const near = path.length < 100 ? nearest(path, pages) : undefined
    return `there is no page ${path}${near === undefined ? '' : `; did you mean ${near}?`}`
  }

  /** A page as a browser shows it: text and JSON with a way back, where the server has a front page. */
  #forBrowser(path: string, { type, body, status, headers }: Page): Page {
    if (typeof body !== 'string' || !wrapped.has(type) || !this.#pages.has('/')) return new Page(body, type, status, headers)
    const above = ['/', '/debug'].filter((one) => this.#pages.has(one) && (one === '/' || path.startsWith(`${one}/`)))
    return new Page(textPage(path, body, above), htmlType, status, { 'Content-Security-Policy': "default-src 'none'", ...headers })
  }

  /** The answers of the first folder of a path, if all that is in it has the same. */
  #below(path: string): Answers | undefined {
    return this.#pages.get(`${path.replace(/^(\/[^/]*)\/.*$/, '$1')}/**`)
  }

  async #parameters(request: IncomingMessage, url: URL): Promise<URLSearchParams> {
    const type = request.headers['content-type']?.split(';')[0]?.trim().toLowerCase()
    if (request.method !== 'POST' || type === undefined) return url.searchParams
    if (type !== 'application/x-www-form-urlencoded')
      throw new Refused(new Page('the request body must be a form (application/x-www-form-urlencoded)', undefined, 415))
    return new URLSearchParams((await this.#bytes(request)).toString())
  }

  async #bytes(request: IncomingMessage, most = this.#formBytes, take?: (bytes: number) => void): Promise<Buffer> {
    return boundedBytes(request, most, take).catch((error: Error) => {
      throw error instanceof BodyTooLarge ? new Refused(new Page(`the request body is larger than ${most} bytes`, undefined, 413)) : error
    })
  }
}

/** Returns a signal that is aborted when the client of a response is gone. */
function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController()
  const leave = () => gone.abort('the client is gone')
  response.once('close', leave)
  if (response.closed) leave()
  return gone.signal
}

/** The response for a method that a page does not answer. */
export function notAnswered(method: string, { get, post, put }: Readonly<Partial<Record<keyof Answers, unknown>>>): Page {
  const allowed = [...(get ? ['GET'] : []), ...(post ? ['POST'] : []), ...(put ? ['PUT'] : [])].join(', ')
  return new Page(`method ${method} is not allowed here; allowed: ${allowed}`, undefined, 405, { Allow: allowed })
}

const metricsTypes: ReadonlySet<string> = new Set(Object.values(mediaTypes))

function send(request: IncomingMessage, response: ServerResponse, answer: Page | WholeResponse): void {
  // The unread rest of a request is not worth reading, so the connection is closed.
  if (!request.complete) response.setHeader('Connection', 'close')
  const { status, headers, body } = answer instanceof Page ? sentPage(answer) : sentRpc(answer)
  response.writeHead(status, { ...headers, 'Content-Length': Buffer.byteLength(body) })
  response.end(request.method === 'HEAD' ? undefined : body)
}

type Sent = Pick<Page, 'status' | 'headers'> & { readonly body: string | Uint8Array }

function sentPage({ status, headers, type, body }: Page): Sent {
  // Metrics are for programs, whose syntax has no such escapes.
  const sent = typeof body !== 'string' || metricsTypes.has(type) ? body : endedLine(printable(body))
  return { status, headers: { ...headers, 'Content-Type': type }, body: sent }
}

/** Ends a text with a newline, as a terminal wants it. The empty text, which says that all is well, stays empty. */
const endedLine = (text: string): string => (text === '' || text.endsWith('\n') ? text : `${text}\n`)

/** Headers of answers to RPCs against content sniffing, caching, and inclusion by other sites. */
const guarded = { 'X-Content-Type-Options': 'nosniff', 'Cache-Control': 'no-store', 'Cross-Origin-Resource-Policy': 'same-origin' }

/** Messages in JSON are shown on terminals, too. */
function sentRpc({ status, headers, body }: WholeResponse): Sent {
  const whole = Buffer.concat(body)
  const isText = headers['content-type']?.startsWith('application/json') ?? false
  const { 'content-length': _, ...others } = headers
  return { status, headers: { ...others, ...guarded }, body: isText ? printable(whole.toString()) : whole }
}
