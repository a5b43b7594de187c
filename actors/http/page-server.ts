/** A small HTTP/1.1 server for pages: exact paths, GET and forms, bounded requests. */
import { createServer, type IncomingMessage, type Server, type ServerOptions, type ServerResponse } from 'node:http'
import { createServer as createSecureServer, type Server as SecureServer } from 'node:https'
import { text } from 'node:stream/consumers'
import type { ServingCertificate } from '../../protocols/messages/certificates.ts'
import { serveWith, tlsDefaults } from './certificate.ts'

/** What is answered. */
export class Page {
  readonly status: number
  readonly type: string
  readonly body: string
  constructor(body: string, type = 'text/plain; charset=utf-8', status = 200) {
    this.status = status
    this.type = type
    this.body = body
  }
}

/** Answers a request, given the parameters of its URL, or of its form. Throwing is answered with 500 and the error's message. */
export type Answer = (parameters: URLSearchParams) => Page | Promise<Page>

interface Entry {
  readonly answer: Answer
  readonly forms: boolean
}

/** What a server of pages is told when it is made. */
export interface PageServerOptions {
  /** Connections at a time; one more is closed at once. As many as come when this is left out. */
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
  readonly #pages = new Map<string, Entry>()
  readonly #server: Server
  readonly #secure: SecureServer | undefined
  readonly #formBytes: number

  constructor(options: PageServerOptions = {}) {
    const { maxConnections, formBytes = 1_048_576, requestMs = 60_000, certificate, refused } = options
    this.#formBytes = formBytes
    const http: ServerOptions = { requestTimeout: requestMs, headersTimeout: requestMs }
    const serve = (request: IncomingMessage, response: ServerResponse) =>
      void this.#serve(request)
        .catch((error: unknown) => new Page(error instanceof Error ? error.message : String(error), undefined, 500))
        .then((page) => send(request, response, page))
    this.#secure = certificate && createSecureServer({ ...http, ...tlsDefaults }, serve)
    this.#server = this.#secure ?? createServer(http, serve)
    if (certificate) this.useCertificate(certificate)
    if (maxConnections !== undefined && Number.isFinite(maxConnections)) this.#server.maxConnections = maxConnections
    if (refused) this.#server.on('drop', refused)
    // What is not HTTP is answered with 400 by Node and closed; a client that is gone meanwhile is no error of this process.
    this.#server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
      if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy()
      else socket.end(`HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n`)
    })
  }

  /** Adds a page that is asked for with GET; with `forms` its parameters may also come as the body of a form. */
  add(path: string, answer: Answer, forms = false): void {
    this.#pages.set(path, { answer, forms })
  }

  /** Starts to listen. Rejects when the address cannot be bound. */
  listen(host: string, port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen({ host, port }, () => {
        this.#server.off('error', reject)
        resolve()
      })
    })
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
    const entry = this.#pages.get(url.pathname)
    if (!entry) return new Page(`there is no page ${url.pathname}`, undefined, 404)
    if (request.method === 'GET' || request.method === 'HEAD') return entry.answer(url.searchParams)
    if (request.method !== 'POST' || !entry.forms) return new Page(`${request.method} is not answered here`, undefined, 405)
    const type = request.headers['content-type']?.split(';')[0]?.trim().toLowerCase()
    if (type === undefined) return entry.answer(url.searchParams)
    if (type !== 'application/x-www-form-urlencoded') return new Page('only forms are read here', undefined, 415)
    const body = await bounded(request, this.#formBytes)
    return body === undefined ? new Page(`a form has at most ${this.#formBytes} bytes`, undefined, 413) : entry.answer(new URLSearchParams(body))
  }
}

/** The body of a request; undefined when it is too long. */
async function bounded(request: IncomingMessage, most: number): Promise<string | undefined> {
  let length = 0
  return text(
    (async function* () {
      for await (const chunk of request) {
        length += (chunk as Buffer).length
        if (length > most) return
        yield chunk as Buffer
      }
    })(),
  ).then((body) => (length > most ? undefined : body))
}

function send(request: IncomingMessage, response: ServerResponse, page: Page): void {
  // What is left of a request that was not read to its end is not worth reading.
  if (!request.complete) response.setHeader('Connection', 'close')
  if (page.status === 405) response.setHeader('Allow', 'GET')
  response.writeHead(page.status, { 'Content-Type': page.type, 'Content-Length': Buffer.byteLength(page.body) })
  response.end(request.method === 'HEAD' ? undefined : page.body)
}
