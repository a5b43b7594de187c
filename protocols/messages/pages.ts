/** Debug pages that callers of the secured port ask for: asked by writers, answered on the main thread. */
import type { Caller } from './identity.ts'

/**
 * Header of requests that change something, with any value. A page of another site cannot make a browser send it, unless this server says so when it is
 * asked first (Fetch, CORS-preflight request), which it never does.
 */
export const changeHeader = 'x-mesh-introspection'

/** The question `debugPage`. The caller was admitted by the writer. */
export interface PageQuestion {
  readonly method: string
  /** With the parameters. */
  readonly path: string
  readonly caller: Caller
  /** Whether the request has the header that is asked of those that change something. */
  readonly isMarked: boolean
}

/** The answer to {@link PageQuestion}; header names are in small letters. */
export interface PageReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}
