/** A small HTTP/1.1 server for pages: exact paths, GET and forms, bounded requests, over TCP, TLS or a unix socket. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http'
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https'
import type { ServingCertificate } from '../../protocols/messages/certificates.ts'
import { BodyTooLarge, boundedBody } from './bounded-body.ts'
import { serveWith, tlsDefaults } from './certificate.ts'
import { answerUnreadable, limitConnectionsTo, listenOn } from './http-server.ts'
import { listenLocally } from './unix-socket.ts'

/** What is answered. */
export class Page {
  readonly status: number
  readonly type: string
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
  constructor(body: string, type = 'text/plain; charset=utf-8', status = 200, headers: Readonly<Record<string, string>> = {}) {
    this.status = status
    this.type = type
    this.body = body
    this.headers = headers
  }
}

/** A request that is not served, with the page that says so. */
class Refused extends Error {
  readonly page: Page
  constructor(page: Page) {
    super(page.body)
    this.page = page
  }
}

/** A request for a page. */
export interface PageRequest {
  /** HEAD is GET. */
  readonly method: 'GET' | 'POST'
  readonly headers: IncomingHttpHeaders
  /** The addresses of both ends of the connection; undefined over a unix socket. */
  readonly localAddress: string | undefined
  readonly remoteAddress: string | undefined
  /** The parameters of the form that came with POST, else of the URL. The form is read now; one that is too long, or is none, is refused. */
  parameters(): Promise<URLSearchParams>
}

/** Answers a request. Throwing is answered with 500 and the error's message. */
export type Answer = (request: PageRequest) => Page | Promise<Page>

/** How a page answers each method; without one, the method is answered with 405. */
export interface Answers {
  readonly get?: Answer
  readonly post?: Answer
}

/** What a server of pages is told when it is made. */
export interface PageServerOptions {
  /** Connections at a time ({@link limitConnectionsTo}; over TLS one more is closed at once). As many as come when this is left out. */
  readonly maxConnections?: number
  /** Longest form in bytes. */
  readonly formBytes?: number
  /** Longest time a client may take to send a request, in milliseconds. */
  readonly requestMs?: number
  /** The first certificate, for pages over TLS ({@link PageServer.useCertificate}); they are served in plain text without one. */
  readonly certificate?: ServingCertificate
  /** Hears of connections that are closed at once. */
  readonly refused?: () => void
}

/** Serves pages, in plain text or over TLS. */
export class PageServer {
  readonly #pages = new Map<string, Answers>()
  readonly #server: Server
  readonly #secure: SecureServer | undefined
  readonly #formBytes: number

  constructor(options: PageServerOptions = {}) {
    const { maxConnections, formBytes = 1_048_576, requestMs = 60_000, certificate, refused } = options
    this.#formBytes = formBytes
    const http: ServerOptions = { requestTimeout: requestMs, headersTimeout: requestMs }
    const serve = (request: IncomingMessage, response: ServerResponse) =>
      void this.#serve(request)
        .catch((error: unknown) => (error instanceof Refused ? error.page : new Page(String((error as Error)?.message ?? error), undefined, 500)))
        .then((page) => send(request, response, page))
    this.#secure = certificate && createSecureServer({ ...http, ...tlsDefaults }, serve)
    this.#server = this.#secure ?? createServer(http, serve)
    if (certificate) this.useCertificate(certificate)
    if (maxConnections !== undefined && Number.isFinite(maxConnections)) {
      // The requests of a server over TLS name other sockets than its connections do.
      if (this.#secure) this.#server.maxConnections = maxConnections
      else limitConnectionsTo(maxConnections, this.#server, refused)
    }
    if (refused) this.#server.on('drop', refused)
    answerUnreadable(this.#server)
  }

  /** Adds a page by how it answers each method; a function answers GET alone. */
  add(path: string, answers: Answers | Answer): void {
    this.#pages.set(path, typeof answers === 'function' ? { get: answers } : answers)
  }

  /** Starts to listen. Rejects when the address cannot be bound. */
  listen(host: string, port: number): Promise<void> {
    return listenOn(this.#server, host, port)
  }

  /** Starts to listen on a unix socket ({@link listenLocally}). */
  listenLocally(path: string): Promise<void> {
    return listenLocally(this.#server, path)
  }

  /** Serves connections that come from now on with this certificate. No effect on a server of plain text. */
  useCertificate(certificate: ServingCertificate): void {
    if (this.#secure) serveWith(this.#secure, certificate)
  }

  /** Ends all connections. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve())
      this.#server.closeAllConnections()
    })
  }

  async #serve(request: IncomingMessage): Promise<Page> {
    const url = URL.parse(request.url ?? '', 'http://localhost')
    if (!url) return new Page('the address cannot be read', undefined, 400)
    const answers = this.#pages.get(url.pathname)
    if (!answers) return new Page(`there is no page ${url.pathname}`, undefined, 404)
    const method = request.method === 'HEAD' ? 'GET' : request.method
    const answer = method === 'GET' ? answers.get : method === 'POST' ? answers.post : undefined
    if (!answer || (method !== 'GET' && method !== 'POST')) return notAnswered(request.method ?? '', answers)
    const { headers, socket } = request
    const { localAddress, remoteAddress } = socket
    return answer({ method, headers, localAddress, remoteAddress, parameters: () => this.#parameters(request, url) })
  }

  async #parameters(request: IncomingMessage, url: URL): Promise<URLSearchParams> {
    const type = request.headers['content-type']?.split(';')[0]?.trim().toLowerCase()
    if (request.method !== 'POST' || type === undefined) return url.searchParams
    if (type !== 'application/x-www-form-urlencoded') throw new Refused(new Page('only forms are read here', undefined, 415))
    const body = boundedBody(request, this.#formBytes).catch((error: Error) => {
      throw error instanceof BodyTooLarge ? new Refused(new Page(`a form has at most ${this.#formBytes} bytes`, undefined, 413)) : error
    })
    return new URLSearchParams(await body)
  }
}

/** Says which methods a page answers. A page that only acts is asked with POST. */
export function notAnswered(method: string, { get, post }: { readonly get?: unknown; readonly post?: unknown }): Page {
  const allowed = [...(get ? ['GET'] : []), ...(post ? ['POST'] : [])].join(', ')
  return new Page(`${method} is not answered here, ${allowed} is`, undefined, 405, { Allow: allowed })
}

function send(request: IncomingMessage, response: ServerResponse, page: Page): void {
  // What is left of a request that was not read to its end is not worth reading.
  if (!request.complete) response.setHeader('Connection', 'close')
  response.writeHead(page.status, { ...page.headers, 'Content-Type': page.type, 'Content-Length': Buffer.byteLength(page.body) })
  response.end(request.method === 'HEAD' ? undefined : page.body)
}
