/** Users' regular expressions: RE2 syntax (Envoy's), checked here and never run by this process on traffic. */
import { RE2JS } from 're2js'
import type { Report } from './shape.ts'

/** What keeps text from being a regular expression that Envoy takes, or undefined. */
function re2Fault(pattern: string): string | undefined {
  try {
    RE2JS.compile(pattern)
    return undefined
  } catch (error) {
    return `not a valid RE2 pattern: ${(error as Error).message}`
  }
}

/** Checks the regular expressions of one file, each text once, as long as compiling them takes no longer than is allowed. */
export class PatternChecks {
  readonly #mostMs: number
  readonly #now: () => number
  readonly #known = new Map<string, string | undefined>()
  #spentMs = 0

  /** `now` gives milliseconds; without arguments there is no limit. */
  constructor(mostMs = Number.POSITIVE_INFINITY, now = () => 0) {
    this.#mostMs = mostMs
    this.#now = now
  }

  /** Whether the time is used up: what was read with these checks is not complete. */
  get isExhausted(): boolean {
    return this.#spentMs > this.#mostMs
  }

  /** As {@link re2Fault}; undefined without a look once the time is used up. */
  fault(pattern: string): string | undefined {
    if (this.isExhausted || this.#known.has(pattern)) return this.#known.get(pattern)
    const begun = this.#now()
    const reason = re2Fault(pattern)
    this.#spentMs += this.#now() - begun
    this.#known.set(pattern, reason)
    return reason
  }
}

/** What is wrong with a field that holds a regular expression, by the checks of its file if it has any. */
export const regexFault = (value: string, { patterns }: Report): string | undefined => (patterns ? patterns.fault(value) : re2Fault(value))
