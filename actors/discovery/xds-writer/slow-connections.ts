/** The proxies that are slow at present (`/debug/slowz`). */
import type { Connection } from './connection.ts'

/** A proxy that makes no progress on a response, or whose permit was released early. */
export interface SlowConnection {
  readonly connectionId: string
  readonly namespace: string
  readonly address: string
  /** Bytes of resources in the response that is being sent, and bytes of that response that have not been delivered yet. */
  readonly bytes: number
  readonly outstanding: number
  /** Milliseconds without progress; 0 while it makes progress. */
  readonly stillMs: number
  /** Milliseconds since the start of the response, as in `Sending.elapsedMs`. */
  readonly elapsedMs: number
  /** Whether the response is sent without a permit because the permit was released early. */
  readonly releasedEarly: boolean
}

/** A proxy counts as standing still after this many milliseconds without progress; shorter pauses occur in any network. */
const stillMs = 500

/** Describes a connection with a response that is being sent. Returns undefined when the connection is not slow. */
export function slowConnection({ id, node, stream, sending }: Connection, releasedEarly: boolean): SlowConnection | undefined {
  if (!sending || (!releasedEarly && stream.stillMs < stillMs)) return undefined
  return {
    connectionId: id,
    namespace: node?.namespace ?? '',
    address: stream.peer,
    bytes: sending.bytes,
    outstanding: stream.outstanding,
    stillMs: stream.stillMs < stillMs ? 0 : Math.round(stream.stillMs),
    elapsedMs: Math.round(sending.elapsedMs),
    releasedEarly,
  }
}
