/** Calls, as the implementations of RPCs see them. */
import type { IncomingHttpHeaders } from 'node:http'
import type { Caller } from '../../protocols/messages/identity.ts'
import type { ConnectionEnds } from '../../src/identity/socket-table.ts'

/** The properties of a call that its connection and its headers determine. */
export interface CallOrigin {
  /** Address of the client, for log lines; not an identity. */
  readonly peer: string
  /** The metadata of the call. */
  readonly headers: IncomingHttpHeaders
  /** Whether the connection uses TLS. */
  readonly isSecure: boolean
  /** Whether both ends of the connection have loopback addresses. */
  readonly isLocal: boolean
  /** The ends of the connection: the same object for all of its calls. */
  readonly ends: ConnectionEnds
  /** The caller by client certificate, if that is valid and trusted at present; undefined in plain text. */
  readonly certificateCaller: Caller | undefined
  /** Identifies the connection: the same object for all of its calls. */
  readonly connection: object
}

/** A call, without its messages. */
export interface Call extends CallOrigin {
  /** Aborted when the answer is no longer needed: the client is gone, or the deadline has passed. */
  readonly signal: AbortSignal
  /** What is left until the deadline, in milliseconds; infinite for streams. */
  restMs(): number
}

/** An error answer with its gRPC code. */
export interface CallStatus {
  readonly code: number
  readonly message: string
  /** Retry delay for the client, in milliseconds. */
  readonly retryAfterMs?: number
}

/** Limits of a unary method. */
export interface CallBounds {
  /** Maximum time from the first byte of a call to its answer, in milliseconds; a client may set a shorter one. */
  readonly timeLimit: number
  /** Maximum size of a request message, in bytes. */
  readonly requestBytes: number
  /** Maximum number of concurrent calls on one server ({@link CallSlots}). */
  readonly concurrent: number
}
