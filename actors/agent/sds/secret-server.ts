/** Serves a workload's secrets to its Envoy: `envoy.service.secret.v3.SecretDiscoveryService` on a unix socket (docs/certificates.md, S1 to S6). */
import { pairName, rootsName, type SecretResource } from '../../../src/agent/secret-resources.ts'
import { BadRequest, SecretStream } from '../../../src/agent/secret-stream.ts'
import { ClientTrust } from '../../../src/identity/client-trust.ts'
import { messageFrame } from '../../../src/xds/stream/frames.ts'
import { GrpcServer } from '../../grpc/grpc-server.ts'
import type { GrpcStream } from '../../grpc/grpc-stream.ts'
import { PaceWheel } from '../../grpc/pace-wheel.ts'
import { status } from '../../grpc/status-codes.ts'
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

const names: ReadonlySet<string> = new Set([pairName, rootsName])

/** The server. */
export class SecretServer {
  readonly #server: GrpcServer
  readonly #log: ScopedLogger
  readonly #metrics: SecretMetrics
  readonly #secrets: () => ReadonlyMap<string, SecretResource>
  readonly #streams = new Map<GrpcStream, SecretStream>()

  /** Serves on the unix socket `path` what `secrets` gives at the time. */
  constructor(path: string, secrets: () => ReadonlyMap<string, SecretResource>, parts: { readonly log: ScopedLogger; readonly metrics: Registry }) {
    this.#log = parts.log
    this.#secrets = secrets
    this.#metrics = secretMetrics(parts.metrics, () => this.#streams.size)
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
    for (const [stream, state] of this.#streams) this.#send(stream, state)
  }

  close(): Promise<void> {
    return this.#server.close()
  }

  #take(stream: GrpcStream, isDelta: boolean): void {
    const state = new SecretStream(isDelta, (name) => names.has(name))
    this.#streams.set(stream, state)
    stream.onClose(() => this.#streams.delete(stream))
    stream.onStandstill(() => this.#metrics.stale())
    stream.onEnd(() => stream.end(status.ok, ''))
    stream.onBorrowed((message) => {
      try {
        const { refused, unknown } = state.take(message)
        if (refused !== undefined) this.#refused(refused)
        for (const name of unknown) this.#log.warn(`Envoy asks for the secret ${JSON.stringify(name.slice(0, 200))}, which this agent does not have`)
      } catch (error) {
        if (!(error instanceof BadRequest)) throw error
        this.#log.warn(`a stream of secrets was ended: ${error.message}`)
        return stream.end(status.invalidArgument, error.message)
      }
      this.#send(stream, state)
    })
  }

  #refused(reason: string): void {
    this.#metrics.refused()
    this.#log.warn(`Envoy refused a secret and keeps the one it had: ${reason}`)
  }

  #send(stream: GrpcStream, state: SecretStream): void {
    if (stream.status !== undefined) return
    const response = state.next(this.#secrets())
    if (!response) return
    stream.write([messageFrame(response)], (isLost) => this.#metrics.pushed(isLost))
  }
}
