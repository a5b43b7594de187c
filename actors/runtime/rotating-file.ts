/** The file of `--log_rotate`: renamed when it reaches its maximum size; backups that are too many or too old are deleted. */
import { existsSync, lstatSync, renameSync, unlinkSync, writeFileSync } from 'node:fs'
import { basename, dirname, extname, join } from 'node:path'
import { readBoundedFileSync } from './bounded-file.ts'
import { monotonicMs, wallClockMs } from './clock.ts'
import { FileOutput, type Output } from './log-output.ts'

/** Maximum size of the file in MiB (at least 1), and maximum age and number of backups; 0 means no limit. */
export interface Rotation {
  readonly path: string
  readonly maxSizeMb: number
  readonly maxAgeDays: number
  readonly maxBackups: number
}

const mebibyte = 1_048_576
const dayMs = 86_400_000
/** How long a file that could not be renamed keeps growing before the next attempt, in milliseconds. */
const retryMs = 10_000

/**
 * A log file that is renamed to `<stem>-<time><extension>` before a write would exceed the maximum size. The names of the backups are
 * recorded in `.<file>.backups` beside it, which only this class writes: a file that merely has such a name is not deleted.
 */
export class RotatingFile implements Output {
  readonly #rotation: Rotation
  readonly #file: FileOutput
  readonly #folder: string
  readonly #record: string
  readonly #problem: (message: string) => void
  readonly #now: () => number
  #bytes: number | undefined
  #notBefore = Number.NEGATIVE_INFINITY

  /** `problem` is called with errors other than those of writing; `now` returns Unix milliseconds, for names and ages. */
  constructor(rotation: Rotation, problem: (message: string) => void, now: () => number = wallClockMs) {
    this.#rotation = rotation
    this.#file = new FileOutput(rotation.path)
    this.#folder = dirname(rotation.path)
    this.#record = join(this.#folder, `.${basename(rotation.path)}.backups`)
    this.#problem = problem
    this.#now = now
  }

  write(bytes: Buffer): number {
    this.#bytes ??= this.#file.size()
    const { maxSizeMb } = this.#rotation
    if (this.#bytes > 0 && this.#bytes + bytes.length > maxSizeMb * mebibyte && monotonicMs() >= this.#notBefore) this.#rotate()
    const written = this.#file.write(bytes)
    this.#bytes += written
    return written
  }

  close(): void {
    this.#bytes = undefined
    this.#file.close()
  }

  /**
   * Deletes backups that are too old or too many, leaving space for `room` more. A backup that cannot be deleted is reported and stays
   * recorded. Never throws.
   */
  prune(room = 0): void {
    const { maxAgeDays, maxBackups } = this.#rotation
    const oldest = maxAgeDays > 0 ? this.#now() - maxAgeDays * dayMs : Number.NEGATIVE_INFINITY
    try {
      const known = this.#backups()
      const kept = known.filter((name, index) => {
        const wanted = timeOf(name) >= oldest && (maxBackups === 0 || index >= known.length - maxBackups + room)
        return wanted || !this.#delete(join(this.#folder, name))
      })
      if (kept.length < known.length) this.#remember(kept)
    } catch (error) {
      this.#problem(`backups of the log file ${this.#rotation.path} cannot be listed, old ones are not deleted: ${(error as Error).message}`)
    }
  }

  #rotate(): void {
    this.prune(1)
    try {
      const name = this.#freeName()
      // Recorded before the file exists: a crash in between leaves a name without a file, but never a file without a name.
      this.#remember([...this.#backups(), name])
      this.#file.close()
      renameSync(this.#rotation.path, join(this.#folder, name))
      this.#bytes = 0
    } catch (error) {
      this.#notBefore = monotonicMs() + retryMs
      this.#problem(`log file ${this.#rotation.path} cannot be rotated and keeps growing: ${(error as Error).message}`)
    }
  }

  #freeName(): string {
    const extension = extname(this.#rotation.path)
    const stem = basename(this.#rotation.path, extension)
    for (let time = this.#now(); ; time++) {
      const name = `${stem}-${new Date(time).toISOString().slice(0, -1).replaceAll(':', '-')}${extension}`
      if (!existsSync(join(this.#folder, name))) return name
    }
  }

  /** The recorded names, oldest first, without those whose file is missing. */
  #backups(): string[] {
    let text = ''
    try {
      text = readBoundedFileSync(this.#record)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    }
    const names = text.split('\n').filter((name) => name !== '' && basename(name) === name && !Number.isNaN(timeOf(name)))
    return names.filter((name) => existsSync(join(this.#folder, name))).sort()
  }

  /** Writes the record atomically: the old one stays when the new one cannot be written. */
  #remember(names: readonly string[]): void {
    const next = `${this.#record}.next`
    writeFileSync(next, names.map((name) => `${name}\n`).join(''), { mode: 0o644 })
    renameSync(next, this.#record)
  }

  /** Deletes a backup. Returns whether it is gone. */
  #delete(path: string): boolean {
    try {
      if (!lstatSync(path).isFile()) return true
      unlinkSync(path)
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return true
      this.#problem(`backup ${path} of the log file cannot be deleted: ${(error as Error).message}`)
      return false
    }
  }
}

/** The time in the name of a backup, in Unix milliseconds; NaN when there is none. */
function timeOf(name: string): number {
  const match = /-(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d\.\d{3})(?:\.[^.]*)?$/.exec(name)
  return match ? Date.parse(`${match[1]}T${match[2]}:${match[3]}:${match[4]}Z`) : Number.NaN
}
