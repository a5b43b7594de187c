/** Watches a few files that belong together, and has all of them read shortly after any of them changed. */
import { basename, dirname, resolve } from 'node:path'
import { DirectoryWatch } from './directory-watch.ts'
import { after, every, type Timer } from './timers.ts'
import { WorkQueue } from './work-queue.ts'

/** The callbacks of a watch. */
export interface FilesListener {
  /** Reads all files. Rejects with an Error that says why they cannot be used. */
  read(): Promise<void>
  /** Called when the files cannot be used, once for each distinct reason until a read succeeds. */
  refused(reason: string): void
  /** Called when a directory exists and cannot be watched. */
  unwatchable(directory: string, error: Error): void
}

/** Default debounce time in milliseconds: whoever replaces the files writes several of them. */
const usualQuietMs = 100
/** Interval at which the files are read without an event, in milliseconds. */
const auditMs = 10_000

/** Calls `read` when the files may have changed, never twice at a time, and once at construction. */
export class FilesWatch {
  readonly #listener: FilesListener
  readonly #watches: readonly DirectoryWatch[]
  readonly #work: WorkQueue
  readonly #audit: Timer
  #fault: string | undefined
  #quiet: Timer | undefined
  #isClosed = false
  readonly #quietMs: number

  constructor(files: readonly string[], listener: FilesListener, quietMs = usualQuietMs) {
    this.#listener = listener
    this.#quietMs = quietMs
    this.#work = new WorkQueue((_, reason) => this.#refuse(reason))
    const paths = files.map((path) => resolve(path))
    const names = new Set(paths.map((path) => basename(path)))
    this.#watches = [...new Set(paths.map((path) => dirname(path)))].map(
      (directory) =>
        new DirectoryWatch(directory, false, {
          changed: (path) => {
            // Mounted secrets are symbolic links into a directory that is replaced and whose name begins with two dots.
            if (names.has(basename(path)) || basename(path).startsWith('..')) this.#later()
          },
          everything: () => this.#later(),
          unwatchable: (unwatched, error) => listener.unwatchable(unwatched, error),
        }),
    )
    this.#readAndWatch()
    this.#audit = every(auditMs, () => this.#readAndWatch()).unref()
  }

  /** Why the files could not be used at the last read; undefined when they could. */
  get fault(): string | undefined {
    return this.#fault
  }

  /** Reads the files now. Resolves when that is done, whether it succeeded or failed. */
  read(): Promise<void> {
    return this.#work.add('checking watched files', async () => {
      // Files that are exchanged together may be so between the reading of one and of another: only what fails twice is a fault.
      await this.#listener.read().catch((error: unknown) => {
        if (this.#isClosed) throw error
        return this.#listener.read()
      })
      this.#fault = undefined
    })
  }

  /** Ends the watch: no read begins and no callback is called any more. A read in progress goes on, and its result is the listener's to drop. */
  close(): void {
    this.#isClosed = true
    this.#work.close()
    this.#audit.cancel()
    this.#quiet?.cancel()
    for (const watch of this.#watches) watch.close()
  }

  /** Reads the files now, and again once directories are watched that were not: changes in them before were not reported. */
  #readAndWatch(): void {
    for (const watch of this.#watches) void watch.audit().catch(() => undefined)
    void this.read()
  }

  #later(): void {
    this.#quiet?.cancel()
    this.#quiet = after(this.#quietMs, () => void this.read()).unref()
  }

  #refuse(reason: string): void {
    if (this.#fault === reason) return
    this.#fault = reason
    this.#listener.refused(reason)
  }
}
