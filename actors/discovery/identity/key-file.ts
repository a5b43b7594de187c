/** Watches a file with a key set. */
import { readFile, stat } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { DirectoryWatch, isGone } from '../../runtime/directory-watch.ts'
import { every, type Timer } from '../../runtime/timers.ts'
import { WorkQueue } from '../../runtime/work-queue.ts'

/** The callbacks of a watch. */
export interface KeyFileListener {
  /** Called with the content when it has changed. */
  changed(content: string): void
  /** Called when the file is missing or must not be used, once for each distinct reason. */
  refused(reason: string, isMissing: boolean): void
  /** Called when the directory exists and cannot be watched. */
  unwatchable(directory: string, error: Error): void
}

/** Maximum size of the file, in bytes. */
const largest = 1_048_576
/** Interval at which the file is read without an event, in milliseconds. */
const auditMs = 10_000

/** Reads a file whenever it may have changed. */
export class KeyFile {
  readonly #path: string
  readonly #isPrivate: boolean
  readonly #listener: KeyFileListener
  readonly #watch: DirectoryWatch
  readonly #audit: Timer
  readonly #work: WorkQueue
  #content: string | undefined
  #reason: string | undefined

  /** `isPrivate`: the file is refused unless it is owned by this process's user or by root and writable by its owner only. */
  constructor(path: string, isPrivate: boolean, listener: KeyFileListener) {
    this.#path = resolve(path)
    this.#isPrivate = isPrivate
    this.#listener = listener
    this.#work = new WorkQueue((_, reason) => this.#refuse(reason, false))
    const read = () => void this.read()
    this.#watch = new DirectoryWatch(dirname(this.#path), false, {
      changed: (changed) => {
        // Mounted files are symbolic links into a directory that is replaced and whose name begins with two dots.
        if (basename(changed) === basename(this.#path) || basename(changed).startsWith('..')) read()
      },
      everything: read,
      unwatchable: (directory, error) => listener.unwatchable(directory, error),
    })
    void this.#watch.refresh()
    this.#audit = every(auditMs, () => {
      void this.#watch.audit().catch(() => undefined)
      read()
    }).unref()
    read()
  }

  /** Reads the file now. */
  read(): Promise<void> {
    return this.#work.add(this.#path, async () => {
      const found = await stat(this.#path).catch((error: Error) => {
        if (isGone(error)) return undefined
        throw error
      })
      if (!found?.isFile()) return this.#refuse('it is not there', true)
      if (found.size > largest) return this.#refuse(`larger than ${largest} bytes`, false)
      const owner = process.getuid?.() ?? 0
      if (this.#isPrivate && ((found.mode & 0o022) !== 0 || (found.uid !== owner && found.uid !== 0)))
        return this.#refuse('others than its owner may write it, or its owner is another user', false)
      const content = await readFile(this.#path, 'utf8')
      this.#reason = undefined
      if (content === this.#content) return
      this.#content = content
      this.#listener.changed(content)
    })
  }

  close(): void {
    this.#audit.cancel()
    this.#watch.close()
  }

  #refuse(reason: string, isMissing: boolean): void {
    // Cleared, so that the content is reported again once the file can be read, even if it is the same.
    this.#content = undefined
    if (this.#reason === reason) return
    this.#reason = reason
    this.#listener.refused(reason, isMissing)
  }
}
