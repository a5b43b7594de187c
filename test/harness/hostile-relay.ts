/** A relay in front of an API server that loses, repeats and reorders the events of watches, or falls silent. */
import { readFileSync } from 'node:fs'
import { type ClientHttp2Session, connect, createSecureServer, type Http2SecureServer, type ServerHttp2Stream } from 'node:http2'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { seededRandom } from '../../src/registry/mock.ts'

/** What a relay does with an event. */
type Harm = 'lose' | 'repeat' | 'delay'

/** A running relay. It presents the certificate of the server, so that clients need not know of it. */
export class HostileRelay {
  readonly #server: Http2SecureServer
  readonly #upstream: ClientHttp2Session
  readonly #random = seededRandom(7)
  /** The share of events that are lost, repeated or delayed. */
  harm = 0
  /** The number of events that were lost, repeated and delayed. */
  readonly done: Record<Harm, number> = { lose: 0, repeat: 0, delay: 0 }

  private constructor(server: Http2SecureServer, upstream: ClientHttp2Session) {
    this.#server = server
    this.#upstream = upstream
    server.on('stream', (stream, headers) => {
      const { ':method': method, ':path': path, authorization, accept, 'user-agent': agent } = headers
      this.#relay(stream, String(path), { ':method': method, ':path': path, authorization, accept, 'user-agent': agent })
    })
  }

  /** Starts a relay to the server of the cluster in a directory. */
  static async start(target: string, directory: string): Promise<HostileRelay> {
    const file = (name: string) => readFileSync(join(directory, 'pki', name))
    const server = createSecureServer({ cert: file('serving.crt'), key: file('serving.key') })
    const relay = new HostileRelay(server, connect(target, { ca: file('ca.crt') }))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    return relay
  }

  /** The address of the relay. */
  get address(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  close(): void {
    this.#upstream.destroy()
    this.#server.close()
  }

  #relay(stream: ServerHttp2Stream, path: string, headers: Record<string, string | string[] | undefined>): void {
    const answer = this.#upstream.request(headers)
    const isWatch = path.includes('watch=1')
    let rest = ''
    let held: string | undefined
    const write = (text: string) => {
      if (!stream.destroyed) stream.write(text)
    }
    const line = (text: string) => {
      const harm = this.#harm(text)
      if (harm) this.done[harm]++
      if (harm === 'lose') return
      // A delayed event comes behind the next one.
      if (harm === 'delay' && held === undefined) return void (held = text)
      write(text)
      if (harm === 'repeat') write(text)
      if (held !== undefined) write(held)
      held = undefined
    }
    answer.on('response', ({ ':status': status, 'content-type': type }) => {
      if (!stream.destroyed) stream.respond({ ':status': status, 'content-type': type })
    })
    answer.setEncoding('utf8')
    answer.on('data', (text: string) => {
      if (!isWatch) return write(text)
      const lines = (rest + text).split('\n')
      rest = lines.pop() ?? ''
      for (const each of lines) line(`${each}\n`)
    })
    answer.on('end', () => stream.end())
    answer.on('error', () => stream.destroy())
    stream.on('error', () => undefined)
    stream.on('close', () => answer.destroy())
  }

  /** What happens to an event. Those of the list that begins a watch, and bookmarks, are as they are. */
  #harm(event: string): Harm | undefined {
    if (!/^\{"type":"(?:MODIFIED|DELETED)"/.test(event) || this.#random() >= this.harm) return undefined
    return (['lose', 'repeat', 'delay'] as const)[Math.floor(this.#random() * 3)]
  }
}
