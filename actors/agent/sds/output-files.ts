/** Writes the served secrets to files, for programs that read certificates themselves (docs/certificates.md, S9, S10). */
import { mkdirSync, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { OutputConfig } from '../../../protocols/messages/agent.ts'
import { BackOff, type Pauses } from '../../../src/model/back-off.ts'
import { isGone } from '../../runtime/bounded-file.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import { replaceFile } from '../../runtime/durable-file.ts'
import { after, every, type Timer } from '../../runtime/timers.ts'
import { type StoredFile, StoredFiles } from './stored-files.ts'

/** The content by file name. Undefined leaves a file unchanged. */
export interface OutputContent {
  readonly 'key.pem': string | undefined
  readonly 'cert-chain.pem': string | undefined
  readonly 'root-cert.pem': string | undefined
}

/** In the order of writing. The key is written before the chain, because programs reload the key when the chain changes. */
const names = ['key.pem', 'cert-chain.pem', 'root-cert.pem'] as const

/** The files with a private key. */
const secretNames: readonly string[] = ['key.pem', 'key.p12'] satisfies readonly (keyof OutputContent | StoredFile)[]

/** The mode bit of a directory whose group its entries have. */
const passesGroupOn = 0o2000

/** The delays after a failed write. */
const pauses: Pauses = { firstMs: 1000, longestMs: 60_000 }

/** The interval at which the directory is searched for files that were removed, in milliseconds. */
const checkMs = 5000

/** Writes the files, and again those that were removed. A failed write is retried with back-off. */
export class OutputFiles {
  readonly #config: OutputConfig
  readonly #failed: (reason: string) => void
  readonly #written = new Map<string, string>()
  readonly #stores: StoredFiles | undefined
  #content: OutputContent | undefined
  /** Ends with the last write of the key stores, which are made one after the other. */
  #storing = Promise.resolve()
  readonly #backOff = new BackOff(pauses)
  /** The last reported reason. */
  #fault: string | undefined
  #timer: Timer | undefined
  readonly #checks: Timer
  #isChecking = false
  #isClosed = false

  /** `failed` is called with the reason when files cannot be written, once for each reason. */
  constructor(config: OutputConfig, failed: (reason: string) => void) {
    this.#config = config
    this.#failed = failed
    this.#stores = config.passwordFile === undefined ? undefined : new StoredFiles(config.passwordFile)
    this.#checks = every(checkMs, () => void this.#check()).unref()
  }

  /** Sets the content of the files and writes what has changed. */
  write(content: OutputContent): void {
    if (this.#isClosed) return
    this.#content = content
    this.#timer?.cancel()
    this.#try()
  }

  /** Ends retries. Later content is not written. */
  close(): void {
    this.#isClosed = true
    this.#checks.cancel()
    this.#timer?.cancel()
  }

  /** The mode of a file. A directory that passes its group on is a volume whose group the containers of the pod have (`fsGroup`). */
  #modeOf(name: string): number {
    const { directory, isForAll } = this.#config
    if (!isForAll) return 0o600
    return secretNames.includes(name) && (statSync(directory).mode & passesGroupOn) !== 0 ? 0o640 : 0o644
  }

  async #check(): Promise<void> {
    if (this.#isChecking) return
    this.#isChecking = true
    const found = await readdir(this.#config.directory).catch((error: unknown) => (isGone(error) ? [] : undefined))
    this.#isChecking = false
    if (found && !this.#isClosed) this.#writeRemoved(new Set(found))
  }

  /** Writes again what was written and is not among the files that are there. */
  #writeRemoved(found: ReadonlySet<string>): void {
    const removed = [...this.#written.keys()].filter((name) => !found.has(name))
    for (const name of removed) this.#written.delete(name)
    const isStoreRemoved = this.#stores?.forgetRemoved(found) ?? false
    if (removed.length > 0 || isStoreRemoved) this.#try()
  }

  #try(): void {
    const { directory, isForAll } = this.#config
    try {
      mkdirSync(directory, { recursive: true, mode: isForAll ? 0o755 : 0o700 })
      for (const name of names) {
        const text = this.#content?.[name]
        if (text === undefined || this.#written.get(name) === text) continue
        this.#replace(name, text)
        this.#written.set(name, text)
      }
    } catch (error) {
      return this.#retry(error)
    }
    if (!this.#stores) return this.#succeeded()
    const stores = this.#stores
    this.#storing = this.#storing.then(() => this.#store(stores))
  }

  async #store(stores: StoredFiles): Promise<void> {
    if (this.#isClosed || !this.#content) return
    const { 'key.pem': key, 'cert-chain.pem': chain, 'root-cert.pem': roots } = this.#content
    try {
      await stores.write({ key, chain, roots }, (name, bytes) => {
        if (!this.#isClosed) this.#replace(name, bytes)
      })
      this.#succeeded()
    } catch (error) {
      if (!this.#isClosed) this.#retry(error)
    }
  }

  #replace(name: string, content: string | Buffer): void {
    replaceFile(join(this.#config.directory, name), content, this.#modeOf(name))
  }

  #succeeded(): void {
    this.#backOff.succeeded()
    this.#fault = undefined
  }

  #retry(error: unknown): void {
    const { message } = error as Error
    if (this.#fault !== message) this.#failed(message)
    this.#fault = message
    this.#timer?.cancel()
    this.#timer = after(this.#backOff.failed(monotonicMs()), () => this.#try()).unref()
  }
}
