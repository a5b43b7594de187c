/** Writes the served secrets to files, for programs that read certificates themselves (docs/certificates.md, S9). */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { OutputConfig } from '../../../protocols/messages/agent.ts'
import { replaceFile } from '../../runtime/durable-file.ts'
import { after, type Timer } from '../../runtime/timers.ts'

/** The content by file name. Undefined leaves a file unchanged. */
export interface OutputContent {
  readonly 'key.pem': string | undefined
  readonly 'cert-chain.pem': string | undefined
  readonly 'root-cert.pem': string | undefined
}

/** In the order of writing. The key is written before the chain, because programs reload the key when the chain changes. */
const names = ['key.pem', 'cert-chain.pem', 'root-cert.pem'] as const

/** The first and the maximum delay after a failed write, in milliseconds. */
const waits = { first: 1000, longest: 60_000 }

/** Writes the files. A failed write is retried with back-off. */
export class OutputFiles {
  readonly #config: OutputConfig
  readonly #failed: (reason: string) => void
  readonly #written = new Map<string, string>()
  #content: OutputContent | undefined
  #failures = 0
  /** The last reported reason. */
  #fault: string | undefined
  #timer: Timer | undefined

  /** `failed` is called with the reason when files cannot be written, once for each reason. */
  constructor(config: OutputConfig, failed: (reason: string) => void) {
    this.#config = config
    this.#failed = failed
  }

  /** Sets the content of the files and writes what has changed. */
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
