/** Log lines on their way from an actor to the thread that writes them. */

/** Severities from most to least verbose; `none` logs nothing. */
export type Level = 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'none'

/** Levels by scope. Scopes without an entry have the fallback. */
export interface ScopeLevels {
  readonly fallback: Level
  readonly scopes: Readonly<Record<string, Level>>
}

/** The current log levels, which may change while the process runs. */
export interface LogLevels {
  readonly output: ScopeLevels
  readonly stackTrace: ScopeLevels
  /** Scopes whose lines include the caller; `all` for every scope. */
  readonly callers: readonly string[]
}

/** A log line before layout. */
export interface LogRecord {
  /** Unix milliseconds, with fractions. */
  readonly time: number
  readonly level: Level
  readonly scope: string
  readonly message: string
  readonly labels: Readonly<Record<string, string | number | boolean>>
  readonly caller?: string
  readonly stack?: string
}
