/**
 * Serves a workload's secrets to its Envoy: `envoy.service.secret.v3.SecretDiscoveryService` on a Unix socket (docs/certificates.md, S1 to
 * S6).
 */
import type { SecretAgentConfig } from '../../../protocols/messages/agent.ts'
import type { SecretLookup } from '../../../src/agent/secret-resources.ts'
import { BadRequest, SecretStream } from '../../../src/agent/secret-stream.ts'
import { ClientTrust } from '../../../src/identity/client-trust.ts'
import { status } from '../../../src/model/status-codes.ts'
import { messageFrame } from '../../../src/xds/stream/frames.ts'
import { GrpcServer } from '../../grpc/grpc-server.ts'
import type { GrpcStream } from '../../grpc/grpc-stream.ts'
import { StandstillTimer } from '../../grpc/standstill-timer.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import type { MetricRegistry } from '../../runtime/metrics.ts'
import { type SecretMetrics, secretMetrics } from './metrics.ts'

const service = '/envoy.service.secret.v3.SecretDiscoveryService'

/**
 * The maximum numbers of connections and of streams on each, and the maximum message size in bytes: a node with all its extensions has 60
 * KB.
 */
const bounds = { connections: 128, streams: 1000, messageBytes: 1_048_576 }
/** The send timeout: how long a stream may make no progress while it has unsent bytes, in milliseconds. */
const sendTimeout = 30_000
/** The peer is on this machine, so the kernel reports a closed connection and no keepalive is needed. */
const connections = {
  keepaliveInterval: Number.POSITIVE_INFINITY,
  keepaliveTimeout: Number.POSITIVE_INFINITY,
  maxConnectionAge: Number.POSITIVE_INFINITY,
  credentialGrace: 0,
}

/** The source of the secrets. */
export interface SecretSource {
  readonly find: SecretLookup
  /** Adds a subscription of a stream. Each is later removed once with `forget`. */
  want(name: string): void
  forget(name: string): void
}

/** A stream, and its subscriptions as the source knows them. */
interface Served {
  readonly state: SecretStream
  readonly wanted: Set<string>
}

/** The SDS server. */
export class SecretServer {
  readonly #server: GrpcServer
  readonly #log: ScopedLogger
  readonly #metrics: SecretMetrics
  readonly #source: SecretSource
  readonly #streams = new Map<GrpcStream, Served>()

  /** Serves the secrets of `source` on the Unix socket `path`. `allowVolumes`: {@link trustedDirectory}. */
  constructor(
    { socket: path, allowVolumes }: Pick<SecretAgentConfig, 'socket' | 'allowVolumes'>,
    source: SecretSource,
    parts: { readonly log: ScopedLogger; readonly metrics: MetricRegistry },
  ) {
    this.#log = parts.log
    this.#source = source
    this.#metrics = secretMetrics(parts.metrics, () => [...this.#streams.values()].map(({ state }) => state.version))
    const open = (isDelta: boolean) => ({ type: 'bidi_stream' as const, open: (stream: GrpcStream) => this.#take(stream, isDelta) })
    this.#server = new GrpcServer(
      {
        plain: { path, directory: { isOwn: false, allowVolumes } },
        secure: undefined,
        sharers: 1,
        maxConnections: bounds.connections,
        maxStreams: bounds.streams,
        messageBytes: bounds.messageBytes,
        sendTimeout,
        connections,
      },
      {
        ...parts,
        standstillTimer: new StandstillTimer(),
        methods: new Map([
          [`${service}/StreamSecrets`, open(false)],
          [`${service}/DeltaSecrets`, open(true)],
        ]),
        trust: new ClientTrust(),
        refused: () => undefined,
      },
    )
  }

  /** Starts to listen. Rejects when it cannot listen on the path. */
  open(): Promise<void> {
    return this.#server.open()
  }

  /** Sends changed secrets to the streams that subscribe to them. */
  push(): void {
    for (const [stream, { state }] of this.#streams) this.#send(stream, state)
  }

  close(): Promise<void> {
    return this.#server.close()
  }

  #take(stream: GrpcStream, isDelta: boolean): void {
    const state = new SecretStream(isDelta)
    const served: Served = { state, wanted: new Set() }
    this.#streams.set(stream, served)
    stream.onClose(() => {
      this.#streams.delete(stream)
      for (const name of served.wanted) this.#source.forget(name)
    })
    stream.onStandstill(() => this.#metrics.stale())
    stream.onEnd(() => stream.end(status.ok, ''))
    stream.onBorrowed((message) => {
      try {
        const { refused, unknown, isStale } = state.take(message)
        if (isStale) this.#metrics.expired()
        if (refused !== undefined) this.#refused(refused)
        for (const name of unknown) this.#log.warn(`Envoy requested the secret ${JSON.stringify(name.slice(0, 200))}, which this agent does not have`)
      } catch (error) {
        if (!(error instanceof BadRequest)) throw error
        this.#log.warn(`a stream of secrets was ended: ${error.message}`)
        return stream.end(status.invalidArgument, error.message)
      }
      this.#follow(served)
      this.#send(stream, state)
    })
  }

  /** Reports the changes of a stream's subscription to the source. */
  #follow({ state, wanted }: Served): void {
    for (const name of state.wanted) {
      if (wanted.has(name)) continue
      wanted.add(name)
      this.#source.want(name)
    }
    for (const name of wanted) {
      if (state.wanted.has(name)) continue
      wanted.delete(name)
      this.#source.forget(name)
    }
  }

  #refused(reason: string): void {
    this.#metrics.refused()
    this.#log.warn(`Envoy rejected a secret and keeps the previous one: ${reason}`)
  }

  #send(stream: GrpcStream, state: SecretStream): void {
    if (stream.status !== undefined) return
    const response = state.next(this.#source.find)
    if (!response) return
    const begin = monotonicMs()
    stream.write([messageFrame(response)], (isLost) => this.#metrics.pushed(isLost, (monotonicMs() - begin) / 1000))
  }
}
