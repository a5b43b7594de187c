/** Logging inside an actor: lines are filtered here and written by the main thread. */
import type { Level, LogLevels, LogRecord } from '../../protocols/messages/log.ts'
import { levelOf, passes } from '../../src/logging/levels.ts'
import { wallClockMs } from './clock.ts'

type Labels = Readonly<Record<string, string | number | boolean>>

/** Logs lines of one scope. */
export interface ScopedLogger {
  debug(message: string, labels?: Labels): void
  info(message: string, labels?: Labels): void
  warn(message: string, labels?: Labels): void
  error(message: string, labels?: Labels): void
}

/** Returns a logger for a scope. */
export type Logger = (scope: string) => ScopedLogger

/**
 * Returns a logger that passes lines to `write` if the level of their scope permits. `options` is read at every line, so changes take
 * effect at once.
 */
export function createLogger(options: LogLevels, write: (record: LogRecord) => void): Logger {
  return (scope) => {
    const at =
      (level: Exclude<Level, 'none'>) =>
      (message: string, labels: Labels = {}) => {
        if (!passes(level, levelOf(options.output, scope))) return
        const withStack = passes(level, levelOf(options.stackTrace, scope))
        const withCaller = options.callers.includes('all') || options.callers.includes(scope)
        const frames = withStack || withCaller ? callFrames() : []
        write({
          time: wallClockMs(),
          level,
          scope,
          message,
          labels,
          ...(withCaller ? { caller: callerOf(frames[0] ?? '') } : {}),
          ...(withStack ? { stack: frames.join('\n') } : {}),
        })
      }
    return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  }
}

/** Stack frames above the logging call, innermost first. */
function callFrames(): string[] {
  const lines = (new Error().stack ?? '').split('\n').slice(1)
  return lines.filter((line) => !line.includes('/runtime/logger.')).map((line) => line.trim())
}

/** `<folder>/<file>:<line>` of a stack frame. */
function callerOf(frame: string): string {
  const match = /([^/\\()]+\/[^/\\()]+):(\d+):\d+\)?$/.exec(frame)
  return match ? `${match[1]}:${match[2]}` : ''
}
