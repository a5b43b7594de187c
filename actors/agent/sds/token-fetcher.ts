/**
 * Fetches the workload's token where no orchestrator mounts one, writes it to the token file, and replaces it before it expires
 * (docs/certificates.md, F1 to F5).
 */
import { randomInt } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import type { FetcherConfig } from '../../../protocols/messages/agent.ts'
import { refreshDelay, tokenLife } from '../../../src/agent/fetched-token.ts'
import { retryDelay } from '../../../src/agent/renewal.ts'
import { monotonicMs, wallClockMs } from '../../runtime/clock.ts'
import { replaceFile } from '../../runtime/durable-file.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { after, type Timer } from '../../runtime/timers.ts'
import { cloudToken, type Fetched, localToken } from './token-sources.ts'

/** The maximum interval between two checks of the clocks, in milliseconds: timers do not run while the machine sleeps. */
const checkMs = 300_000

/** File modes. The token of the machine is readable by the group of its file, the local token only by the agent's user. */
const tokenModes = { cloud: 0o640, local: 0o600 } as const
const rootsMode = 0o644

/** Fetches and replaces the token. */
export class TokenFetcher {
  readonly #config: FetcherConfig
  readonly #log: ScopedLogger
  readonly #fetched: () => void
  readonly #first = Promise.withResolvers<void>()
  #token: { readonly text: string; readonly endsAt: number } | undefined
  /**
   * When the next token is fetched, by the wall clock and by the monotonic clock in milliseconds: as soon as either clock has reached it.
   */
  #due = { wall: 0, monotonic: 0 }
  #failures = 0
  #timer: Timer | undefined
  #isOver = false

  /** `fetched` is called after each fetched token. */
  constructor(config: FetcherConfig, log: ScopedLogger, fetched: () => void) {
    this.#config = config
    this.#log = log
    this.#fetched = fetched
    void this.#fetch()
  }

  /** Resolves when the first attempt has ended, successfully or not. */
  get tried(): Promise<void> {
    return this.#first.promise
  }

  /** The token. Undefined after its expiry. */
  get token(): string | undefined {
    return this.#token && this.#token.endsAt > wallClockMs() ? this.#token.text : undefined
  }

  close(): void {
    this.#isOver = true
    this.#timer?.cancel()
  }

  #check(): void {
    if (this.#isOver) return
    const wait = Math.min(this.#due.wall - wallClockMs(), this.#due.monotonic - monotonicMs())
    if (wait > 0) this.#timer = after(Math.min(wait, checkMs), () => this.#check())
    else void this.#fetch()
  }

  async #fetch(): Promise<void> {
    const chance = randomInt(1_000_000) / 1_000_000
    let delay: number
    try {
      const fetched = await (this.#config.from === 'cloud' ? cloudToken(this.#config) : localToken(this.#config))
      if (this.#isOver) return
      const life = tokenLife(fetched.token, wallClockMs())
      if (life <= 0) throw new Error('the token that was fetched has expired')
      this.#token = { text: fetched.token, endsAt: wallClockMs() + life }
      this.#failures = 0
      delay = refreshDelay(life)
      this.#log.info(`token fetched, valid for ${Math.round(life / 1000)} s; the next is fetched in ${Math.round(delay / 1000)} s`)
      this.#write(fetched)
      this.#fetched()
    } catch (error) {
      if (this.#isOver) return
      const rest = Math.max(0, (this.#token?.endsAt ?? 0) - wallClockMs())
      delay = retryDelay(++this.#failures, 0, rest, chance)
      this.#log.warn(`fetching the token failed: ${(error as Error).message}; retry in ${(delay / 1000).toFixed(1)} s`)
    }
    this.#first.resolve()
    this.#due = { wall: wallClockMs() + delay, monotonic: monotonicMs() + delay }
    this.#check()
  }

  /**
   * Writes the token and roots to their files, which connections to discovery read; a proxy that reads the token itself sends all that is in
   * its file. A failed write is only logged, because calls to the
   * authority use the token in memory.
   */
  #write({ token, roots }: Fetched): void {
    const { tokenFile, from } = this.#config
    const files: [path: string, content: string, mode: number][] = [[tokenFile, token, tokenModes[from]]]
    if (roots !== undefined && this.#config.from === 'local') files.push([this.#config.rootsFile, roots, rootsMode])
    for (const [path, content, mode] of files)
      try {
        mkdirSync(dirname(path), { recursive: true, mode: 0o755 })
        replaceFile(path, content, mode)
      } catch (error) {
        this.#log.warn(`the fetched token or roots could not be written: ${(error as Error).message}`)
      }
  }
}
