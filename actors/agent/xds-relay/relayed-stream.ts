/**
 * One stream of the proxy and the attempts to serve it from discovery (docs/agent.md, X4 and X5). Until discovery has sent something for
 * the proxy, the proxy's requests are buffered and replayed on the next attempt. From then on the end of either side ends both.
 */
import type { ServerAddress } from '../../../protocols/messages/credentials.ts'
import type { XdsRelayState } from '../../../protocols/messages/xds-relay.ts'
import type { BackOff, Pauses } from '../../../src/model/back-off.ts'
import { status } from '../../../src/model/status-codes.ts'
import { ByteStore } from '../../../src/relay/byte-store.ts'
import { endOfStream } from '../../../src/relay/stream-end.ts'
import { BadFrame } from '../../../src/xds/stream/frames.ts'
import { chance } from '../../runtime/chance.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { after, type Timer } from '../../runtime/timers.ts'
import { Attempt, type OwnQuestions } from './attempt.ts'
import type { ConfigurationFile } from './configuration-file.ts'
import type { StreamCredentials, StreamEnd } from './discovery-stream.ts'
import type { RelayMetrics } from './metrics.ts'
import type { ProxyStream } from './proxy-stream.ts'
import { StandIn } from './stand-in.ts'

/**
 * The maximum size of the replay buffer for requests, in bytes. With a full buffer the proxy's stream is paused while there is no
 * connection. Requests that arrive on an open connection beyond it discard the buffer, after which a failure of the attempt ends the
 * proxy's stream.
 */
const maxKept = 4_194_304
/**
 * The maximum delay after a GOAWAY before the connection is closed, in milliseconds. The delay is random, so that the agents of a stopping
 * server reconnect spread over time.
 */
const leaveMs = 1000

/**
 * The delays between attempts to open a stream to discovery (docs/agent.md, X5). All streams of a proxy share one back-off, so that a quick
 * succession of streams does not overload discovery, whichever side ends them.
 */
export const reconnects: Pauses = { firstMs: 500, longestMs: 10_000, jitter: 1, longestAskedMs: 60_000 }
/** A stream on which discovery sent responses for at least this time is a success, in milliseconds. */
const lastingMs = 10_000

/** The dependencies that all streams of a relay share. */
export interface RelayParts {
  readonly address: ServerAddress
  readonly log: ScopedLogger
  readonly metrics: RelayMetrics
  readonly backOff: BackOff
  readonly own: OwnQuestions
  /** Reads the credentials of a stream; called for each attempt. Rejects with an Error when discovery could not be verified. */
  credentials(): Promise<StreamCredentials>
  /** Called with each name table. */
  named(table: Buffer): void
  /** Called with the roots of the mesh, PEM, each time that discovery announces them. */
  announced(roots: string): void
  /** The file of the stored configuration. Undefined when it is not stored. */
  readonly file: ConfigurationFile | undefined
}

/**
 * Who serves the proxy. `connecting`: nobody has sent it anything. `live`: discovery. `stand-in`: the stored configuration, while attempts
 * go on. `finished`: nobody any more.
 */
type Phase = 'connecting' | 'live' | 'stand-in' | 'finished'

/** The phases that may follow a phase. What discovery sends and what is stored never reach one stream of the proxy both. */
const following: Readonly<Record<Phase, readonly Phase[]>> = {
  connecting: ['live', 'stand-in', 'finished'],
  live: ['finished'],
  'stand-in': ['finished'],
  finished: [],
}

/** One relayed stream. */
export class RelayedStream {
  readonly #proxy: ProxyStream
  readonly #parts: RelayParts
  #kept: ByteStore | undefined = new ByteStore()
  #attempt: Attempt | undefined
  /** Whether an attempt is in progress or scheduled. */
  #isTrying = false
  /** Changed by {@link RelayedStream.#enter} only. */
  #phase: Phase = 'connecting'
  #timer: Timer | undefined
  /** Whether discovery has sent GOAWAY, and whether the delay after it has passed. */
  #isLeaving = false
  #leaves = false
  readonly #began = monotonicMs()
  /** Serves the stored configuration to the proxy. */
  #standIn: StandIn | undefined
  /** Records the responses that are sent to the proxy. */
  #keeper: ((bytes: Buffer) => void) | undefined
  /** Why the last attempt failed. */
  fault: string | undefined

