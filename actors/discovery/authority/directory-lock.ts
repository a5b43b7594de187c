/**
 * A lock on a directory, held by one process at a time. Each process writes a lock file with a unique name and then looks for the lock
 * files of others: of two concurrent processes at least one sees the other, so both never hold the lock. Lock files of dead processes are
 * removed. On a full disk the file is empty and its name says what its content says otherwise.
 */
import { randomUUID } from 'node:crypto'
import { readdirSync, readlinkSync, rmSync, statSync, utimesSync } from 'node:fs'
import { hostname } from 'node:os'
import { basename, join } from 'node:path'
import { type Pauses, pauseAfter } from '../../../src/model/back-off.ts'
import { isGone, readBoundedFileSync } from '../../runtime/bounded-file.ts'
import { chance } from '../../runtime/chance.ts'
import { wallClockMs } from '../../runtime/clock.ts'
import { isFull, replaceFile, unfinished, writeNewFile } from '../../runtime/durable-file.ts'
import { readKernelFile } from '../../runtime/kernel-file.ts'
import { every, pause, type Timer } from '../../runtime/timers.ts'

/** Identifies a process. */
interface Holder {
  readonly pid: number
  /** Start time of the process, in kernel ticks since boot: distinguishes it from a later process with the same id. */
  readonly started: string
  /** Boot id and PID namespace, within which the process id is unique. */
  readonly boot: string
  readonly host: string
  readonly command: string
}

/** Interval at which the holder touches its lock file, in milliseconds, for processes that cannot see the holder in /proc. */
const signMs = 3_000
/** Age of the last touch after which a holder that cannot be seen in /proc counts as dead, in milliseconds. */
const silentMs = 20_000
/** Number of attempts to take the lock, and the pauses between them: the previous holder may be about to end. */
const maxTries = 12
const pauses: Pauses = { firstMs: 150, longestMs: 150, jitter: 1 }

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
    for (let attempt = 1; ; attempt++) {
      const path = writeLock(directory)
      const other = livingHolder(directory, path)
      if (other === undefined) return new DirectoryLock(path)
      rmSync(path, { force: true })
      if (attempt === maxTries) throw new Error(`${directory}: is in use by ${describe(other)}`)
      await pause(pauseAfter(attempt, pauses, chance()))
    }
  }

  /** Throws an Error when the lock was lost, for example because its file was removed. */
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
      // The next write detects the loss by check().
    }
  }
}

/** Writes a lock file of this process. Returns its path. Throws an Error that names the directory. */
function writeLock(directory: string): string {
  const path = join(directory, `${prefix}${randomUUID()}`)
  const holder = thisProcess()
  try {
    try {
      replaceFile(path, JSON.stringify(holder))
      return path
    } catch (error) {
      if (!isFull(error)) throw error
    }
    // An empty file takes no space, except for its name.
    const named = `${path}.${inName(holder)}`
    writeNewFile(named, '')
    return named
  } catch (error) {
    throw new Error(`${directory}: cannot be locked: ${(error as Error).message}`)
  }
}

/**
 * Returns a holder in the form of a part of a file name: base64url without the command, and with the beginning of the host only, since a
 * name has at most 255 bytes.
 */
function inName({ pid, started, boot, host }: Holder): string {
  const shortHost = host.slice(0, 40).replace(/[^\w.-]/g, '_')
  return Buffer.from(JSON.stringify([pid, started, boot, shortHost])).toString('base64url')
}

/** Reads the content of a lock file, or the form that its name has instead. Throws when the file is gone, or a SyntaxError. */
function contentOf(path: string): Partial<Record<keyof Holder, unknown>> {
  const [, , named] = basename(path).split('.')
  if (named === undefined) return JSON.parse(readBoundedFileSync(path))
  const [pid, started, boot, host] = JSON.parse(Buffer.from(named, 'base64url').toString())
  return { pid, started, boot, host, command: '' }
}

/** Returns another living process that has a lock file in the directory. Removes lock files of dead processes. */
function livingHolder(directory: string, own: string): Holder | undefined {
  for (const name of readdirSync(directory)) {
    const path = join(directory, name)
    if (!name.startsWith(prefix) || name.endsWith(unfinished) || path === own) continue
    const holder = readHolder(path)
    // A lock file of this process belongs to an earlier instance of this class, which has ended or will fail at its next check().
    if (holder && !isThisProcess(holder) && isAlive(holder, path, own)) return holder
    rmSync(path, { force: true })
  }
  return undefined
}

/** Reads a lock file. Undefined when it is gone or invalid; a lock file is written atomically, so no valid one is skipped. */
function readHolder(path: string): Holder | undefined {
  try {
    const { pid, started, boot, host, command } = contentOf(path)
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
  // Another machine or container, or a system without /proc: only the touches of the lock file are visible. Their age is taken by the
  // clock of the file system.
  try {
    return statSync(own).mtimeMs - statSync(path).mtimeMs < silentMs
  } catch (error) {
    if (isGone(error)) return false
    throw error
  }
}

function describe({ pid, host, command }: Holder): string {
  return `process ${pid} on ${host}${command && ` (${command})`}; stop it, or name another directory in MESHD_CA_STATE_DIR`
}

function thisProcess(): Holder {
  const command = process.argv.slice(1, 3).join(' ').slice(0, 200)
  return { pid: process.pid, started: startOf(process.pid) ?? '', boot: bootOf(), host: hostname(), command }
}

/**
 * Start time of a process in ticks since boot; undefined when there is no such process, or no /proc. Throws when that cannot be told: a
 * process that is taken for ended loses its lock.
 */
function startOf(pid: number): string | undefined {
  const path = `/proc/${pid}/stat`
  let stat: string
  try {
    stat = readKernelFile(path)
  } catch (error) {
    // The process may end between opening and reading.
    if (isGone(error) || (error as NodeJS.ErrnoException).code === 'ESRCH') return undefined
    throw new Error(`${path}: ${(error as Error).message}`)
  }
  // The program name is in parentheses and may contain any character; the start time is field 22.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  if (fields[19] === undefined) throw new Error(`${path}: does not say when the process began`)
  // A zombie counts as ended.
  return fields[0] === 'Z' ? undefined : fields[19]
}

/** The boot id and the PID namespace; empty where the system offers neither. */
function bootOf(): string {
  try {
    return `${readKernelFile('/proc/sys/kernel/random/boot_id').trim()} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return ''
  }
}
