/**
 * A lock on a directory, for one process at a time. Each process that asks writes a file of its own name and then looks for those of
 * others: of two that ask at once, at least one sees the other, so both never hold it. A file whose process is dead is removed.
 */
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync, readlinkSync, rmSync, statSync, utimesSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { wallClockMs } from '../../runtime/clock.ts'
import { isGone } from '../../runtime/directory-watch.ts'
import { replaceFile, unfinished } from '../../runtime/durable-file.ts'
import { every, pause, type Timer } from '../../runtime/timers.ts'

/** A process, as well as it can be told from all others. */
interface Holder {
  readonly pid: number
  /** When the process started, in ticks of the kernel since the boot: tells it from a later process of the same number. */
  readonly started: string
  /** Which boot of which machine, and which table of processes: only there its number means anything. */
  readonly boot: string
  readonly host: string
  readonly command: string
}

/** How often a holder shows that it lives, in milliseconds: for processes that cannot see it in their own table. */
const signMs = 3_000
/** How old the last sign of a holder that cannot be seen may be, in milliseconds, before it counts as dead. */
const silentMs = 20_000
/** How often it is tried to get the lock, and the longest pause between two tries in milliseconds: a predecessor may be about to end. */
const tries = { most: 12, pauseMs: 150 }

const prefix = 'lock.'

/** The lock of a directory. */
export class DirectoryLock {
  readonly #path: string
  readonly #signs: Timer

  private constructor(path: string) {
    this.#path = path
    this.#signs = every(signMs, () => this.#sign()).unref()
  }

  /** Takes the lock. Rejects with an Error that names the process that holds it. */
  static async take(directory: string): Promise<DirectoryLock> {
    const path = join(directory, `${prefix}${randomUUID()}`)
    for (let left = tries.most; ; left--) {
      replaceFile(path, JSON.stringify(thisProcess()))
      const other = livingHolder(directory, path)
      if (other === undefined) return new DirectoryLock(path)
      rmSync(path, { force: true })
      if (left <= 1) throw new Error(`${directory}: is in use by ${describe(other)}`)
      // Those that ask at once must not go on in step.
      await pause(tries.pauseMs * chance())
    }
  }

  /** Throws an Error when the lock was taken away, by removing its file, say. */
  check(): void {
    try {
      statSync(this.#path)
    } catch (error) {
      throw new Error(`the lock ${this.#path} of this process cannot be seen any more: ${(error as Error).message}`)
    }
  }

  release(): void {
    this.#signs.cancel()
    rmSync(this.#path, { force: true })
  }

  #sign(): void {
    try {
      const now = wallClockMs() / 1000
      utimesSync(this.#path, now, now)
    } catch {
      // Whoever writes next is told by check().
    }
  }
}

const chance = (): number => Number.parseInt(randomUUID().slice(0, 4), 16) / 0xffff

/** Another process that lives and has a lock file in the directory. Files of dead processes are removed. */
function livingHolder(directory: string, own: string): Holder | undefined {
  for (const name of readdirSync(directory)) {
    const path = join(directory, name)
    if (!name.startsWith(prefix) || name.endsWith(unfinished) || path === own) continue
    const holder = readHolder(path)
    // One of this process is of a part of it that has ended, or is about to: it is told by check().
    if (holder && !isThisProcess(holder) && isAlive(holder, path, own)) return holder
    rmSync(path, { force: true })
  }
  return undefined
}

/** What a lock file says; undefined when it is gone or says nothing, which happens to no file that was written whole. */
function readHolder(path: string): Holder | undefined {
  try {
    const { pid, started, boot, host, command } = JSON.parse(readFileSync(path, 'utf8')) as Partial<Record<keyof Holder, unknown>>
    if (typeof pid !== 'number' || typeof started !== 'string' || typeof boot !== 'string') return undefined
    return { pid, started, boot, host: String(host), command: String(command) }
  } catch (error) {
    if (isGone(error) || error instanceof SyntaxError) return undefined
    throw error
  }
}

function isThisProcess({ pid, started, boot }: Holder): boolean {
  const here = thisProcess()
  return pid === here.pid && started === here.started && boot === here.boot
}

function isAlive(holder: Holder, path: string, own: string): boolean {
  const here = thisProcess()
  if (here.boot !== '' && holder.boot === here.boot) return startOf(holder.pid) === holder.started
  // Another machine or container, or a system without /proc: only its signs can be seen, by the clock of the file system.
  try {
    return statSync(own).mtimeMs - statSync(path).mtimeMs < silentMs
  } catch (error) {
    if (isGone(error)) return false
    throw error
  }
}

function describe({ pid, host, command }: Holder): string {
  return `process ${pid} on ${host} (${command}); stop it, or name another directory`
}

function thisProcess(): Holder {
  const command = process.argv.slice(1, 3).join(' ').slice(0, 200)
  return { pid: process.pid, started: startOf(process.pid) ?? '', boot: bootOf(), host: hostname(), command }
}

/** When a process started, in ticks since the boot; undefined when there is none of this number. */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name of the program stands in parentheses and may hold any character; the start is the 22nd field of all.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    // A zombie has ended.
    return fields[0] === 'Z' ? undefined : fields[19]
  } catch {
    return undefined
  }
}

/** Which boot, and which table of processes; empty where the system does not say. */
function bootOf(): string {
  try {
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return ''
  }
}
