/**
 * One attempt to serve a stream of the proxy from discovery: forwards the proxy's requests, adds the agent's own, and separates responses
 * to the two.
 */

import type { ServerAddress } from '../../../protocols/messages/credentials.ts'
import type { HealthChanged } from '../../../protocols/messages/health.ts'
import { status } from '../../../src/model/status-codes.ts'
import { ownRequest, readOwnResponse, readTrustBundle } from '../../../src/relay/own-messages.ts'
import { RequestScan } from '../../../src/relay/request-scan.ts'
import { ResponseSplitter } from '../../../src/relay/response-splitter.ts'
import { WireError } from '../../../src/xds/slab/wire.ts'
import { BadFrame, messageFrame } from '../../../src/xds/stream/frames.ts'
import { aliasHealthType, aliasNameTableType, healthType, listenerType, nameTableType, trustBundleType } from '../../../src/xds/type-urls.ts'
import { DiscoveryStream, type StreamCredentials, type StreamEnd } from './discovery-stream.ts'
import { pathOf } from './proxy-server.ts'

const ownTypes: ReadonlySet<string> = new Set([nameTableType, aliasNameTableType, trustBundleType, healthType, aliasHealthType])

/** The error code that reports an unhealthy workload. */
const unhealthyCode = 500

/** The agent's own subscriptions on the stream. */
export interface OwnQuestions {
  /** Whether the agent subscribes to the name table. */
  readonly asksNameTable: boolean
  /** Whether the agent subscribes to the roots of the mesh. */
  readonly asksTrust: boolean
  /** Returns the last known health of the workload. Undefined before the first probe result. */
  health(): HealthChanged | undefined
}

/** Events of an attempt. */
export interface AttemptEvents {
  /** Requests may be written. */
  opened(): void
  /** Discovery accepts requests again after back-pressure. */
  hasRoom(): void
  /** Bytes of responses for the proxy. */
  pass(bytes: Buffer): void
  /** A name table, as received. */
  named(table: Buffer): void
  /** The roots of the mesh, PEM, as received. */
  announced(roots: string): void
  /** A fault in a response to the agent that is to be logged. */
  warn(message: string): void
  requested(): void
  responded(): void
  /** Discovery has sent GOAWAY. */
  leaving(): void
  /** The attempt has ended. Called once, and not after {@link Attempt.close}. */
  ended(end: StreamEnd): void
}

/** One attempt. */
export class Attempt {
  readonly #isDelta: boolean
  readonly #own: OwnQuestions
  readonly #events: AttemptEvents
  readonly #discovery: DiscoveryStream
  readonly #requests: RequestScan
  readonly #responses: ResponseSplitter
  /** Whether the proxy has subscribed to listeners. The agent's own subscriptions follow that request. */
  #hasAsked = false
  /** The agent's own requests by type URL, waiting until a request of the proxy is complete and discovery accepts more. */
  readonly #waiting = new Map<string, Buffer>()

  constructor(isDelta: boolean, address: ServerAddress, credentials: StreamCredentials, own: OwnQuestions, events: AttemptEvents) {
    this.#isDelta = isDelta
    this.#own = own
    this.#events = events
    this.#requests = new RequestScan(isDelta)
    this.#responses = new ResponseSplitter(isDelta, (typeUrl) => ownTypes.has(typeUrl), {
      pass: (bytes) => events.pass(bytes),
      own: (message) => this.#take(message),
      tooLarge: (typeUrl, nonce) => {
        const message = `the ${typeUrl === trustBundleType ? 'list of roots' : 'table of names'} is larger than 32 MiB`
        events.warn(`${message}; the previous one stays in use`)
        this.#answer(typeUrl, { nonce, error: { code: status.resourceExhausted, message } })
      },
      ended: () => events.responded(),
    })
    this.#discovery = new DiscoveryStream(address, pathOf(isDelta), credentials, {
      opened: () => events.opened(),
      data: (bytes) => this.#receive(bytes),
      hasRoom: () => {
        this.#flush()
        events.hasRoom()
      },
      leaving: () => events.leaving(),
      ended: (end) => events.ended(end),
    })
  }

  /** The replica of discovery, as its answer names it; empty: it does not. */
  get replica(): string {
    return this.#discovery.replica
  }

  /** Whether no response is partially received. */
  get isBetween(): boolean {
    return this.#responses.isBetween
  }

  /** Writes bytes of requests to discovery. Returns whether it accepts more. Throws BadFrame for a compressed request. */
  request(bytes: Buffer): boolean {
    let hasRoom = true
    this.#requests.take(
      bytes,
      (part) => {
        hasRoom = this.#discovery.write(part)
      },
      (typeUrl) => this.#between(typeUrl),
    )
    return hasRoom
  }

  /** Reports a change of the workload's health. */
  healthChanged(): void {
    if (!this.#hasAsked) return
    this.#addHealth()
    this.#flush()
  }

  pause(): void {
    this.#discovery.pause()
  }

  resume(): void {
    this.#discovery.resume()
  }

  close(): void {
    this.#discovery.close()
  }

  /** Called when a request of the proxy is complete. Returns the agent's own requests that are sent after it. */
  #between(typeUrl: string): Buffer[] {
    this.#events.requested()
    if (typeUrl === listenerType && !this.#hasAsked) {
      this.#hasAsked = true
      if (this.#own.asksNameTable) this.#waiting.set(nameTableType, ownRequest(this.#isDelta, nameTableType))
      if (this.#own.asksTrust) this.#waiting.set(trustBundleType, ownRequest(this.#isDelta, trustBundleType))
      this.#addHealth()
    }
    return this.#takeWaiting()
  }

  #addHealth(): void {
    const known = this.#own.health()
    if (!known) return
    const error = known.healthy ? undefined : { code: unhealthyCode, message: known.message }
    this.#waiting.set(healthType, ownRequest(this.#isDelta, healthType, error && { error }))
  }

  #takeWaiting(): Buffer[] {
    const messages = [...this.#waiting.values()].map(messageFrame)
    this.#waiting.clear()
    return messages
  }

  #answer(typeUrl: string, answer: Parameters<typeof ownRequest>[2]): void {
    this.#waiting.set(typeUrl, ownRequest(this.#isDelta, typeUrl, answer))
    this.#flush()
  }

  #flush(): void {
    // Under back-pressure own requests wait; of each type only the newest is kept.
    if (!this.#discovery.isOpen || !this.#requests.isBetween || !this.#discovery.hasRoom) return
    for (const message of this.#takeWaiting()) this.#discovery.write(message)
  }

  #receive(bytes: Buffer): void {
    try {
      this.#responses.take(bytes)
    } catch (error) {
      if (!(error instanceof BadFrame || error instanceof WireError)) throw error
      this.close()
      this.#events.ended({
        code: status.internal,
        message: `discovery sent a response that cannot be read: ${error.message}`,
        hasStatus: true,
        retryAfterMs: 0,
      })
    }
  }

  /** Processes a response to a request of the agent. */
  #take(message: Buffer): void {
    const { typeUrl, version, nonce, resource } = readOwnResponse(this.#isDelta, message)
    // Responses to health reports are not acknowledged: discovery would take the ACK for another report.
    if (typeUrl === healthType || typeUrl === aliasHealthType) return
    if (resource && typeUrl === trustBundleType) this.#events.announced(readTrustBundle(resource))
    else if (resource) this.#events.named(resource)
    this.#answer(typeUrl, { version, nonce })
  }
}
