/** Serves a workload's secrets to its Envoy: `envoy.service.secret.v3.SecretDiscoveryService` on a unix socket (docs/certificates.md, S1 to S6). */
import type { SecretLookup } from '../../../src/agent/secret-resources.ts'
import { BadRequest, SecretStream } from '../../../src/agent/secret-stream.ts'
import { ClientTrust } from '../../../src/identity/client-trust.ts'
import { status } from '../../../src/model/status-codes.ts'
import { messageFrame } from '../../../src/xds/stream/frames.ts'
import { GrpcServer } from '../../grpc/grpc-server.ts'
import type { GrpcStream } from '../../grpc/grpc-stream.ts'
import { PaceWheel } from '../../grpc/pace-wheel.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import type { Registry } from '../../runtime/metrics.ts'
import { type SecretMetrics, secretMetrics } from './metrics.ts'

const service = '/envoy.service.secret.v3.SecretDiscoveryService'

/** Connections at a time, streams on each, and largest message in bytes: a node with all its extensions has 60 KB. */
const bounds = { connections: 128, streams: 1000, messageBytes: 1_048_576 }
/** How long a stream may stand still while bytes for it are outstanding, in milliseconds. */
const sendTimeout = 30_000
/** The other side is on this machine: the system tells when it is gone. */
const connections = {
  keepaliveInterval: Number.POSITIVE_INFINITY,
  keepaliveTimeout: Number.POSITIVE_INFINITY,
  maxConnectionAge: Number.POSITIVE_INFINITY,
  credentialGrace: 0,
}

/** Where the secrets are that the server sends. */
export interface SecretSource {
  readonly find: SecretLookup
  /** A stream wants a secret, from now on; each name that is wanted is forgotten once. */
  want(name: string): void
  forget(name: string): void
}

/** A stream, and what its source was told that it wants. */
interface Served {
  readonly state: SecretStream
  readonly wanted: Set<string>
}

/** The server. */
export class SecretServer {
  readonly #server: GrpcServer
  readonly #log: ScopedLogger
  readonly #metrics: SecretMetrics
  readonly #source: SecretSource
  readonly #streams = new Map<GrpcStream, Served>()

  /** Serves on the unix socket `path` what `source` has at the time. */
  constructor(path: string, source: SecretSource, parts: { readonly log: ScopedLogger; readonly metrics: Registry }) {
    this.#log = parts.log
    this.#source = source
    this.#metrics = secretMetrics(parts.metrics, () => [...this.#streams.values()].map(({ state }) => state.version))
    const open = (isDelta: boolean) => ({ type: 'bidi_stream' as const, open: (stream: GrpcStream) => this.#take(stream, isDelta) })
    this.#server = new GrpcServer(
      {
        plain: { path, directory: 'mounted' },
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
        wheel: new PaceWheel(),
        methods: new Map([
          [`${service}/StreamSecrets`, open(false)],
          [`${service}/DeltaSecrets`, open(true)],
        ]),
        trust: new ClientTrust(),
        refused: () => undefined,
      },
    )
  }

  /** Starts to listen. Rejects when the path cannot be listened on. */
  open(): Promise<void> {
    return this.#server.open()
  }

  /** Sends what has changed to the streams that want it. */
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
        for (const name of unknown) this.#log.warn(`Envoy asks for the secret ${JSON.stringify(name.slice(0, 200))}, which this agent does not have`)
      } catch (error) {
        if (!(error instanceof BadRequest)) throw error
        this.#log.warn(`a stream of secrets was ended: ${error.message}`)
        return stream.end(status.invalidArgument, error.message)
      }
      this.#follow(served)
      this.#send(stream, state)
    })
  }

  /** Tells the source what a stream wants now and did not before, and the other way round. */
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
    this.#log.warn(`Envoy refused a secret and keeps the one it had: ${reason}`)
  }

  #send(stream: GrpcStream, state: SecretStream): void {
    if (stream.status !== undefined) return
    const response = state.next(this.#source.find)
    if (!response) return
    const begin = monotonicMs()
    stream.write([messageFrame(response)], (isLost) => this.#metrics.pushed(isLost, (monotonicMs() - begin) / 1000))
  }
}
