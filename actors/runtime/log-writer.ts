/** Writes the log lines of all actors, on the main thread: to the targets, and to a rotating file if configured. */
import type { LogRecord } from '../../protocols/messages/log.ts'
import { jsonLine, plainLine } from '../../src/logging/layout.ts'
import type { LogOptions } from '../../src/logging/levels.ts'
import { count } from '../../src/model/counts.ts'
import { wallClockMs } from './clock.ts'
import { DescriptorOutput, FileOutput, type Output } from './log-output.ts'
import { LogTarget } from './log-target.ts'
import { RotatingFile } from './rotating-file.ts'
import { every } from './timers.ts'

/** Writes log lines. A failing target neither ends nor blocks the process. */
export interface LogWriter {
  write(record: LogRecord): void
  /** Reopens all files, for log rotation by another program. */
  reopen(): void
  /** Waits until every line is written, for at most one second per blocked target. */
  flush(): Promise<void>
}

const flushMs = 1000
/** Interval at which old backups are deleted, in milliseconds. */
const pruneMs = 3_600_000

/**
 * Creates the log. Targets are opened at the first line. A target that cannot be written to is reported on the other targets, or on
 * standard error if no other works.
 */
export function openLog(options: LogOptions): LogWriter {
  const layout = options.asJson ? jsonLine : plainLine
  const line = (message: string) => Buffer.from(layout({ time: wallClockMs(), level: 'warn', scope: 'default', message, labels: {} }))
  const targets = new Map<string, LogTarget>()
  const report = (message: string, except?: LogTarget) => {
    const others = [...targets.values()].filter((target) => target !== except && !target.failing)
    for (const target of others.length > 0 ? others : [lastResort]) target.write(line(message))
  }
  const targetOf = (name: string, output: Output, silent = false): LogTarget => {
    const target: LogTarget = new LogTarget(output, {
      lostLine: (lost, reason) => line(`${count(lost, `log line for ${name} was`, `log lines for ${name} were`)} dropped: ${reason}`),
      failed: (reason) => {
        if (!silent) report(`cannot write the log to ${name}: ${reason}; lines for it are dropped until it can be written again`, target)
      },
    })
    return target
  }
  const lastResort = targetOf('stderr', new DescriptorOutput(2), true)
  for (const name of options.targets) targets.set(`--log_target ${name}`, targetOf(`--log_target ${name}`, outputOf(name)))
  const rotating = options.rotate && new RotatingFile(options.rotate, report)
  if (rotating && options.rotate) {
    const name = `--log_rotate ${options.rotate.path}`
    targets.set(name, targetOf(name, rotating))
    rotating.prune()
    every(pruneMs, () => rotating.prune()).unref()
  }
  return {
    write(record) {
      const bytes = Buffer.from(layout(record))
      for (const target of targets.values()) target.write(bytes)
    },
    reopen() {
      for (const target of targets.values()) target.reopen()
    },
    async flush() {
      await Promise.all([...targets.values()].map((target) => target.flush(flushMs)))
    },
  }
}

function outputOf(target: string): Output {
  if (target === 'stdout') return new DescriptorOutput(1)
  return target === 'stderr' ? new DescriptorOutput(2) : new FileOutput(target)
}
