/** Watches a few files that belong together: they are looked at as one, soon after one of them changed. */
import { basename, dirname, resolve } from 'node:path'
import { DirectoryWatch } from './directory-watch.ts'
import { after, every, type Timer } from './timers.ts'
import { WorkQueue } from './work-queue.ts'

/** What a watch does. */
export interface FilesListener {
  /** Reads the files, all of them. Rejects with an Error that says why they cannot be used. */
  look(): Promise<void>
  /** They cannot be used: told once for each reason, until a look succeeds. */
  refused(reason: string): void
  /** A directory that is there cannot be watched. */
  unwatchable(directory: string, error: Error): void
}

/** How long the files must be left alone before they are looked at, in milliseconds, unless it is said otherwise: those who exchange them write several. */
const usualQuietMs = 100
/** How often they are looked at although nothing was told of them, in milliseconds. */
const auditMs = 10_000

/** Has files looked at when they may have changed, one look after the other, and at once when it is made. */
export class FilesWatch {
  readonly #listener: FilesListener
  readonly #watches: readonly DirectoryWatch[]
  readonly #work: WorkQueue
  readonly #audit: Timer
  /** Why the files cannot be used at present. */
  #fault: string | undefined
  #quiet: Timer | undefined
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
            // Mounted secrets are links into a directory that is exchanged, the name of which begins with two dots.
            if (names.has(basename(path)) || basename(path).startsWith('..')) this.#later()
          },
          everything: () => this.#later(),
          unwatchable: (unwatched, error) => listener.unwatchable(unwatched, error),
        }),
    )
    for (const watch of this.#watches) void watch.refresh()
    void this.look()
    this.#audit = every(auditMs, () => {
      for (const watch of this.#watches) void watch.audit().catch(() => undefined)
      void this.look()
    }).unref()
  }

  /** Looks at the files now. Resolves when that is done, whatever came of it. */
  look(): Promise<void> {
    return this.#work.add('looking at files', async () => {
      await this.#listener.look()
      this.#fault = undefined
    })
  }

  close(): void {
    this.#audit.cancel()
    this.#quiet?.cancel()
    for (const watch of this.#watches) watch.close()
  }

  #later(): void {
    this.#quiet?.cancel()
    this.#quiet = after(this.#quietMs, () => void this.look()).unref()
  }

  #refuse(reason: string): void {
    if (this.#fault === reason) return
    this.#fault = reason
    this.#listener.refused(reason)
  }
}
