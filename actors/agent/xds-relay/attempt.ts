/** One attempt to be served by discovery: requests of the proxy and of the agent itself go there, responses are told apart. */

import type { ServerAddress } from '../../../protocols/messages/credentials.ts'
import type { HealthChanged } from '../../../protocols/messages/health.ts'
import { status } from '../../../src/model/status-codes.ts'
import { typeUrlsOf } from '../../../src/names/mesh-names.ts'
import { ownRequest, readOwnResponse } from '../../../src/relay/own-messages.ts'
import { RequestScan } from '../../../src/relay/request-scan.ts'
import { ResponseSieve } from '../../../src/relay/response-sieve.ts'
import { WireError } from '../../../src/xds/slab/wire.ts'
import { BadFrame, messageFrame } from '../../../src/xds/stream/frames.ts'
import { aliasNameTableType, listenerType, nameTableType } from '../../../src/xds/type-urls.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { DiscoveryStream, type StreamCredentials, type StreamEnd } from './discovery-stream.ts'
import { pathOf } from './proxy-server.ts'

const health = typeUrlsOf('mesh.v1.HealthInformation')
const ownTypes: ReadonlySet<string> = new Set([nameTableType, aliasNameTableType, health.mesh, health.alias])

/** Code with which an unhealthy workload is reported. */
const unhealthyCode = 500

/** What is asked of discovery beside what the proxy asks. */
export interface OwnQuestions {
  /** Whether the table of names is asked for. */
  readonly asksNameTable: boolean
  /** What is known of the workload's health; undefined when nothing is. */
  health(): HealthChanged | undefined
}

/** What the owner of an attempt hears. */
export interface AttemptEvents {
  /** Requests may be given. */
  opened(): void
  /** Discovery takes more requests again. */
  hasRoom(): void
  /** Bytes for the proxy. */
  pass(bytes: Buffer): void
  /** A table of names, as it came. */
  named(table: Buffer): void
  /** Something about a response to the agent itself that people should know. */
  warn(message: string): void
  requested(): void
  responded(): void
  /** Discovery asks that the connection be left. */
  leaving(): void
  /** The attempt is over, once. Not told after {@link Attempt.close}. */
  ended(end: StreamEnd): void
}

/** The attempt. */
export class Attempt {
  readonly #isDelta: boolean
  readonly #own: OwnQuestions
  readonly #events: AttemptEvents
  readonly #discovery: DiscoveryStream
  readonly #requests: RequestScan
  readonly #responses: ResponseSieve
  /** Whether the proxy has asked for listeners: from then on the agent asks, too. */
  #hasAsked = false
  /** The agent's own requests that wait for the end of a request of the proxy, by what they are about. */
  readonly #waiting = new Map<string, Buffer>()
  #servedAt: number | undefined

  constructor(isDelta: boolean, address: ServerAddress, credentials: StreamCredentials, own: OwnQuestions, events: AttemptEvents) {
    this.#isDelta = isDelta
    this.#own = own
    this.#events = events
    this.#requests = new RequestScan(isDelta)
    this.#responses = new ResponseSieve(isDelta, (typeUrl) => ownTypes.has(typeUrl), {
      pass: (bytes) => {
        this.#servedAt ??= monotonicMs()
        events.pass(bytes)
      },
      own: (message) => this.#take(message),
      tooLarge: (typeUrl, nonce) => {
        const message = 'the table of names is larger than 32 MiB'
        events.warn(`${message}; the last one stays in use`)
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

  /** Whether requests may be given. */
  get isOpen(): boolean {
    return this.#discovery.isOpen
  }

  /** Whether something has come for the proxy. */
  get isServed(): boolean {
    return this.#servedAt !== undefined
  }

  /** Milliseconds since the first bytes came for the proxy; 0 when none did. */
  get servedMs(): number {
    return this.#servedAt === undefined ? 0 : monotonicMs() - this.#servedAt
  }

  /** Whether every response that has begun has ended. */
  get isBetween(): boolean {
    return this.#responses.isBetween
  }

  /** Gives bytes of requests to discovery. Returns whether it takes more. Throws BadFrame for a request that is compressed. */
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

  /** The health of the workload has changed. */
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

  /** A request of the proxy has ended. Returns what follows it. */
  #between(typeUrl: string): Buffer[] {
    this.#events.requested()
    if (typeUrl === listenerType && !this.#hasAsked) {
      this.#hasAsked = true
      if (this.#own.asksNameTable) this.#waiting.set(nameTableType, ownRequest(this.#isDelta, nameTableType))
      this.#addHealth()
    }
    return this.#takeWaiting()
  }

  #addHealth(): void {
    const known = this.#own.health()
    if (!known) return
    const error = known.healthy ? undefined : { code: unhealthyCode, message: known.message }
    this.#waiting.set(health.mesh, ownRequest(this.#isDelta, health.mesh, error && { error }))
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
    // What discovery has no room for waits; of one type the newest.
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
        isTold: true,
        retryAfterMs: 0,
      })
    }
  }

  /** A response to the agent itself. */
  #take(message: Buffer): void {
    const { typeUrl, version, nonce, resource } = readOwnResponse(this.#isDelta, message)
    // What answers a health event would be taken for another one.
    if (typeUrl !== nameTableType && typeUrl !== aliasNameTableType) return
    if (resource) this.#events.named(resource)
    this.#answer(typeUrl, { version, nonce })
  }
}
