/** The log of a process, on its main thread: lines of all actors pass through the child logger of their scope to the targets. */
import { type Logger as ChildLogger, pino } from 'pino'
import type { Level, LogLevels, LogRecord } from '../../protocols/messages/log.ts'
import { formatTime } from '../../src/logging/layout.ts'
import { type LogOptions, levelOf } from '../../src/logging/levels.ts'
import { redaction } from '../../src/logging/redaction.ts'
import { wallClockMs } from './clock.ts'
import { LogTargets } from './log-targets.ts'
import { createLogger, type Logger } from './logger.ts'

/** The log of this process. A failing target neither ends nor blocks the process. */
export interface Log {
  /** The logger of the main thread. */
  readonly log: Logger
  /** The levels in force. */
  readonly levels: LogLevels
  /** Changes the levels of all scopes. */
  setLevels(levels: LogLevels): void
  /** Writes a line of an actor, unless the level of its scope forbids it now. */
  write(record: LogRecord): void
  /** Writes an error that ends the process, with its stack. Returns when the line is written, or a reader stands still. */
  fatal(error: unknown): void
  /** Reopens all files, for log rotation by another program. */
  reopen(): void
  /** Waits until every line is written, for at most one second per blocked target. */
  flush(): Promise<void>
}

/** Opens the log. The files of its targets are opened at the first line. */
export function openLog(options: LogOptions): Log {
  const targets = new LogTargets(options)
  const scopes = new Scopes(options, targets)
  const { output, stackTrace, callers } = options
  const levels = { output, stackTrace, callers }
  const write = (record: LogRecord) => scopes.write(record)
  return {
    log: createLogger(levels, write),
    levels,
    setLevels(next) {
      Object.assign(levels, next)
      scopes.setLevels(next)
    },
    write,
    fatal(error) {
      const { message, stack = '' } = error instanceof Error ? error : new Error(String(error))
      write({ time: wallClockMs(), level: 'fatal', scope: 'default', message, labels: {}, stack })
    },
    reopen: () => targets.reopen(),
    flush: () => targets.flush(),
  }
}

/** The child loggers of the scopes. */
class Scopes {
  readonly #root: ChildLogger
  readonly #children = new Map<string, ChildLogger>()
  #levels: LogLevels
  /** Time of the record being written, in Unix milliseconds: when it was made, in whatever thread. */
  #time = 0

  constructor(levels: LogLevels, targets: LogTargets) {
    this.#levels = levels
    this.#root = pino(
      {
        base: null,
        timestamp: () => `,"time":"${formatTime(this.#time)}"`,
        formatters: { level: (level) => ({ level }) },
        redact: redaction,
      },
      targets,
    )
  }

  setLevels(levels: LogLevels): void {
    this.#levels = levels
    for (const [scope, child] of this.#children) child.level = this.#levelOf(scope)
  }

  write({ time, level, scope, message, labels, caller, stack }: LogRecord): void {
    if (level === 'none') return
    this.#time = time
    // The message is a field, because the library puts the message that it is given behind the labels.
    this.#childOf(scope)[level]({ caller, msg: message, ...labels, stack })
  }

  #childOf(scope: string): ChildLogger {
    const known = this.#children.get(scope)
    if (known) return known
    const child = this.#root.child(scope === 'default' ? {} : { scope }, { level: this.#levelOf(scope) })
    this.#children.set(scope, child)
    return child
  }

  #levelOf(scope: string): string {
    const level: Level = levelOf(this.#levels.output, scope)
    return level === 'none' ? 'silent' : level
  }
}
