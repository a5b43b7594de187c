/** One target of the log. Nothing that happens to it reaches whoever logs: what it cannot take is counted and told later. */
import { monotonicMs } from './clock.ts'
import type { Output } from './log-output.ts'
import { after, type Timer } from './timers.ts'

/** What a target asks of the log. */
export interface TargetParts {
  /** The line that tells of lost ones. */
  lostLine(count: number, reason: string): Buffer
  /** Called once when the target begins to lose lines. */
  failed(reason: string): void
}

/** Bytes that wait for a slow reader at most. */
const waitingBytes = 1_048_576
/** Pauses before it is tried again, in milliseconds: a reader that is slow, anything else. */
const slowMs = 50
const brokenMs = 1000

interface Waiting {
  bytes: Buffer
  /** 0 for the line that tells of lost ones, which is not counted itself. */
  readonly lines: 0 | 1
}

/** Writes lines in order, as far as its output takes them. */
export class LogTarget {
  readonly #output: Output
  readonly #parts: TargetParts
  readonly #waiting: Waiting[] = []
  #waitingBytes = 0
  #lost = 0
  #reason = ''
  /** Whether the last line that was written is not whole. */
  #torn = false
  #working = false
  #retry: Timer | undefined

  constructor(output: Output, parts: TargetParts) {
    this.#output = output
    this.#parts = parts
  }

  /** Whether it loses lines at present. */
  get failing(): boolean {
    return this.#lost > 0
  }

  /** Writes a line, or keeps it for a moment, or counts it as lost. Never throws. */
  write(line: Buffer): void {
    // While something waits, a line after lost ones would come before the word about them.
    if (this.#waiting.length > 0 && (this.#lost > 0 || this.#waitingBytes + line.length > waitingBytes))
      return this.#lose(1, 'its reader is too slow')
    this.#tellLost()
    this.#keep(line, 1)
    this.#work()
  }

  /** Closes what it writes to; the next line opens it anew. Never throws. */
  reopen(): void {
    try {
      this.#output.close()
    } catch (error) {
      this.#lose(0, (error as Error).message)
    }
    this.#work()
  }

  /** Resolves when all is written or lost, at the latest after so many milliseconds. */
  async flush(deadlineMs: number): Promise<void> {
    const end = monotonicMs() + deadlineMs
    while (this.#waiting.length > 0 && monotonicMs() < end) await new Promise<void>((resolve) => after(slowMs, resolve))
  }

  #keep(bytes: Buffer, lines: 0 | 1): void {
    this.#waiting.push({ bytes, lines })
    this.#waitingBytes += bytes.length
  }

  #tellLost(): void {
    if (this.#lost === 0 || this.#waiting.length > 0) return
    const line = this.#parts.lostLine(this.#lost, this.#reason)
    this.#keep(this.#torn ? Buffer.concat([Buffer.from('\n'), line]) : line, 0)
  }

  #work(): void {
    // A write may be reported to this very target, for instance that its file could not be renamed.
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
      this.#tellLost()
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
