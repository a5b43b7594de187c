/** The handshakes of a TLS server whose thread serves others (docs/xds-protocol.md, H1 to H6). */
import type { Http2SecureServer } from 'node:http2'
import { createServer, type Server, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import type { KnownAddresses } from '../../src/transport/known-addresses.ts'
import { monotonicMs } from '../runtime/clock.ts'
import { Counter, Gauge, type MetricRegistry } from '../runtime/metrics.ts'
import { checkEvery, type Timer } from '../runtime/timers.ts'
import { MeasuredHandshakes, type Refusal } from './measured-handshakes.ts'
import { NativeHandshakes } from './native-handshakes.ts'

/** How often the ages of handshakes are looked at, in milliseconds. */
const ageMs = 100

/**
 * Accepts connections for a TLS server and hands them over. Handshakes of known addresses are native ({@link NativeHandshakes}) as long as
 * those from there are ordinary ones; all others are measured ({@link MeasuredHandshakes}).
 */
export class HandshakeGate {
  /** Listens. Its connections include those whose handshake is unfinished. */
  readonly listener: Server
  readonly #known: KnownAddresses
  readonly #measured: MeasuredHandshakes
  readonly #native: NativeHandshakes
  #ages: Timer | undefined

  /** `say` is called with what the operator should know of a client, as often as it happens. */
  constructor(server: Http2SecureServer, known: KnownAddresses, registry: MetricRegistry, say: (address: string, what: string) => void) {
    this.#known = known
    this.listener = createServer({ pauseOnConnect: true, noDelay: true }, (socket) => this.#accept(socket))
    server.prependListener('secureConnection', (socket: TLSSocket) => {
      if (!this.#measured.secured(socket)) this.#native.secured(socket)
    })
    const { refused, seconds } = metricsOf(registry, () => this.#measured.waiting)
    const begin = (connection: unknown) => void server.emit('connection', connection)
    const count = (reason: Refusal) => refused.inc({ reason })
    this.#measured = new MeasuredHandshakes({
      known,
      begin,
      isNative: (address) => this.#isNative(address),
      doNatively: (socket) => this.#native.take(socket),
      refused: count,
      spentOnStranger: (ms) => seconds.inc({}, ms / 1000),
      say,
    })
    this.#native = new NativeHandshakes({
      begin,
      admit: (socket) => this.#accept(socket),
      measure: (socket) => this.#measured.take(socket, false),
      timedOut: () => count('timeout'),
      say,
    })
  }

  /** A client at an address presented a valid credential: its next connections wait for nobody. */
  trust(address: string): void {
    this.#known.at(address).add(monotonicMs())
    this.#measured.becameKnown()
  }

  /** Whether a client at an address presented a valid credential. */
  isKnown(address: string): boolean {
    return this.#known.at(address).has(monotonicMs())
  }

  /** Ends all unfinished handshakes, and accepts no further connections. */
  close(done: () => void): void {
    this.listener.close(done)
    this.#measured.close()
    this.#native.close()
  }

  #accept(socket: Socket): void {
    const address = socket.remoteAddress
    // Undefined when the client has gone again.
    if (address === undefined) return void socket.destroy()
    this.#ages ??= checkEvery(ageMs, () => this.#checkAges()).unref()
    if (this.#isNative(address)) this.#native.take(socket)
    else this.#measured.take(socket, true)
  }

  #isNative(address: string): boolean {
    return this.isKnown(address) && this.#native.isAllowed(address)
  }

  #checkAges(): void {
    this.#measured.checkAges()
    this.#native.checkAges()
    if (this.#measured.size > 0 || this.#native.size > 0) return
    this.#ages?.cancel()
    this.#ages = undefined
  }
}

/** Registers the metrics of handshakes. */
function metricsOf(registry: MetricRegistry, waiting: () => number): { readonly refused: Counter<'reason'>; readonly seconds: Counter } {
  const registers = [registry]
  new Gauge({
    name: 'pilot_xds_waiting_handshakes',
    help: 'TLS handshakes with bytes that wait to be processed',
    registers,
    collect() {
      this.set({}, waiting())
    },
  })
  return {
    refused: new Counter({
      name: 'pilot_xds_refused_handshakes_total',
      help: 'TLS handshakes that the server ended, by reason',
      labelNames: ['reason'],
      registers,
    }),
    seconds: new Counter({
      name: 'pilot_xds_stranger_handshake_seconds_total',
      help: 'CPU seconds of TLS handshakes of unknown clients',
      registers,
    }),
  }
}
