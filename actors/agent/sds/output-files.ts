/** Writes what is served to files, for programs that read certificates themselves (docs/certificates.md, S9). */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { OutputConfig } from '../../../protocols/messages/agent.ts'
import { replaceFile } from '../../runtime/durable-file.ts'
import { after, type Timer } from '../../runtime/timers.ts'

/** What is written, by the names of the files; undefined leaves a file as it is. */
export interface OutputContent {
  readonly 'key.pem': string | undefined
  readonly 'cert-chain.pem': string | undefined
  readonly 'root-cert.pem': string | undefined
}

/** In the order in which they are written: programs take a new chain as the sign to read the key. */
const names = ['key.pem', 'cert-chain.pem', 'root-cert.pem'] as const

/** First and longest wait after a failure, in milliseconds. */
const waits = { first: 1000, longest: 60_000 }

/** The files. What cannot be written is tried again. */
export class OutputFiles {
  readonly #config: OutputConfig
  readonly #failed: (reason: string) => void
  readonly #written = new Map<string, string>()
  #content: OutputContent | undefined
  #failures = 0
  /** The last reason that was told. */
  #fault: string | undefined
  #timer: Timer | undefined

  /** `failed` is told why files cannot be written, once for each reason. */
  constructor(config: OutputConfig, failed: (reason: string) => void) {
    this.#config = config
    this.#failed = failed
  }

  /** Has the files hold this. */
  write(content: OutputContent): void {
    this.#content = content
    this.#timer?.cancel()
    this.#try()
  }

  close(): void {
    this.#timer?.cancel()
  }

  #try(): void {
    const { directory, isForAll } = this.#config
    try {
      mkdirSync(directory, { recursive: true, mode: isForAll ? 0o755 : 0o700 })
      for (const name of names) {
        const text = this.#content?.[name]
        if (text === undefined || this.#written.get(name) === text) continue
        replaceFile(join(directory, name), text, isForAll ? 0o644 : 0o600)
        this.#written.set(name, text)
      }
      this.#failures = 0
      this.#fault = undefined
    } catch (error) {
      const { message } = error as Error
      if (this.#fault !== message) this.#failed(message)
      this.#fault = message
      this.#timer = after(Math.min(waits.longest, waits.first * 2 ** Math.min(this.#failures++, 20)), () => this.#try()).unref()
    }
  }
}
