/** Log lines on their way from an actor to the thread that writes them. */

/** Severities from most to least verbose; `none` lets nothing through. */
export type Level = 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'none'

/** One log line before layout. */
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
