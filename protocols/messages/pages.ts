/** Debug pages for callers on the secured port: requested by writers, made on the main thread. */
import type { Endpoint, RegistryId, ServicePort } from '../data.ts'
import type { Caller } from './identity.ts'

/**
 * The header that requests which change something must have, with any value. A browser does not send it for a page of another site unless
 * the server permits it in a preflight response (Fetch, CORS-preflight request), which this server never does.
 */
export const changeHeader = 'x-mesh-introspection'

/** The question `debugPage`. The writer has already authorized the caller. */
export interface PageQuestion {
  readonly method: string
  /** With the query parameters. */
  readonly path: string
  readonly caller: Caller
  /** Whether the request has the header {@link changeHeader}. */
  readonly isMarked: boolean
}

/** The answer to {@link PageQuestion}; header names are in lower case. */
export interface PageReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array
}

/** A piece of a list that an actor gives out piece by piece. */
export interface ListPiece<Row> {
  readonly rows: readonly Row[]
  /** The number by which the next piece is asked for (question `more`); undefined: the list is complete. */
  readonly next: number | undefined
}

/** Some of the endpoints that a registry has of a service, for debug pages. The rows of a service follow each other. */
export interface EndpointsRow {
  readonly hostname: string
  readonly namespace: string
  readonly ports: readonly ServicePort[]
  /** Undefined where no registry has endpoints of the service. */
  readonly shard: RegistryId | undefined
  readonly endpoints: readonly Endpoint[]
}
