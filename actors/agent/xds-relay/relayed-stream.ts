/**
 * One stream of the proxy and the attempts to serve it from discovery (docs/agent.md, X4, X5 and X9), as one state machine. What belongs to a
 * state ends with it: the timer is cancelled, the attempt is closed, and a stand-in sends nothing more.
 *
 * | State        | The proxy                                 | Its data                           | Left when                                     |
 * | ---          | ---                                       | ---                                | ---                                           |
 * | `idle`       | has requested nothing                     | unserved                           | it requests something: `connecting`, `waiting` |
 * | `waiting`    | waits for the next attempt                | unserved, timer                    | the attempt is due: `connecting`              |
 * | `connecting` | waits for credentials and a connection    | unserved, attempt (once made)      | connected: `open`; failed: `waiting`          |
 * | `open`       | waits for the first response of discovery | unserved, attempt                  | answered: `live`; failed: `waiting`           |
 * | `live`       | is served by discovery                    | attempt, since, recording          | GOAWAY: `leaving`                             |
 * | `leaving`    | is served until a random delay is over    | attempt, since, recording, timer   | within a response: `ending`                   |
 * | `ending`     | is sent the rest of a response            | attempt, since, recording          | the response is complete: `finished`          |
 * | `finished`   | has been sent the status                  |                                    | never                                         |
 *
 * Every state is left for `finished` when either side ends the stream. Unserved are the requests, which every attempt begins with, and
 * the stand-in, which may serve the stored configuration meanwhile; then the first response of discovery ends the stream, so that what is
 * stored and what discovery sends never reach one stream both.
 */
import type { ServerAddress } from '../../../protocols/messages/credentials.ts'
import type { XdsRelayState } from '../../../protocols/messages/xds-relay.ts'
import type { BackOff } from '../../../src/model/back-off.ts'
import { status } from '../../../src/model/status-codes.ts'
import { ByteStore } from '../../../src/relay/byte-store.ts'
import { countAttempt } from '../../../src/relay/reconnects.ts'
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

/** A failure that repeats the last one is a warning again after this time, in milliseconds. */
const tellAgainMs = 10_000

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

/** What a stream has that discovery has not answered yet. */
interface Unserved {
  /** Undefined when they were discarded. */
  requests: ByteStore | undefined
  standIn: StandIn | undefined
}

/** What a stream has that discovery serves. */
interface Served {
  readonly attempt: Attempt
  /** When discovery sent the first bytes for the proxy, in monotonic milliseconds. */
  readonly since: number
  /** Records the responses that are sent to the proxy. */
  readonly recording: ((bytes: Buffer) => void) | undefined
}

interface Idle {
  readonly name: 'idle'
  readonly unserved: Unserved
}
interface Waiting {
  readonly name: 'waiting'
  readonly unserved: Unserved
  readonly timer: Timer
}
interface Connecting {
  readonly name: 'connecting'
  readonly unserved: Unserved
  attempt: Attempt | undefined
}
interface Open {
  readonly name: 'open'
  readonly unserved: Unserved
  readonly attempt: Attempt
}
interface Live extends Served {
  readonly name: 'live' | 'ending'
}
interface Leaving extends Served {
  readonly name: 'leaving'
  readonly timer: Timer
}
interface Finished {
  readonly name: 'finished'
}
type State = Idle | Waiting | Connecting | Open | Live | Leaving | Finished

/** The states of a stream that discovery has not answered, and of one that it serves. */
const isUnserved = (state: State): state is Idle | Waiting | Connecting | Open => 'unserved' in state
const isServed = (state: State): state is Live | Leaving => 'since' in state
const attemptOf = (state: State): Attempt | undefined => ('attempt' in state ? state.attempt : undefined)

/** One relayed stream. */
export class RelayedStream {
  readonly #proxy: ProxyStream
  readonly #parts: RelayParts
  readonly #began = monotonicMs()
  /** Changed by {@link RelayedStream.#enter} only. */
  #state: State = { name: 'idle', unserved: { requests: new ByteStore(), standIn: undefined } }
  /** Why the last attempt failed. */
  fault: string | undefined
  /** When a failed attempt was a warning last. */
  #toldAt = Number.NEGATIVE_INFINITY

