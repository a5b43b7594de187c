/**
 * A relay in front of an API server that loses, repeats and reorders the events of watches, refuses streamed lists, makes pages short, or is
 * away for a while.
 */
import { readFileSync } from 'node:fs'
import {
  type ClientHttp2Session,
  connect,
  createSecureServer,
  type Http2SecureServer,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { seededRandom } from '../../src/registry/mock.ts'

/** What a relay does with an event. */
type Harm = 'lose' | 'repeat' | 'delay'

type Headers = Record<string, string | string[] | undefined>

/** The end of the event that bytes begin with: a line of JSON, or a frame with its length in front; undefined while it has not come whole. */
function endOfEvent(bytes: Buffer, isProtobuf: boolean): number | undefined {
  const end = isProtobuf ? (bytes.length < 4 ? Number.NaN : 4 + bytes.readUInt32BE(0)) : bytes.indexOf('\n') + 1 || Number.NaN
  return end <= bytes.length ? end : undefined
}

/** A running relay. It presents the certificate of the server, so that clients need not know of it. */
export class HostileRelay {
  readonly #server: Http2SecureServer
  readonly #target: string
  readonly #ca: Buffer
  #upstream: ClientHttp2Session | undefined
  readonly #sessions = new Set<ServerHttp2Session>()
  readonly #random = seededRandom(7)
  #isAway = false
  /** The share of events that are lost, repeated or delayed. */
  harm = 0
  /** The number of events that were lost, repeated and delayed. */
  readonly done: Record<Harm, number> = { lose: 0, repeat: 0, delay: 0 }
  /** Which events are lost besides: their bytes as latin1, JSON or protobuf. */
  loses: (event: string) => boolean = () => false
  /** Whether streamed lists are refused as servers without them do. */
  refusesStreams = false
  /** Whether the ends of streamed lists are withheld, as a server does whose cache of a kind is behind. */
  withholdsEnds = false
  /** The number of objects of a page instead of what was asked for. */
  pageLength: number | undefined
  /** Called before a page of a list is asked for, with its path, whose token is empty for the first page; the page waits for it. */
  beforePage: (path: string, token: string) => Promise<void> | undefined = () => undefined
  /** The paths of the pages that were asked for, and of lists in one piece. */
  readonly pages: string[] = []
  readonly whole: string[] = []
  /** Called with the path of each patch, without its parameters, before it is sent on. */
  patched: (path: string) => void = () => undefined

  private constructor(server: Http2SecureServer, target: string, ca: Buffer) {
    this.#server = server
    this.#target = target
    this.#ca = ca
    server.on('session', (session) => {
      if (this.#isAway) return session.destroy()
      this.#sessions.add(session)
      session.on('close', () => this.#sessions.delete(session))
      session.on('error', () => undefined)
    })
    server.on('stream', (stream, headers) => {
      const { ':method': method, ':path': path, authorization, accept, 'user-agent': agent } = headers
      stream.on('error', () => undefined)
      const sent = { ':method': method, authorization, accept, 'user-agent': agent, 'content-type': headers['content-type'] }
      void this.#answer(stream, String(path), sent)
    })
  }

  /** Starts a relay to the server of the cluster in a directory. */
  static async start(target: string, directory: string): Promise<HostileRelay> {
    const file = (name: string) => readFileSync(join(directory, 'pki', name))
    const server = createSecureServer({ cert: file('serving.crt'), key: file('serving.key') })
    const relay = new HostileRelay(server, target, file('ca.crt'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return relay
  }

  /** The address of the relay. */
  get address(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Ends all connections, and each new one, until {@link back}. */
  away(): void {
    this.#isAway = true
    for (const session of this.#sessions) session.destroy()
  }

  back(): void {
    this.#isAway = false
  }

  close(): void {
    this.away()
    this.#upstream?.destroy()
    this.#server.close()
  }

  async #answer(stream: ServerHttp2Stream, path: string, headers: Headers): Promise<void> {
    const url = new URL(path, this.#target)
    if (this.refusesStreams && url.searchParams.has('sendInitialEvents')) {
      const message = 'sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled'
      stream.respond({ ':status': 422, 'content-type': 'application/json' })
      return void stream.end(JSON.stringify({ kind: 'Status', status: 'Failure', code: 422, reason: 'Invalid', message }))
    }
    if (headers[':method'] === 'PATCH') this.patched(url.pathname)
    if (headers[':method'] === 'GET' && !url.searchParams.has('limit') && !url.searchParams.has('watch')) this.whole.push(url.pathname)
    if (url.searchParams.has('limit')) {
      if (this.pageLength !== undefined) url.searchParams.set('limit', `${this.pageLength}`)
      this.pages.push(url.pathname)
      await this.beforePage(url.pathname, url.searchParams.get('continue') ?? '')
    }
    if (!stream.destroyed) this.#relay(stream, url.searchParams.has('watch'), { ...headers, ':path': `${url.pathname}${url.search}` })
  }

  #connection(): ClientHttp2Session {
    if (this.#upstream && !this.#upstream.closed && !this.#upstream.destroyed) return this.#upstream
    const upstream = connect(this.#target, { ca: this.#ca })
    upstream.on('error', () => undefined)
    upstream.on('goaway', () => upstream.close())
    return (this.#upstream = upstream)
  }

  #relay(stream: ServerHttp2Stream, isWatch: boolean, headers: Headers): void {
    const answer = this.#connection().request(headers, { endStream: headers[':method'] === 'GET' })
    if (headers[':method'] !== 'GET') stream.pipe(answer)
    let rest: Buffer = Buffer.alloc(0)
    let held: Buffer | undefined
    let isProtobuf = false
    const write = (bytes: Uint8Array) => {
      if (!stream.destroyed) stream.write(bytes)
    }
    const relayed = (event: Buffer) => {
      const text = event.toString('latin1')
      if (this.withholdsEnds && text.includes('k8s.io/initial-events-end')) return
      const harm = this.#harm(text)
      if (harm) this.done[harm]++
      if (harm === 'lose') return
      // A delayed event comes behind the next one.
      if (harm === 'delay' && held === undefined) return void (held = event)
      write(event)
      if (harm === 'repeat') write(event)
      if (held !== undefined) write(held)
      held = undefined
    }
    answer.on('response', ({ ':status': status, 'content-type': type }) => {
      isProtobuf = String(type).startsWith('application/vnd.kubernetes.protobuf')
      // A stream that was reset before it was answered has ended by now.
      if (!stream.destroyed && !stream.headersSent) stream.respond({ ':status': status, 'content-type': type })
    })
    answer.on('data', (bytes: Buffer) => {
      if (!isWatch) return write(bytes)
      rest = Buffer.concat([rest, bytes])
      for (let end = endOfEvent(rest, isProtobuf); end !== undefined; end = endOfEvent(rest, isProtobuf)) {
        relayed(rest.subarray(0, end))
        rest = rest.subarray(end)
      }
    })
    answer.on('end', () => {
      // A stream that is reset ends too, also before there is an answer.
      if (!stream.headersSent) stream.destroy()
      else if (answer.rstCode === 0 && !answer.aborted) stream.end()
    })
    answer.on('error', () => stream.destroy())
    answer.on('close', () => {
      if (answer.rstCode !== 0 || answer.aborted) stream.destroy()
    })
    stream.on('close', () => answer.destroy())
  }

  /** What happens to an event. Those of the list that begins a watch, and bookmarks, are as they are. */
  #harm(event: string): Harm | undefined {
    if (!/^(?:\{"type":"|.{4}\n.)(?:MODIFIED|DELETED)/s.test(event)) return undefined
    if (this.loses(event)) return 'lose'
    if (this.#random() >= this.harm) return undefined
    return (['lose', 'repeat', 'delay'] as const)[Math.floor(this.#random() * 3)]
  }
}
