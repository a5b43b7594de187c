/** Watches a file with a key set. */
import type { Stats } from 'node:fs'
import { stat } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import { type FileError, isGone, NotAFile, readBoundedFile } from '../../runtime/bounded-file.ts'
import { DirectoryWatch } from '../../runtime/directory-watch.ts'
import { every, type Timer } from '../../runtime/timers.ts'
import { WorkQueue } from '../../runtime/work-queue.ts'

/**
 * Why there is no content: the file is not in its directory, it must not be used, or it could not be read, which says nothing about it
 * and may pass.
 */
export type NoContent = 'missing' | 'unusable' | 'unreadable'

/** The callbacks of a watch. */
export interface KeyFileListener {
  /** Called with the content when it has changed. */
  changed(content: string): void
  /** Called when there is no content, once for each distinct reason. */
  refused(reason: string, why: NoContent): void
  /** Called when the directory exists and cannot be watched. */
  unwatchable(directory: string, error: Error): void
}

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
  #why: NoContent | undefined

  /** `isPrivate`: the file is refused unless it is owned by this process's user or by root and writable by its owner only. */
  constructor(path: string, isPrivate: boolean, listener: KeyFileListener) {
    this.#path = resolve(path)
    this.#isPrivate = isPrivate
    this.#listener = listener
    this.#work = new WorkQueue((_, reason) => this.#refuse(reason, 'unreadable'))
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

  /** Whether the last attempt to read the file said nothing about it. */
  get isUnread(): boolean {
    return this.#why === 'unreadable'
  }

  /** Reads the file now. */
  read(): Promise<void> {
    return this.#work.add(this.#path, async () => {
      let content: string
      try {
        content = await readBoundedFile(this.#path, { check: (found) => this.#check(found) })
      } catch (error) {
        return this.#refuse(...(await this.#reasonOf(error as FileError)))
      }
      this.#why = undefined
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

  #check({ mode, uid }: Stats): void {
    const owner = process.getuid?.() ?? 0
    if (this.#isPrivate && ((mode & 0o022) !== 0 || (uid !== owner && uid !== 0)))
      throw new Error('others than its owner may write it, or its owner is another user')
  }

  /** A file that was there is missing only if its directory is there: an unmounted directory, for example, says nothing about its files. */
  async #reasonOf(error: FileError): Promise<[string, NoContent]> {
    if (error instanceof NotAFile) return ['it is not a file', 'missing']
    if (error.code === undefined) return [error.reason, 'unusable']
    if (!isGone(error)) return [error.reason, 'unreadable']
    try {
      await stat(dirname(this.#path))
      return ['it is not there', 'missing']
    } catch (fault) {
      if (this.#content === undefined && isGone(fault)) return ['it is not there', 'missing']
      return [(fault as Error).message, 'unreadable']
    }
  }

  #refuse(reason: string, why: NoContent): void {
    this.#why = why
    // Cleared, so that the content is reported again once the file can be used, even if it is the same.
    if (why !== 'unreadable') this.#content = undefined
    if (this.#reason === reason) return
    this.#reason = reason
    this.#listener.refused(reason, why)
  }
}
