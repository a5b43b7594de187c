/**
 * An API server of a cluster with one Service, which tells the truth in JSON at first and then lies, floods, stalls or leads elsewhere. It presents the
 * certificate of a real cluster, so that configurations for that one lead to it.
 */
import { readFileSync } from 'node:fs'
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'

/** What is asked for: the plural of a kind, whether it is a watch, and the whole path. */
export interface Asked {
  readonly plural: string
  readonly isWatch: boolean
  readonly path: string
}

/** Answers in another way than the truth. */
export type Lie = (stream: ServerHttp2Stream, asked: Asked) => void

const kinds: Readonly<Record<string, string>> = {
  namespaces: 'Namespace',
  nodes: 'Node',
  pods: 'Pod',
  services: 'Service',
  endpointslices: 'EndpointSlice',
}

/** Begins an answer in JSON. */
export const answers = (stream: ServerHttp2Stream, status = 200, headers: Record<string, string> = {}) =>
  stream.respond({ ':status': status, 'content-type': 'application/json', ...headers })

/** Sends texts without end, as fast as they are taken. `next` is called with the number of each. */
export function floods(stream: ServerHttp2Stream, next: (index: number) => string): void {
  let index = 0
  const texts = new Readable({
    read() {
      this.push(next(index++))
    },
  })
  texts.on('error', () => undefined)
  stream.on('close', () => texts.destroy())
  texts.pipe(stream)
}

/** A running server. */
export class LyingCluster {
  readonly #name: string
  readonly #server: Http2SecureServer
  readonly #sessions = new Set<ServerHttp2Session>()
  /** What it does instead of telling the truth; undefined: it tells the truth. */
  #lie: Lie | undefined
  /** The number of requests that were asked. */
  requests = 0

  private constructor(name: string, server: Http2SecureServer) {
    this.#name = name
    this.#server = server
    server.on('session', (session) => {
      this.#sessions.add(session.on('error', () => undefined))
      session.on('close', () => this.#sessions.delete(session))
    })
    server.on('stream', (stream, headers) => {
      this.requests++
      stream.on('error', () => undefined)
      const path = String(headers[':path'])
      const url = new URL(path, 'https://server')
      const plural = /\/(namespaces|nodes|pods|services|endpointslices)$/.exec(url.pathname)?.[1] ?? ''
      const asked = { plural, isWatch: url.searchParams.get('watch') === '1' || url.searchParams.get('watch') === 'true', path }
      if (this.#lie) this.#lie(stream, asked)
      else this.truth(stream, asked)
    })
  }

  /** Starts a server with the certificate of the cluster in a directory. */
  static async start(name: string, directory: string): Promise<LyingCluster> {
    const file = (of: string) => readFileSync(join(directory, 'pki', of))
    const server = createSecureServer({ cert: file('serving.crt'), key: file('serving.key') })
    server.on('sessionError', () => undefined)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return new LyingCluster(name, server)
  }

  /** The address of the server. */
  get address(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Lies from now on, and ends the connections that there are. */
  lies(lie: Lie | undefined): void {
    this.#lie = lie
    for (const session of this.#sessions) session.destroy()
  }

  close(): void {
    this.lies(undefined)
    this.#server.close()
  }

  /** Its objects of a kind. */
  items(plural: string): object[] {
    const metadata = (name: string, version: string) => ({ name, namespace: 'shop', resourceVersion: version })
    const service = `of-${this.#name}`
    if (plural === 'namespaces')
      return ['kube-system', 'shop'].map((name) => ({ metadata: { name, uid: `${name} of ${this.#name}`, resourceVersion: '5' } }))
    if (plural === 'services')
      return [{ metadata: metadata(service, '10'), spec: { clusterIP: '240.9.0.1', ports: [{ name: 'http', port: 80, targetPort: 8080 }] } }]
    if (plural !== 'endpointslices') return []
    const labels = { 'kubernetes.io/service-name': service }
    const slice = { metadata: { ...metadata(service, '11'), labels }, addressType: 'IPv4', ports: [{ name: 'http', port: 8080 }] }
    return [{ ...slice, endpoints: [{ addresses: ['10.9.0.1'], conditions: { ready: true } }] }]
  }

  /** Answers as an API server does that has only JSON and no streamed lists. */
  truth(stream: ServerHttp2Stream, { plural, isWatch, path }: Asked): void {
    if (path.includes('sendInitialEvents')) return this.refuse(stream, 422, 'sendInitialEvents is forbidden')
    if (!(plural in kinds)) return this.refuse(stream, 404, 'there is no such resource')
    answers(stream)
    if (isWatch) return void stream.write('\n')
    stream.end(this.list(plural, this.items(plural)))
  }

  /** A list as text. */
  list(plural: string, items: readonly object[], next = '', version = '20'): string {
    return JSON.stringify({ kind: `${kinds[plural]}List`, apiVersion: 'v1', metadata: { resourceVersion: version, continue: next }, items })
  }

  refuse(stream: ServerHttp2Stream, code: number, message: string): void {
    answers(stream, code)
    stream.end(JSON.stringify({ kind: 'Status', status: 'Failure', code, message }))
  }
}
