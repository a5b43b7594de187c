/** Time that a test can hold its subject to, whatever else the machine does meanwhile. */
import { readdirSync, readFileSync } from 'node:fs'

/** Milliseconds of CPU that the thread of the test spends on some work. */
export function cpuMs(work: () => void): number {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

/**
 * A stopwatch that counts only the share of the machine that is left to this process and its children: where other programs (or other
 * guests of the host) take half of the processors, two seconds count as one. Without the figures of Linux it counts time as it passes.
 */
export class OwnTime {
  readonly #started = performance.now()
  readonly #before = machineTicks()

  /** Milliseconds since the stopwatch was made, less what others took. */
  ms(): number {
    return this.passed() * this.share()
  }

  /** Milliseconds since the stopwatch was made, whoever had the processors: what has a lower limit is held to it. */
  passed(): number {
    return performance.now() - this.#started
  }

  /** The share of the machine that nobody else took since the stopwatch was made, from 0 to 1. */
  share(): number {
    const now = machineTicks()
    if (!now || !this.#before) return 1
    const all = now.all - this.#before.all
    const others = Math.max(0, now.busy - this.#before.busy - Math.max(0, now.own - this.#before.own))
    return all > 0 ? 1 - others / all : 1
  }
}

interface Ticks {
  /** Of all processors together, idle or not. */
  readonly all: number
  readonly busy: number
  /** Of this process and its descendants, those that have ended included. */
  readonly own: number
}

/** What the processors have done since the machine was started, or undefined on a system that does not say. */
function machineTicks(): Ticks | undefined {
  if (process.platform !== 'linux') return undefined
  // user, nice, system, idle, iowait, irq, softirq, steal; the time of guests is in that of users already.
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

/** Parent of a process and the ticks that it and its children that have ended spent, or undefined when it has just ended itself. */
function statOf(pid: number): [readonly [pid: number, stat: { parent: number; ticks: number }]] | undefined {
  try {
    const fields = (readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1) ?? '').split(' ').map(Number)
    const [user = 0, system = 0, userOfChildren = 0, systemOfChildren = 0] = fields.slice(11, 15)
    return [[pid, { parent: fields[1] ?? 0, ticks: user + system + userOfChildren + systemOfChildren }]]
  } catch {
    return undefined
  }
}
