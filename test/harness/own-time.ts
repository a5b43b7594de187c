/** Time measurements that other load on the machine does not distort. */
import { readdirSync, readFileSync } from 'node:fs'

/** Returns the CPU milliseconds that the calling thread spends on `work`. */
export function cpuMs(work: () => void): number {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

/**
 * A stopwatch that counts only the share of the processors available to this process and its children: while other programs (or other
 * guests of the host) use half of the processors, two seconds count as one. Without Linux's `/proc` it measures elapsed time.
 */
export class OwnTime {
  readonly #started = performance.now()
  readonly #before = machineTicks()

  /** Milliseconds since the creation of the stopwatch, reduced by the share of other programs. */
  ms(): number {
    return this.passed() * this.share()
  }

  /** Elapsed milliseconds since the creation of the stopwatch. For assertions of a lower limit. */
  passed(): number {
    return performance.now() - this.#started
  }

  /** The share of the machine that no other program used since the creation of the stopwatch, from 0 to 1. */
  share(): number {
    const now = machineTicks()
    if (!now || !this.#before) return 1
    const all = now.all - this.#before.all
    const others = Math.max(0, now.busy - this.#before.busy - Math.max(0, now.own - this.#before.own))
    return all > 0 ? 1 - others / all : 1
  }
}

interface Ticks {
  /** The ticks of all processors, idle ones included. */
  readonly all: number
  readonly busy: number
  /** The ticks of this process and its descendants, exited ones included. */
  readonly own: number
}

/** The processors' ticks since boot. Undefined on systems other than Linux. */
function machineTicks(): Ticks | undefined {
  if (process.platform !== 'linux') return undefined
  // user, nice, system, idle, iowait, irq, softirq, steal; the later fields (guest time) are already included in user.
  const [, ...fields] = (readFileSync('/proc/stat', 'utf8').split('\n')[0] as string).split(/\s+/)
  const times = fields.slice(0, 8).map(Number)
  const all = times.reduce((sum, time) => sum + time, 0)
  return { all, busy: all - (times[3] ?? 0) - (times[4] ?? 0), own: ownTicks() }
}

function ownTicks(): number {
  const processes = new Map(readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? (statOf(Number(name)) ?? []) : [])))
  const isOwn = (pid: number): boolean => {
    for (let at = pid; at > 0; at = processes.get(at)?.parent ?? 0) if (at === process.pid) return true
    return false
  }
  return [...processes].reduce((sum, [pid, { ticks }]) => (isOwn(pid) ? sum + ticks : sum), 0)
}

/** The parent of a process and the ticks of the process and its exited children. Undefined when it has just exited. */
function statOf(pid: number): [readonly [pid: number, stat: { parent: number; ticks: number }]] | undefined {
  try {
    const fields = (readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1) ?? '').split(' ').map(Number)
    const [user = 0, system = 0, userOfChildren = 0, systemOfChildren = 0] = fields.slice(11, 15)
    return [[pid, { parent: fields[1] ?? 0, ticks: user + system + userOfChildren + systemOfChildren }]]
  } catch {
    return undefined
  }
}