  /** Starts to relay a stream. `over` is called when the stream has ended. */
  constructor(proxy: ProxyStream, parts: RelayParts, over: () => void) {
    this.#proxy = proxy
    this.#parts = parts
    proxy.listen({
      data: (bytes) => this.#request(bytes),
      hasRoom: () => this.#attempt?.resume(),
      closed: (isExpected) => {
        if (this.#phase !== 'finished') this.#proxyClosed(isExpected)
        over()
      },
    })
  }

  get state(): XdsRelayState['stream'] {
    if (this.#phase === 'stand-in') return 'kept'
    if (!this.#attempt?.isOpen) return 'waiting'
    return this.#attempt.isServed ? 'served' : 'open'
  }

  /** Ends both sides, the proxy's with a status. */
  end(code: number, message: string): void {
    if (!this.#enter('finished')) return
    this.#proxy.finish(code, message)
  }

  healthChanged(): void {
    this.#attempt?.healthChanged()
  }

  #proxyClosed(isExpected: boolean): void {
    const { log, metrics } = this.#parts
    metrics.proxyEnded(isExpected)
    if (isExpected) log.debug('the proxy has ended its stream')
    else log.warn('the stream of the proxy ended: it was reset, or the proxy stopped reading')
    this.#enter('finished')
  }

  /**
   * Enters a phase if it may follow the present one, and ends what belongs to the present one only. Returns whether it was entered: whoever
   * has waited for something asks before it has an effect on the proxy.
   */
  #enter(phase: Phase): boolean {
    if (!following[this.#phase].includes(phase)) return false
    this.#phase = phase
    if (phase === 'stand-in') return true
    this.#standIn = undefined
    if (phase === 'live') this.#served()
    else this.#stopped()
    return true
  }

  /** Stops attempts and relaying. */
  #stopped(): void {
    this.#kept = undefined
    this.#timer?.cancel()
    if (this.#attempt) this.#attemptOver(this.#attempt, 0)
  }

  #attemptOver(attempt: Attempt, askedMs: number): void {
    this.#attempt = undefined
    this.#isTrying = false
    const { backOff } = this.#parts
    if (attempt.servedMs < lastingMs) backOff.failed(monotonicMs(), chance(), { askedMs })
    else {
      backOff.succeeded()
      backOff.postpone(askedMs, monotonicMs(), chance())
    }
    attempt.close()
  }

  #request(bytes: Buffer): void {
    if (this.#phase === 'finished') return
    this.#kept?.append(bytes)
    this.#standIn?.request(bytes)
    if (this.#attempt?.isOpen) {
      if (this.#isKeptFull) this.#kept = undefined
      return this.#relay(this.#attempt, bytes)
    }
    if (this.#isKeptFull) this.#proxy.pause()
    if (!this.#isTrying) this.#tryLater()
  }

  get #isKeptFull(): boolean {
    return this.#kept !== undefined && this.#kept.length >= maxKept
  }

  #relay(attempt: Attempt, bytes: Buffer): void {
    try {
      if (!attempt.request(bytes)) this.#proxy.pause()
    } catch (error) {
      if (!(error instanceof BadFrame)) throw error
      this.#parts.log.warn(`the stream of the proxy ended: ${error.message}`)
      this.end(error.status, error.message)
    }
  }

  #tryLater(): void {
    this.#isTrying = true
    const wait = this.#parts.backOff.wait(monotonicMs())
    if (wait > 0) this.#timer = after(wait, () => void this.#try())
    else void this.#try()
  }

  async #try(): Promise<void> {
    const { address, log, metrics, own, named, announced } = this.#parts
    let credentials: StreamCredentials
    try {
      credentials = await this.#parts.credentials()
    } catch (error) {
      if (this.#phase === 'finished') return
      this.#parts.backOff.failed(monotonicMs(), chance())
      return this.#failed({ code: status.unavailable, message: (error as Error).message, hasStatus: false, retryAfterMs: 0 })
    }
    if (this.#phase === 'finished') return
    const attempt = new Attempt(this.#proxy.isDelta, address, credentials, own, {
      opened: () => this.#opened(attempt),
      hasRoom: () => this.#proxy.resume(),
      pass: (bytes) => this.#pass(attempt, bytes),
      named,
      announced,
      warn: (message) => log.warn(message),
      requested: () => metrics.requests(1),
      responded: () => {
        metrics.responses(1)
        if (this.#leaves) this.#leave(attempt)
      },
      leaving: () => this.#leaveSoon(attempt),
      ended: (end) => this.#ended(attempt, end),
    })
    this.#attempt = attempt
  }

  #opened(attempt: Attempt): void {
    const kept = this.#kept as ByteStore
    const isFull = this.#isKeptFull
    this.#proxy.resume()
    this.#relay(attempt, kept.bytes())
    if (isFull) this.#kept = undefined
  }

  #pass(attempt: Attempt, bytes: Buffer): void {
    if (this.#phase === 'stand-in') return this.#isBack()
    this.#enter('live')
    this.#keeper?.(bytes)
    if (!this.#proxy.write(bytes)) attempt.pause()
  }

  /** Called when the first bytes have arrived for a proxy that has nothing yet. */
  #served(): void {
    const { file } = this.#parts
    if (file && this.#kept) this.#keeper = file.follow(this.#proxy.isDelta, this.#kept.bytes())
    this.#kept = undefined
    this.fault = undefined
    const { host, port } = this.#parts.address
    this.#parts.log.info(`the proxy is served by ${host}:${port}`)
  }

  /**
   * Called when discovery responds while the proxy has the stored configuration. The proxy's stream is ended, so that the proxy reconnects
   * and receives what differs.
   */
  #isBack(): void {
    const { log, backOff, address } = this.#parts
    log.info(`${address.host}:${address.port} answers again: the stream of the proxy is ended so that it reconnects`)
    this.end(status.ok, '')
    backOff.succeeded()
  }

  /** Called after a GOAWAY: leaves the connection after a short random delay, between two responses. */
  #leaveSoon(attempt: Attempt): void {
    if (!attempt.isServed || this.#isLeaving) return
    this.#isLeaving = true
    this.#timer = after(chance() * leaveMs, () => {
      this.#leaves = true
      this.#leave(attempt)
    })
  }

  #leave(attempt: Attempt): void {
    if (this.#attempt !== attempt || !attempt.isBetween) return
    this.#parts.log.debug('discovery closes the connection gracefully (GOAWAY)')
    this.#parts.metrics.discoveryEnded(true)
    this.end(status.ok, '')
  }

  #ended(attempt: Attempt, end: StreamEnd): void {
    if (this.#attempt !== attempt) return
    this.#attemptOver(attempt, end.retryAfterMs)
    if (!attempt.isServed) return this.#failed(end)
    const { log, metrics, address } = this.#parts
    const { isExpected, code, message } = endOfStream(end, attempt.isBetween)
    metrics.discoveryEnded(isExpected)
    const text = `the stream of ${address.host}:${address.port} ended: ${end.message || `status ${end.code}`}`
    if (isExpected) log.debug(text)
    else log.warn(text)
    this.fault = isExpected ? undefined : end.message
    this.end(code, message)
  }

  /**
   * Called when an attempt ended before anything arrived for the proxy. Schedules another attempt, unless the buffer was discarded or
   * discovery rejected the requests themselves.
   */
  #failed(end: StreamEnd): void {
    const { log, metrics, backOff, address, file } = this.#parts
    metrics.discoveryFailed()
    this.fault = end.message || `status ${end.code}`
    const text = `no configuration from ${address.host}:${address.port}: ${this.fault}`
    if (!this.#kept || endOfStream(end, true).isFinal) {
      log.warn(text)
      return this.end(end.code, end.message)
    }
    if (this.#isKeptFull) this.#proxy.pause()
    else this.#proxy.resume()
    this.#tryLater()
    if (file && !this.#standIn && monotonicMs() - this.#began > file.fallbackAfterMs)
      this.#standIn = new StandIn(this.#proxy, file, log, this.#kept.bytes(), () => this.#enter('stand-in'))
    log.warn(`${text}; retry in ${(backOff.wait(monotonicMs()) / 1000).toFixed(1)} s`)
  }
}
