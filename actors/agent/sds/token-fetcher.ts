/**
 * Fetches the workload's token where no orchestrator mounts one, writes it to the token file, and replaces it before it expires
 * (docs/certificates.md, F1 to F5).
 */
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import type { FetcherConfig } from '../../../protocols/messages/agent.ts'
import { refreshDelay, tokenLife } from '../../../src/agent/fetched-token.ts'
import { callPauses, longestPause } from '../../../src/agent/renewal.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import { replaceFile } from '../../runtime/durable-file.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { Renewal } from '../../runtime/renewal.ts'
import { cloudToken, type Fetched, localToken } from './token-sources.ts'

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
  readonly #renewal: Renewal<Fetched>

  /** `fetched` is called after each fetched token. */
  constructor(config: FetcherConfig, log: ScopedLogger, fetched: () => void) {
    this.#config = config
    this.#log = log
    this.#fetched = fetched
    this.#renewal = new Renewal({
      pauses: callPauses,
      obtain: () => this.#fetch(),
      use: (fetched) => this.#use(fetched),
      failed: ({ message }, _, waitMs) => {
        log.warn(`fetching the token failed: ${message}; retry in ${(waitMs / 1000).toFixed(1)} s`)
        this.#first.resolve()
      },
      terms: () => ({ longestMs: longestPause(Math.max(0, (this.#token?.endsAt ?? 0) - wallClockMs())) }),
    })
    this.#renewal.start()
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
    this.#renewal.close()
  }

  #fetch(): Promise<Fetched> {
    return this.#config.from === 'cloud' ? cloudToken(this.#config) : localToken(this.#config)
  }

  /** Uses a token. Returns the delay until the next is fetched, in milliseconds. Throws an Error when it has expired. */
  #use(fetched: Fetched): number {
    const life = tokenLife(fetched.token, wallClockMs())
    if (life <= 0) throw new Error('the token that was fetched has expired')
    this.#token = { text: fetched.token, endsAt: wallClockMs() + life }
    const delay = refreshDelay(life)
    this.#log.info(`token fetched, valid for ${Math.round(life / 1000)} s; the next is fetched in ${Math.round(delay / 1000)} s`)
    this.#write(fetched)
    this.#fetched()
    this.#first.resolve()
    return delay
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
