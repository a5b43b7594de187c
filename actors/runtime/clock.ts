/**
 * The clocks. No other module reads the time: durations are differences of {@link monotonicMs}, dates are {@link wallClockMs}, and
 * {@link readClocks} compares the wall clock with one that nobody can set.
 */
import { randomUUID } from 'node:crypto'
import { readKernelFile } from './kernel-file.ts'

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

/** Maximum age of a measurement of the boot clock, and of a step of the other clocks since, in milliseconds. */
const bootFresh = 1000

/** The wall clock in Unix milliseconds, the milliseconds since the machine was started, and the id of that start; read together. */
export interface Clocks {
  readonly wall: number
  readonly boot: number
  readonly bootId: string
}

let bootId: string | undefined
let last: Clocks & { readonly monotonic: number } = { wall: 0, boot: 0, bootId: '', monotonic: Number.NEGATIVE_INFINITY }

/**
 * Reads the wall clock and the boot clock, which counts from the start of the machine, suspension included, and is never set
 * (`/proc/uptime`, with the id of the start in `/proc/sys/kernel/random/boot_id`). Where there is none (other systems than Linux), it is
 * the monotonic clock, and each process counts as a start of the machine.
 */
export function readClocks(): Clocks {
  const [monotonic, wall] = [monotonicMs(), wallClockMs()]
  const passed = monotonic - last.monotonic
  // The monotonic clock stands still while the machine sleeps: the wall clock shows that the boot clock must be measured again.
  const isFresh = passed >= 0 && passed < bootFresh && Math.abs(wall - last.wall - passed) < bootFresh
  if (isFresh) return { wall, boot: last.boot + passed, bootId: last.bootId }
  last = { wall, monotonic, ...bootClock(monotonic) }
  return last
}

function bootClock(monotonic: number): Omit<Clocks, 'wall'> {
  if (process.platform === 'linux')
    try {
      bootId ??= readKernelFile('/proc/sys/kernel/random/boot_id').trim()
      const boot = Number(readKernelFile('/proc/uptime').split(' ')[0]) * 1000
      if (Number.isFinite(boot)) return { boot, bootId }
    } catch {
      // A container may hide these files.
    }
  bootId ??= randomUUID()
  return { boot: monotonic, bootId }
}

/**
 * CPU time of the calling thread in milliseconds since its start: for the cost of what the thread did between two readings. Node before 23.9
 * cannot tell it; there it is the CPU time of the whole process, which is never less.
 */
export function threadCpuMs(): number {
  const { user, system } = (process.threadCpuUsage ?? process.cpuUsage)()
  return (user + system) / 1000
}

/** How long the event loop of the calling thread has been waiting, and how long it has been busy, in milliseconds since its start. */
export function loopTimes(): { readonly idle: number; readonly active: number } {
  return performance.eventLoopUtilization()
}
