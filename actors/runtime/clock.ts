/**
 * Monotonic time in milliseconds with fractions, from one clock that all threads of the process share: for durations and
 * deadlines, never for dates. A change of the system's time does not move it.
 */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1e3 + nanoseconds / 1e6
}
