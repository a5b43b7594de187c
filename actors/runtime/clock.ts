/** The clocks. No other module reads the time: durations are differences of {@link monotonicMs}, dates are {@link wallClockMs}. */

/**
 * Monotonic time in milliseconds with fractions, from one clock that all threads of the process share: for durations and deadlines, never
 * for dates. Setting the system time does not change it.
 */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1e3 + nanoseconds / 1e6
}

/** Estimated difference between the wall clock and the monotonic clock. */
let offset = 0

/**
 * Wall-clock time in Unix milliseconds with fractions: for dates, and for comparison with dates of others (modification times of files,
 * expiry of tokens), never for durations. It follows changes of the system time.
 */
export function wallClockMs(): number {
  // In this order: when the thread is suspended between the two readings, the result is too early, and the next call corrects it.
  const whole = Date.now()
  const monotonic = monotonicMs()
  if (monotonic + offset < whole) offset = whole - monotonic
  else if (monotonic + offset >= whole + 1) offset = whole + 0.999 - monotonic
  return monotonic + offset
}
