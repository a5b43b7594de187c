/** One target of the log. Its failures never reach the code that logs: lost lines are counted and reported in the log later. */
import { monotonicMs } from './clock.ts'
import type { Output } from './log-output.ts'
import { after, type Timer } from './timers.ts'

/** Callbacks into the log. */
export interface TargetParts {
  /** Returns the line that reports lost lines. */
  lostLine(count: number, reason: string): Buffer
  /** Called when the target starts to lose lines. */
  failed(reason: string): void
}

/** Maximum number of bytes buffered for a slow reader. */
const waitingBytes = 1_048_576
/** Delay before a retry, in milliseconds: for a slow reader, and after any other error. */
const slowMs = 50
const brokenMs = 1000
/** Delay before a retry while the thread is blocked, in milliseconds. */
const blockedMs = 5

interface Waiting {
  bytes: Buffer
  /** 0 for the line that reports lost lines, which is not counted if it is lost itself. */
  readonly lines: 0 | 1
}

/** Writes lines in order, as fast as its output accepts them. */
export class LogTarget {
  readonly #output: Output
  readonly #parts: TargetParts
  readonly #waiting: Waiting[] = []
  #waitingBytes = 0
  #lost = 0
  #reason = ''
  /** Whether the last line was written in part only. */
  #torn = false
  #working = false
  #retry: Timer | undefined

  constructor(output: Output, parts: TargetParts) {
    this.#output = output
    this.#parts = parts
  }

  /** Whether the target is losing lines at present. */
  get failing(): boolean {
    return this.#lost > 0
  }

  /** Writes a line, buffers it, or counts it as lost. Never throws. */
  write(line: Buffer): void {
    // After a loss, lines are dropped until the buffer is empty, so that the report of the loss comes before later lines.
    if (this.#waiting.length > 0 && (this.#lost > 0 || this.#waitingBytes + line.length > waitingBytes))
      return this.#lose(1, 'its reader is too slow')
    this.#reportLost()
    this.#keep(line, 1)
    this.#work()
  }

  /** Closes the output; the next line opens it again. Never throws. */
  reopen(): void {
    try {
      this.#output.close()
    } catch (error) {
      this.#lose(0, (error as Error).message)
    }
    this.#work()
  }

  /** Resolves when every line is written or lost, after `deadlineMs` at the latest. */
  async flush(deadlineMs: number): Promise<void> {
    const end = monotonicMs() + deadlineMs
    while (this.#waiting.length > 0 && monotonicMs() < end) await new Promise<void>((resolve) => after(slowMs, resolve))
  }

  /** Blocks the thread until every line is written or lost, for at most `deadlineMs`. */
  flushSync(deadlineMs: number): void {
    const end = monotonicMs() + deadlineMs
    while (this.#waiting.length > 0 && monotonicMs() < end) {
      blockFor(blockedMs)
      this.#work()
    }
  }

  #keep(bytes: Buffer, lines: 0 | 1): void {
    this.#waiting.push({ bytes, lines })
    this.#waitingBytes += bytes.length
  }

  #reportLost(): void {
    if (this.#lost === 0 || this.#waiting.length > 0) return
    const line = this.#parts.lostLine(this.#lost, this.#reason)
    this.#keep(this.#torn ? Buffer.concat([Buffer.from('\n'), line]) : line, 0)
  }

  #work(): void {
    // A write may log to this same target, for example when its file cannot be rotated.
    if (this.#working) return
    this.#working = true
    try {
      for (let next = this.#waiting[0]; next; next = this.#waiting[0]) {
        const written = this.#output.write(next.bytes)
        if (written === 0) return this.#again(slowMs)
        this.#waitingBytes -= written
        this.#torn = written < next.bytes.length
        next.bytes = next.bytes.subarray(written)
        if (next.bytes.length > 0) continue
        this.#waiting.shift()
        if (next.lines === 0) this.#lost = 0
      }
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      if (code === 'EAGAIN') return this.#again(slowMs)
      const lines = this.#waiting.splice(0).reduce((sum, waiting) => sum + waiting.lines, 0)
      this.#waitingBytes = 0
      this.#lose(lines, message)
      this.#again(brokenMs)
    } finally {
      this.#working = false
    }
  }

  #again(ms: number): void {
    this.#retry ??= after(ms, () => {
      this.#retry = undefined
      this.#reportLost()
      this.#work()
    }).unref()
  }

  #lose(lines: number, reason: string): void {
    const first = this.#lost === 0 && lines > 0
    this.#lost += lines
    this.#reason = reason
    if (first) this.#parts.failed(reason)
  }
}

/** Blocks the thread, and with it all its timers, for a time in milliseconds. */
function blockFor(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}
