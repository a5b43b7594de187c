/** Which proxies are slow at present (`/debug/slowz`). */
import type { Connection } from './connection.ts'

/** A proxy that takes nothing of a response, or whose permit was released early. */
export interface SlowConnection {
  readonly connectionId: string
  readonly namespace: string
  readonly address: string
  /** Bytes of resources in the response under way, and how many of the response have not left yet. */
  readonly bytes: number
  readonly outstanding: number
  /** Milliseconds since anything of it left; 0 while it does. */
  readonly stillMs: number
  /** Milliseconds that the response has been under way. */
  readonly elapsedMs: number
  /** Whether it is sent without a permit, because the permit was released early. */
  readonly releasedEarly: boolean
}

/** From how many milliseconds without progress on a proxy is told as standing still: shorter pauses are those of any network. */
const stillMs = 500

/** What is told of a connection with a response under way; undefined when it is not slow. */
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
