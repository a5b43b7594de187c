/** The system's resolver configuration (`resolv.conf`), read again after the file has changed. */
import { statSync } from 'node:fs'
import { type ResolverConfig, readResolvConf } from '../../../src/dns/resolv-conf.ts'
import { readBoundedFileSync } from '../../runtime/bounded-file.ts'
import { monotonicMs } from '../../runtime/clock.ts'

/** The minimum interval between two checks of the file, in milliseconds. The file is checked only when a query arrives. */
const checkMs = 1000

/** Reads the configuration, and reads it again after a change. */
export class SystemResolver {
  readonly #path: string
  readonly #changed: (config: ResolverConfig) => void
  readonly #unreadable: (reason: string) => void
  #config: ResolverConfig
  /** Device, inode, size and times of the file when it was last read. A difference shows that the file has changed. */
  #mark: string
  #checkedAt: number
  #isUnreadable = false

  /**
   * Throws an Error that names the file when it cannot be read. Later failures keep the last configuration and call `unreadable`; a changed
   * configuration calls `changed`.
   */
  constructor(path: string, changed: (config: ResolverConfig) => void, unreadable: (reason: string) => void) {
    this.#path = path
    this.#changed = changed
    this.#unreadable = unreadable
    this.#checkedAt = monotonicMs()
    this.#mark = markOf(path)
    this.#config = read(path)
  }

  /** The current configuration, at most one second old. */
  get config(): ResolverConfig {
    const now = monotonicMs()
    if (now - this.#checkedAt >= checkMs) {
      this.#checkedAt = now
      this.#check()
    }
    return this.#config
  }

  #check(): void {
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

const read = (path: string): ResolverConfig => readResolvConf(readBoundedFileSync(path))
