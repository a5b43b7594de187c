/** The one place where log lines are written, on the main thread: to targets, and to a rotating file if asked. */
import type { LogRecord } from '../../protocols/messages/log.ts'
import { jsonLine, plainLine } from '../../src/logging/layout.ts'
import type { LogOptions } from '../../src/logging/levels.ts'
import { wallClockMs } from './clock.ts'
import { DescriptorOutput, FileOutput, type Output } from './log-output.ts'
import { LogTarget } from './log-target.ts'
import { RotatingFile } from './rotating-file.ts'
import { every } from './timers.ts'

/** Writes log lines. Nothing that goes wrong with a target ends the process or holds it up. */
export interface LogWriter {
  write(record: LogRecord): void
  /** Opens all files anew, for whoever has moved them away. */
  reopen(): void
  /** Waits until everything written is out, a second at most for a target that does not take it. */
  flush(): Promise<void>
}

const flushMs = 1000
/** How often backups are looked through for old ones, in milliseconds. */
const pruneMs = 3_600_000

/** Opens the targets when the first line comes. A target that cannot be written is told of on the others, and on standard error if there is none. */
export function openLog(options: LogOptions): LogWriter {
  const layout = options.asJson ? jsonLine : plainLine
  const line = (message: string) => Buffer.from(layout({ time: wallClockMs(), level: 'warn', scope: 'default', message, labels: {} }))
  const targets = new Map<string, LogTarget>()
  const tell = (message: string, except?: LogTarget) => {
    const others = [...targets.values()].filter((target) => target !== except && !target.failing)
    for (const target of others.length > 0 ? others : [lastResort]) target.write(line(message))
  }
  const targetOf = (name: string, output: Output, silent = false): LogTarget => {
    const target: LogTarget = new LogTarget(output, {
      lostLine: (count, reason) => line(`${count} log lines were lost for ${name}: ${reason}`),
      failed: (reason) => {
        if (!silent) tell(`lines of the log are lost for ${name} until it can be written: ${reason}`, target)
      },
    })
    return target
  }
  const lastResort = targetOf('stderr', new DescriptorOutput(2), true)
  for (const name of options.targets) targets.set(`--log_target ${name}`, targetOf(`--log_target ${name}`, outputOf(name)))
  const rotating = options.rotate && new RotatingFile(options.rotate, tell)
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
