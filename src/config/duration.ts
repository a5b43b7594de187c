/** Go duration syntax (`1h2m3.5s`, `100ms`), the syntax of every duration flag and variable. */

/** The longest duration that Envoy accepts, in milliseconds: 2^63 nanoseconds, less one second. */
export const longestDurationMs = 9_223_372_035_000

const unitMs: Readonly<Record<string, number>> = { ns: 1e-6, us: 1e-3, µs: 1e-3, μs: 1e-3, ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/**
 * Parses a Go duration and returns milliseconds. Undefined when the text is not a duration, or its value overflows. A bare `0` is allowed.
 */
export function parseDuration(text: string): number | undefined {
  const match = /^([+-]?)(.*)$/.exec(text.trim())
  let rest = match?.[2] ?? ''
  if (rest === '0') return 0
  if (rest === '') return undefined
  let total = 0
  while (rest !== '') {
    const part = /^(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/.exec(rest)
    if (!part) return undefined
    total += Number(part[1]) * (unitMs[part[2] as string] as number)
    rest = rest.slice(part[0].length)
  }
  if (!Number.isFinite(total)) return undefined
  return match?.[1] === '-' ? -total : total
}
