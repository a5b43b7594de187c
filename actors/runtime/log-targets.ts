/** The destination of the log: all targets, and a rotating file if configured. A failing target neither ends nor blocks the process. */
import { consoleLine, formatTime, jsonLine } from '../../src/logging/layout.ts'
import type { LogOptions } from '../../src/logging/levels.ts'
import { count } from '../../src/model/counts.ts'
import { wallClockMs } from './clock.ts'
import { DescriptorOutput, FileOutput, type Output } from './log-output.ts'
import { LogTarget } from './log-target.ts'
import { RotatingFile } from './rotating-file.ts'
import { every } from './timers.ts'

/** How long lines wait for a reader that stands still when the process ends, in milliseconds, per target. */
const flushMs = 1000
/** Interval at which old backups are deleted, in milliseconds. */
const pruneMs = 3_600_000

/**
 * Writes lines to every target, in the configured layout. Targets are opened at the first line. A target that cannot be written to is
 * reported on the other targets, or on standard error if no other works.
 */
export class LogTargets {
  readonly #layout: (json: string) => string
  readonly #targets = new Map<string, LogTarget>()
  readonly #lastResort: LogTarget

  constructor({ asJson, targets, rotate }: LogOptions) {
    this.#layout = asJson ? jsonLine : consoleLine
    this.#lastResort = new LogTarget(new DescriptorOutput(2), { lostLine: this.#lostLine('stderr'), failed: () => {} })
    for (const name of targets) this.#add(`--log_target ${name}`, outputOf(name))
    if (!rotate) return
    const rotating = new RotatingFile(rotate, (message) => this.#report(message))
    this.#add(`--log_rotate ${rotate.path}`, rotating)
    rotating.prune()
    every(pruneMs, () => rotating.prune()).unref()
  }

  /** Writes a line in JSON. Never throws. */
  write(json: string): void {
    const bytes = Buffer.from(this.#layout(json))
    for (const target of this.#targets.values()) target.write(bytes)
  }

  /** Reopens all files, for log rotation by another program. */
  reopen(): void {
    for (const target of this.#targets.values()) target.reopen()
  }

  /** Resolves when every line is written or lost, after one second per blocked target at the latest. */
  async flush(): Promise<void> {
    await Promise.all([...this.#targets.values()].map((target) => target.flush(flushMs)))
  }

  /** Blocks until every line is written or lost, for at most one second per blocked target: for the last line before the process ends. */
  flushSync(): void {
    for (const target of this.#targets.values()) target.flushSync(flushMs)
  }

  #add(name: string, output: Output): void {
    const target = new LogTarget(output, {
      lostLine: this.#lostLine(name),
      failed: (reason) => this.#report(`cannot write the log to ${name}: ${reason}; lines for it are dropped until it can be written again`, target),
    })
    this.#targets.set(name, target)
  }

  /** Writes a line about the log itself to the targets that work, except for the one that it is about. */
  #report(message: string, except?: LogTarget): void {
    const others = [...this.#targets.values()].filter((target) => target !== except && !target.failing)
    for (const target of others.length > 0 ? others : [this.#lastResort]) target.write(this.#ownLine(message))
  }

  #lostLine(name: string): (lost: number, reason: string) => Buffer {
    return (lost, reason) => this.#ownLine(`${count(lost, `log line for ${name} was`, `log lines for ${name} were`)} dropped: ${reason}`)
  }

  #ownLine(msg: string): Buffer {
    return Buffer.from(this.#layout(JSON.stringify({ level: 'warn', time: formatTime(wallClockMs()), msg })))
  }
}

function outputOf(target: string): Output {
  if (target === 'stdout') return new DescriptorOutput(1)
  return target === 'stderr' ? new DescriptorOutput(2) : new FileOutput(target)
}
