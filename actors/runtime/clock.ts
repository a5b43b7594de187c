/**
 * The clocks. No other module reads one: durations are differences of {@link monotonicMs}, dates that people read are {@link wallClockMs}.
 */

/**
 * Monotonic time in milliseconds with fractions, from one clock that all threads of the process share: for durations and
 * deadlines, never for dates. A change of the system's time does not move it.
 */
export function monotonicMs(): number {
  const [seconds, nanoseconds] = process.hrtime()
  return seconds * 1e3 + nanoseconds / 1e6
}

/** What is added to the monotonic clock to give the wall clock, as far as is known. */
let offset = 0

/**
 * The time of day in Unix milliseconds with fractions: for dates that people read and for what is compared with dates of others
 * (ages of files, lives of tokens), never for durations. It follows when the time of the system is set.
 */
export function wallClockMs(): number {
  // In this order: a thread that is held up between the two takes the time for earlier, and that is noticed at the next reading.
  const whole = Date.now()
  const monotonic = monotonicMs()
  if (monotonic + offset < whole) offset = whole - monotonic
  else if (monotonic + offset >= whole + 1) offset = whole + 0.999 - monotonic
  return monotonic + offset
}
