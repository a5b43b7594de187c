/** Calls of `mesh.admin.v1.AdminService` on the gRPC ports: accepted by writers, answered on the main thread. */
import type { Caller } from './identity.ts'

/** The full name of the service. */
export const adminServiceName = 'mesh.admin.v1.AdminService'

/** The methods of the service. */
export const adminMethods = [
  'ListProxies',
  'GetProxyConfig',
  'ExplainRequest',
  'ListFaults',
  'GetFiles',
  'ListActors',
  'ListScopes',
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

/** The question `adminCall`. The writer has authenticated the caller. */
export interface AdminCallQuestion {
  /** `/<service>/<method>`. */
  readonly path: string
  /** The request as gRPC frames. */
  readonly body: Uint8Array
  /** Undefined: a program of this machine, which may read and not act. */
  readonly caller: Caller | undefined
}

/** The answer to {@link AdminCallQuestion}: gRPC frames, and trailers with the status. */
export interface AdminCallReply {
  readonly body: Uint8Array
  readonly trailers: Readonly<Record<string, string>>
}
