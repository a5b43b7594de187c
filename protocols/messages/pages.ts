/** Debug pages that callers of the secured port ask for: asked by writers, answered on the main thread. */
import type { Caller } from './identity.ts'

/** The question `debugPage`. The caller was admitted by the writer. */
export interface PageQuestion {
  readonly method: string
  /** With the parameters. */
  readonly path: string
  readonly caller: Caller
}

/** The answer to {@link PageQuestion}; header names are in small letters. */
export interface PageReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}
