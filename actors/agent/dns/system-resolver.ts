/** The system's resolver configuration, read again when the file is another. */
import { statSync } from 'node:fs'
import { type ResolverConfig, readResolvConf } from '../../../src/dns/resolv-conf.ts'
import { readBoundedFileSync } from '../../runtime/bounded-file.ts'
import { monotonicMs } from '../../runtime/clock.ts'

/** How often the file is looked at while queries come, in milliseconds. Nothing is done while none come. */
const lookMs = 1000
/** Longest file, in bytes. */
const fileBytes = 1_048_576

/** Reads the configuration, and again when it has changed. */
export class SystemResolver {
  readonly #path: string
  readonly #changed: (config: ResolverConfig) => void
  readonly #unreadable: (reason: string) => void
  #config: ResolverConfig
  /** What tells this content of the file from others. */
  #mark: string
  #lookedAt: number
  #isUnreadable = false

  /** Throws an Error that names the file where it cannot be read now. Later the last configuration stays; `changed` and `unreadable` hear of it. */
  constructor(path: string, changed: (config: ResolverConfig) => void, unreadable: (reason: string) => void) {
    this.#path = path
    this.#changed = changed
    this.#unreadable = unreadable
    this.#lookedAt = monotonicMs()
    this.#mark = markOf(path)
    this.#config = read(path)
  }

  /** The configuration as it is now, or was within the last second. */
  get config(): ResolverConfig {
    const now = monotonicMs()
    if (now - this.#lookedAt >= lookMs) {
      this.#lookedAt = now
      this.#look()
    }
    return this.#config
  }

  #look(): void {
    try {
      const mark = markOf(this.#path)
      if (mark === this.#mark && !this.#isUnreadable) return
      const config = read(this.#path)
      this.#mark = mark
      this.#isUnreadable = false
      if (JSON.stringify(config) === JSON.stringify(this.#config)) return
      this.#config = config
      this.#changed(config)
    } catch (error) {
      if (!this.#isUnreadable) this.#unreadable((error as Error).message)
      this.#isUnreadable = true
    }
  }
}

function markOf(path: string): string {
  const { dev, ino, size, mtimeMs, ctimeMs } = statSync(path)
  return [dev, ino, size, mtimeMs, ctimeMs].join()
}

function read(path: string): ResolverConfig {
  try {
    return readResolvConf(readBoundedFileSync(path, { most: fileBytes }))
  } catch (error) {
    throw new Error(`${path}: ${(error as Error).message}`, { cause: error })
  }
}
