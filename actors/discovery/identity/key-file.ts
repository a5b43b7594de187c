/** A file with a key set, watched. */
import { readFile, stat } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { DirectoryWatch, isGone } from '../../runtime/directory-watch.ts'
import { every, type Timer } from '../../runtime/timers.ts'
import { WorkQueue } from '../../runtime/work-queue.ts'

/** Who is told. */
export interface KeyFileListener {
  /** The file holds something else than before. */
  changed(content: string): void
  /** The file is not there, or may not be used; told once for each reason. */
  refused(reason: string, isMissing: boolean): void
  /** The directory is there and cannot be watched. */
  unwatchable(directory: string, error: Error): void
}

/** Most bytes of a file. */
const largest = 1_048_576
/** How often the file is read although nothing was told of it, in milliseconds. */
const auditMs = 10_000

/** Reads a file when it may have changed. */
export class KeyFile {
  readonly #path: string
  readonly #isPrivate: boolean
  readonly #listener: KeyFileListener
  readonly #watch: DirectoryWatch
  readonly #audit: Timer
  readonly #work: WorkQueue
  #content: string | undefined
  #reason: string | undefined

  /** `isPrivate`: the file counts only when nobody but the user of this process, or the superuser, may write it. */
  constructor(path: string, isPrivate: boolean, listener: KeyFileListener) {
    this.#path = resolve(path)
    this.#isPrivate = isPrivate
    this.#listener = listener
    this.#work = new WorkQueue((_, reason) => this.#refuse(reason, false))
    const look = () => void this.look()
    this.#watch = new DirectoryWatch(dirname(this.#path), false, {
      changed: (changed) => {
        // Mounted files are links into a directory that is exchanged, the name of which begins with two dots.
        if (basename(changed) === basename(this.#path) || basename(changed).startsWith('..')) look()
      },
      everything: look,
      unwatchable: (directory, error) => listener.unwatchable(directory, error),
    })
    void this.#watch.refresh()
    this.#audit = every(auditMs, () => {
      void this.#watch.audit().catch(() => undefined)
      look()
    }).unref()
    look()
  }

  /** Reads the file now. */
  look(): Promise<void> {
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
    // What was read before counts no more here: it is told again when it can be read again.
    this.#content = undefined
    if (this.#reason === reason) return
    this.#reason = reason
    this.#listener.refused(reason, isMissing)
  }
}
