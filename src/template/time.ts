/** Moments as Go's package `time` writes them. */
import type { GoTime } from './values.ts'

/** Formats a moment by a layout of Go. */
export function timeText(time: GoTime, _layout = ''): string {
  return new Date(Number(time.nanos / 1_000_000n)).toISOString()
}
