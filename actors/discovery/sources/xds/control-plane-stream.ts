/**
 * One discovery stream to another control plane, on a connection of its own, over TLS with a client certificate
 * (docs/xds-protocol.md, "Configuration objects"). It has the bounds of a client: of the handshake, of messages, and of silence.
 */
import { X509Certificate } from 'node:crypto'
import { type ClientHttp2Session, connect, type IncomingHttpHeaders } from 'node:http2'
import { isIP } from 'node:net'
import { checkServerIdentity, type PeerCertificate } from 'node:tls'
import type { ConfigSourceTls } from '../../../../src/config/config-sources.ts'
import { uriNames } from '../../../../src/identity/client-trust.ts'
import { FrameBuffers, FrameReader, messageFrame } from '../../../../src/xds/stream/frames.ts'
import { connectBounded } from '../../../http/tls-client.ts'
import { readBoundedFile } from '../../../runtime/bounded-file.ts'
import { checkEvery, deadlineAfter, type Timer } from '../../../runtime/timers.ts'

/** The timeout of connecting; the time between two signs of life that are asked for, of which one may stay unanswered; in milliseconds. */
const limits = { connectMs: 10_000, pingMs: 15_000 }
/** Maximum size of a message, in bytes, and the flow-control window. */
const sizes = { message: 16_777_216, window: 1_048_576 }
const path = '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources'

/** The client certificate with its key, and the roots that verify the server; PEM. */
export interface TlsTexts {
  readonly certificate: string
  readonly key: string
  readonly roots: string
}

/** Reads the files of TLS settings. Rejects with the reason. */
export async function readTlsFiles({ clientCertificate, privateKey, caCertificates }: ConfigSourceTls): Promise<TlsTexts> {
  const [certificate, key, roots] = await Promise.all([clientCertificate, privateKey, caCertificates].map((file) => readBoundedFile(file)))
  return { certificate: certificate as string, key: key as string, roots: roots as string }
}

/** What happens on a stream. */
export interface StreamEvents {
  /** The stream is open; requests may be sent. */
  opened(): void
  /** A message has arrived. Throws an Error with the reason when the stream must end. */
  message(message: Buffer): void
  /** The stream has ended. Called once, and not after {@link ControlPlaneStream.close}. */
  ended(reason: string): void
}

/** A stream. */
export class ControlPlaneStream {
  readonly #events: StreamEvents
  readonly #session: ClientHttp2Session
  readonly #timers: Timer[] = []
  #send: ((message: Buffer) => void) | undefined
  #isOver = false
  #hasPong = true

  constructor({ host, port }: { readonly host: string; readonly port: number }, tls: ConfigSourceTls, texts: TlsTexts, events: StreamEvents) {
    this.#events = events
    const name = tls.sni ?? host
    const { subjectAltNames = [] } = tls
    const options = {
      minVersion: 'TLSv1.2' as const,
      ALPNProtocols: ['h2'],
      ...(isIP(name) ? {} : { servername: name }),
      ...{ ca: texts.roots, cert: texts.certificate, key: texts.key },
      checkServerIdentity: (_: string, peer: PeerCertificate) =>
        subjectAltNames.length > 0 ? namesFault(peer, subjectAltNames) : checkServerIdentity(name, peer),
    }
    const authority = `https://${isIP(host) === 6 ? `[${host}]` : host}:${port}`
    const session = connect(authority, {
      settings: { enablePush: false, initialWindowSize: sizes.window },
      createConnection: () => connectBounded({ host, port }, options),
    })
    this.#session = session
    this.#timers.push(deadlineAfter(limits.connectMs, () => this.#send || this.#end(`no connection within ${limits.connectMs / 1000} s`)).unref())
    session.once('remoteSettings', () => this.#open())
    session.on('error', (error: Error) => this.#end(reasonOf(error)))
    session.on('close', () => this.#end('the connection was closed'))
  }

  /** Sends a request. */
  send(message: Buffer): void {
    if (!this.#isOver) this.#send?.(message)
  }

  /** Ends the stream and its connection without an event. */
  close(): void {
    this.#isOver = true
    for (const timer of this.#timers) timer.cancel()
    this.#session.destroy()
  }

  #open(): void {
    if (this.#isOver) return
    const stream = this.#session.request({ ':method': 'POST', ':path': path, 'content-type': 'application/grpc', te: 'trailers' })
    this.#send = (message) => void stream.write(messageFrame(message))
    const reader = new FrameReader(sizes.message, new FrameBuffers())
    let trailers: IncomingHttpHeaders | undefined
    stream.on('response', (headers) => {
      if (headers['grpc-status'] !== undefined) trailers = headers
      else if (headers[':status'] !== 200) this.#end(`answered with HTTP status ${headers[':status']}`)
    })
    stream.on('trailers', (headers) => (trailers = headers))
    stream.on('data', (bytes: Buffer) => {
      if (this.#isOver) return
      try {
        reader.take(bytes, (message) => this.#isOver || this.#events.message(Buffer.from(message)) === undefined)
      } catch (error) {
        this.#end((error as Error).message)
      }
    })
    stream.on('error', (error: Error) => this.#end(trailers ? statusOf(trailers) : reasonOf(error)))
    stream.on('close', () => this.#end(trailers ? statusOf(trailers) : 'the stream was reset'))
    this.#timers.push(checkEvery(limits.pingMs, () => this.#ping()).unref())
    this.#events.opened()
  }

  #ping(): void {
    if (!this.#hasPong) return this.#end(`it has not answered for ${limits.pingMs / 1000} s`)
    this.#hasPong = false
    this.#session.ping(() => (this.#hasPong = true))
  }

  #end(reason: string): void {
    if (this.#isOver) return
    this.close()
    this.#events.ended(reason)
  }
}

/** Why a certificate has none of these names; undefined if it has one. */
function namesFault({ raw }: PeerCertificate, names: readonly string[]): Error | undefined {
  const certificate = new X509Certificate(raw)
  const uris = uriNames(certificate.subjectAltName ?? '')
  if (names.some((name) => uris.includes(name) || certificate.checkHost(name, { subject: 'never' }) !== undefined)) return undefined
  return new Error('the certificate of the server has none of the names in subjectAltNames')
}

function statusOf(trailers: IncomingHttpHeaders): string {
  const message = String(trailers['grpc-message'] ?? '').slice(0, 1000)
  let text = message
  try {
    text = decodeURIComponent(message)
  } catch {
    // It stays as it was sent.
  }
  return `ended with the gRPC status ${String(trailers['grpc-status']).slice(0, 10)}${text === '' ? '' : `: ${text}`}`
}

function reasonOf({ message, cause }: Error): string {
  return cause instanceof Error ? cause.message : message
}