  /** Starts to relay a stream. `over` is called when the stream has ended. */
  constructor(proxy: ProxyStream, parts: RelayParts, over: () => void) {
    this.#proxy = proxy
    this.#parts = parts
    proxy.listen({
      data: (bytes) => this.#request(bytes),
      hasRoom: () => attemptOf(this.#state)?.resume(),
      closed: (isExpected) => {
        if (this.#state.name !== 'finished') this.#proxyClosed(isExpected)
        over()
      },
    })
  }

  get state(): XdsRelayState['stream'] {
    if (isServed(this.#state)) return 'served'
    if (isUnserved(this.#state) && this.#state.unserved.standIn?.isServing) return 'kept'
    return this.#state.name === 'open' ? 'open' : 'waiting'
  }

  healthChanged(): void {
    attemptOf(this.#state)?.healthChanged()
  }

  /** Ends both sides, the proxy's with a status. `askedMs` is the delay that discovery asks for before the next attempt. */
  end(code: number, message: string, askedMs = 0): void {
    if (this.#state.name === 'finished') return
    this.#finish(askedMs)
    this.#proxy.finish(code, message)
  }

  #proxyClosed(isExpected: boolean): void {
    const { log, metrics } = this.#parts
    metrics.proxyEnded(isExpected)
    if (isExpected) log.debug('the proxy has ended its stream')
    else log.warn('the stream of the proxy ended: it was reset, or the proxy stopped reading')
    this.#finish(0)
  }

  #finish(askedMs: number): void {
    const servedMs = isServed(this.#state) ? monotonicMs() - this.#state.since : 0
    if (attemptOf(this.#state)) countAttempt(this.#parts.backOff, { servedMs, askedMs }, monotonicMs(), chance())
    this.#enter({ name: 'finished' })
  }

  /** Enters a state, and ends what belongs to the last one only. */
  #enter(next: State): void {
    const last = this.#state
    this.#state = next
    if ('timer' in last) last.timer.cancel()
    const attempt = attemptOf(last)
    if (attempt !== attemptOf(next)) attempt?.close()
    if (isUnserved(last) && !isUnserved(next)) last.unserved.standIn?.close()
  }

  #request(bytes: Buffer): void {
    const state = this.#state
    if (state.name === 'finished') return
    if (isServed(state)) return this.#relay(state.attempt, bytes)
    const { unserved } = state
    unserved.requests?.append(bytes)
    unserved.standIn?.request(bytes)
    const isFull = isBufferFull(unserved)
    if (state.name === 'open') {
      if (isFull) unserved.requests = undefined
      return this.#relay(state.attempt, bytes)
    }
    if (isFull) this.#proxy.pause()
    if (state.name === 'idle') this.#tryLater(unserved)
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

  #tryLater(unserved: Unserved): void {
    const wait = this.#parts.backOff.wait(monotonicMs())
    if (wait > 0) this.#enter({ name: 'waiting', unserved, timer: after(wait, () => void this.#try(unserved)) })
    else void this.#try(unserved)
  }

  async #try(unserved: Unserved): Promise<void> {
    const connecting: Connecting = { name: 'connecting', unserved, attempt: undefined }
    this.#enter(connecting)
    try {
      const credentials = await this.#parts.credentials()
      if (this.#state === connecting) connecting.attempt = this.#attempt(credentials, connecting)
    } catch (error) {
      if (this.#state === connecting)
        this.#failed(connecting, { code: status.unavailable, message: (error as Error).message, hasStatus: false, retryAfterMs: 0 })
    }
  }

  #attempt(credentials: StreamCredentials, connecting: Connecting): Attempt {
    const { address, log, metrics, own, named, announced } = this.#parts
    const attempt = new Attempt(this.#proxy.isDelta, address, credentials, own, {
      opened: () => this.#opened(attempt, connecting),
      hasRoom: () => this.#proxy.resume(),
      pass: (bytes) => this.#pass(attempt, bytes),
      named,
      announced,
      warn: (message) => log.warn(message),
      requested: () => metrics.requests(1),
      responded: () => {
        metrics.responses(1)
        if (this.#state.name === 'ending' && attempt.isBetween) this.#leave()
      },
      leaving: () => this.#leaveSoon(),
      ended: (end) => this.#ended(attempt, end),
    })
    return attempt
  }

  #opened(attempt: Attempt, { unserved }: Connecting): void {
    const isFull = isBufferFull(unserved)
    this.#enter({ name: 'open', unserved, attempt })
    this.#proxy.resume()
    if (unserved.requests) this.#relay(attempt, unserved.requests.bytes())
    if (isFull) unserved.requests = undefined
  }

  #pass(attempt: Attempt, bytes: Buffer): void {
    if (this.#state.name === 'open') this.#answered(this.#state)
    if (!isServed(this.#state)) return
    this.#state.recording?.(bytes)
    if (!this.#proxy.write(bytes)) attempt.pause()
  }

  /** Called when the first bytes have arrived for the proxy. */
  #answered({ unserved: { requests, standIn }, attempt }: Open): void {
    const { address, backOff, file, log } = this.#parts
    if (standIn?.isServing) {
      log.info(`${address.host}:${address.port} answers again: the stream of the proxy is ended so that it reconnects`)
      this.end(status.ok, '')
      return backOff.succeeded()
    }
    const recording = requests && file?.follow(this.#proxy.isDelta, requests.bytes())
    this.#enter({ name: 'live', attempt, since: monotonicMs(), recording })
    this.fault = undefined
    log.info(`the proxy is served by ${address.host}:${address.port}${attempt.replica === '' ? '' : ` (replica ${attempt.replica})`}`)
  }

  /** Called after a GOAWAY: leaves the connection after a short random delay, between two responses. */
  #leaveSoon(): void {
    if (this.#state.name !== 'live') return
    const { attempt, since, recording } = this.#state
    const timer = after(chance() * leaveMs, () => {
      if (attempt.isBetween) this.#leave()
      else this.#enter({ name: 'ending', attempt, since, recording })
    })
    this.#enter({ name: 'leaving', attempt, since, recording, timer })
  }

  #leave(): void {
    this.#parts.log.debug('discovery closes the connection gracefully (GOAWAY)')
    this.#parts.metrics.discoveryEnded(true)
    this.end(status.ok, '')
  }

  #ended(attempt: Attempt, end: StreamEnd): void {
    const state = this.#state
    // An attempt that was left may still have a fault in what it had received.
    if (attemptOf(state) !== attempt) return
    if (state.name === 'connecting' || state.name === 'open') return this.#failed(state, end)
    const { log, metrics, address } = this.#parts
    const { isExpected, code, message } = endOfStream(end, attempt.isBetween)
    metrics.discoveryEnded(isExpected)
    const text = `the stream of ${address.host}:${address.port} ended: ${end.message || `status ${end.code}`}`
    if (isExpected) log.debug(text)
    else log.warn(text)
    this.fault = isExpected ? undefined : end.message
    this.end(code, message, end.retryAfterMs)
  }

  /**
   * Called when an attempt ended before anything arrived for the proxy. Schedules another attempt, unless the requests were discarded or
   * discovery rejected the requests themselves.
   */
  #failed({ unserved }: Connecting | Open, end: StreamEnd): void {
    const { log, metrics, backOff, address, file } = this.#parts
    metrics.discoveryFailed()
    const isKnown = this.fault === (end.message || `status ${end.code}`) && monotonicMs() - this.#toldAt < tellAgainMs
    if (!isKnown) this.#toldAt = monotonicMs()
    this.fault = end.message || `status ${end.code}`
    const text = `no configuration from ${address.host}:${address.port}: ${this.fault}`
    const { requests } = unserved
    if (!requests || endOfStream(end, true).isFinal) {
      log.warn(text)
      return this.end(end.code, end.message, end.retryAfterMs)
    }
    countAttempt(backOff, { servedMs: 0, askedMs: end.retryAfterMs, isUnanswered: end.isUnanswered ?? false }, monotonicMs(), chance())
    if (isBufferFull(unserved)) this.#proxy.pause()
    else this.#proxy.resume()
    this.#tryLater(unserved)
    if (file && monotonicMs() - this.#began > file.fallbackAfterMs) unserved.standIn ??= new StandIn(this.#proxy, file, log, requests.bytes())
    log[isKnown ? 'debug' : 'warn'](`${text}; retry in ${(backOff.wait(monotonicMs()) / 1000).toFixed(1)} s`)
  }
}

const isBufferFull = ({ requests }: Unserved): boolean => requests !== undefined && requests.length >= maxKept
