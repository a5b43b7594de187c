/** Calls of `mesh.admin.v1.AdminService` on the gRPC ports: accepted by writers, answered on the main thread. */
import type { Caller } from './identity.ts'

/** The full name of the service. */
export const adminServiceName = 'mesh.admin.v1.AdminService'

/** The methods of the service. */
export const adminMethods = [
  'ListProxies',
  'GetProxyConfig',
  'ExplainRequest',
  'RouteRequest',
  'ExplainResource',
  'PreviewChanges',
  'ListPushes',
  'WatchPushes',
  'ListFaults',
  'ListFindings',
  'GetFiles',
  'ListActors',
  'ListClusters',
  'ListScopes',
  'ListSettings',
  'GetAuthority',
  'ListHolders',
  'SetScope',
  'PushAgain',
  'DisconnectProxy',
  'RotateRoot',
  'DistrustRoot',
  'TrustRoot',
  'AcceptTime',
] as const

/** Limits of each method on one server. A call collects answers of all writers. */
export const adminBounds = { timeLimit: 30_000, requestBytes: 65_536, concurrent: 16 }

/** Limits of the method that takes files. */
export const previewBounds = { timeLimit: 60_000, requestBytes: 8 * 1_048_576, concurrent: 2 }

/** The limits of a method with one answer. */
export const boundsOf = (method: string): typeof adminBounds => (method === 'PreviewChanges' ? previewBounds : adminBounds)

/** The methods that answer with a stream, and their limits on one server. */
export const adminStreams: readonly string[] = ['WatchPushes']
export const adminStreamBounds = { requestBytes: 65_536, concurrent: 16 }

/**
 * How long a stream lives, since the caller's right to it was checked at its beginning, and the least time between two of its messages, in
 * milliseconds. Changes meanwhile are one message.
 */
export const adminStreamLife = { ms: 1_800_000, pauseMs: 250 }

/** The status message of a stream that has lived that long. */
export const streamIsOver = 'the stream has lasted for half an hour: go on with the last cursor'

/** The question `adminCall`. The writer has authenticated the caller. */
export interface AdminCallQuestion {
  /** `/<service>/<method>`. */
  readonly path: string
  /** The request as gRPC frames. */
  readonly body: Uint8Array
  /** Undefined: a program of this machine, which may read and not act. */
  readonly caller: Caller | undefined
  /** Of a stream: where its next message begins. The answer has one message, and says where the next one begins. */
  readonly cursor?: string
}

/** The answer to {@link AdminCallQuestion}: gRPC frames, and trailers with the status. */
export interface AdminCallReply {
  readonly body: Uint8Array
  readonly trailers: Readonly<Record<string, string>>
  /** Of a stream: where its next message begins, and whether this one says anything new; undefined: this is its end. */
  readonly cursor?: string
  readonly hasNews?: boolean
}
