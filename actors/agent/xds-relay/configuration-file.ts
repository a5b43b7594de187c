/** Stores the proxy's last configuration in a file (docs/agent.md, X9). */
import type { Stats } from 'node:fs'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { KeepingConfig } from '../../../protocols/messages/xds-relay.ts'
import { readFirst } from '../../../src/relay/kept-answers.ts'
import { KeptConfiguration } from '../../../src/relay/kept-configuration.ts'
import { WireError } from '../../../src/xds/slab/wire.ts'
import { BadFrame, FrameBuffers, FrameReader } from '../../../src/xds/stream/frames.ts'
import { type FileError, inFile, readBoundedBytes } from '../../runtime/bounded-file.ts'
import { unfinished } from '../../runtime/durable-file.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { after, type Timer } from '../../runtime/timers.ts'

/** The maximum sizes of a stored response and of the file, in bytes. */
const largest = { response: 67_108_864, file: 134_217_728 }

/** The file of one proxy's configuration. */
export class ConfigurationFile {
  /** How long discovery may be unreachable before the stored configuration is served, in milliseconds. */
  readonly fallbackAfterMs: number
  readonly #path: string
  readonly #everyMs: number
  readonly #log: ScopedLogger
  #current: KeptConfiguration | undefined
  #timer: Timer | undefined
  #writing: Promise<void> = Promise.resolve()
  /** Whether the last write failed. Only the first of consecutive failures is logged. */
  #hasFailed = false

  constructor({ file, everyMs, fallbackAfterMs }: KeepingConfig, log: ScopedLogger) {
    this.#path = file
    this.#everyMs = everyMs
    this.fallbackAfterMs = fallbackAfterMs
    this.#log = log
  }

  /**
   * Records the configuration of a stream. `requests` are the bytes of the requests received so far. Returns a function to be called with
   * the response bytes that are sent to the proxy.
   */
  follow(isDelta: boolean, requests: Buffer): (bytes: Buffer) => void {
    const first = readFirst(isDelta, requests)
    if (!first) return () => undefined
    const { nodeId, isFresh } = first
    // A proxy that reconnects over delta does not receive its current resources again, so the record of its last stream is continued.
    if (isFresh || this.#current?.nodeId !== nodeId) this.#current = isFresh || !isDelta ? new KeptConfiguration(nodeId) : undefined
    const kept = this.#current
    const reader = new FrameReader(largest.response, new FrameBuffers())
    let isOver = kept === undefined
    return (bytes) => {
      if (isOver || !kept) return
      try {
        reader.take(bytes, (message) => kept.take(isDelta, message))
        if (kept.isTooLarge) throw new BadFrame(0, 'it has more than 64 MiB')
        this.#timer ??= after(this.#everyMs, () => this.#save(kept)).unref()
      } catch (error) {
        if (!(error instanceof BadFrame || error instanceof WireError)) throw error
        isOver = true
        this.#current = undefined
        this.#log.warn(`the configuration of the proxy could not be saved: ${error.message}`)
      }
    }
  }

  /** Returns the stored configuration of a proxy and when it was written, in Unix milliseconds. Undefined when there is none. */
  async read(nodeId: string): Promise<{ kept: KeptConfiguration; writtenAt: number } | undefined> {
    try {
      let writtenAt = 0
      const check = ({ mtimeMs }: Stats) => {
        writtenAt = mtimeMs
      }
      const bytes = await readBoundedBytes(this.#path, { most: largest.file, check })
      const kept = inFile(this.#path, () => KeptConfiguration.decode(bytes))
      return kept.nodeId === nodeId ? { kept, writtenAt } : undefined
    } catch (error) {
      if ((error as FileError).code !== 'ENOENT') this.#log.warn((error as FileError).message)
      return undefined
    }
  }

  /** Called when a stored configuration is served: the record of the proxy continues with it, unless there is one already. */
  resume(kept: KeptConfiguration): void {
    this.#current ??= kept
  }

  /** Writes pending changes. */
  async close(): Promise<void> {
    if (this.#timer && this.#current) this.#save(this.#current)
    await this.#writing
  }

  #save(kept: KeptConfiguration): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#writing = this.#writing.then(() => this.#write(kept.encode()))
  }

  async #write(parts: readonly Buffer[]): Promise<void> {
    const next = `${this.#path}${unfinished}`
    try {
      await mkdir(dirname(this.#path), { recursive: true, mode: 0o700 })
      await rm(next, { force: true })
      const file = await open(next, 'wx', 0o600)
      try {
        await file.writeFile(Buffer.concat(parts))
        await file.sync()
      } finally {
        await file.close()
      }
      await rename(next, this.#path)
      this.#hasFailed = false
    } catch (error) {
      if (!this.#hasFailed) this.#log.warn(`the configuration of the proxy cannot be saved: ${(error as Error).message}`)
      this.#hasFailed = true
      await rm(next, { force: true }).catch(() => undefined)
    }
  }
}
