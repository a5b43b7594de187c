/** Watches a directory, optionally with its subdirectories, for changes of files. Reports paths, not the kind of change. */
import { type FSWatcher, watch } from 'node:fs'
import { lstat, readdir, stat } from 'node:fs/promises'
import { basename, dirname, join, sep } from 'node:path'
import { isGone } from './bounded-file.ts'
import { FileTimeouts } from './file-timeouts.ts'

/** The callbacks of a watch. */
export interface DirectoryListener {
  /** Called when the entry at a path was created, changed or removed. */
  changed(path: string): void
  /** Called when any entry may have changed: directories were created or removed, or the system dropped events. */
  everything(): void
  /** Called when a directory exists and cannot be watched. */
  unwatchable(directory: string, error: Error): void
}

/** The watch of one directory. `identity` distinguishes the directory from a later one at the same path. */
interface Watched {
  readonly watcher: FSWatcher
  readonly identity: string
}

/**
 * One `fs.watch` per directory: an event costs one `stat`, however many files there are. Symbolic links to directories are not
 * followed, except for the root itself. While the root does not exist, its nearest existing ancestor is watched until it does.
 * Directories that could not be watched are retried by {@link audit}. A directory on a file system that does not answer does not block
 * the others: it counts as one that cannot be watched.
 */
export class DirectoryWatch {
  readonly #root: string
  readonly #deep: boolean
  readonly #listener: DirectoryListener
  readonly #watchers = new Map<string, Watched>()
  /** The watch of the nearest existing ancestor, while the root does not exist. */
  #above: FSWatcher | undefined
  /** Whether the root exists and cannot be watched, so that watching an ancestor would be of no use. */
  #isRootUnwatchable = false
  #closed = false
  readonly #timeouts: FileTimeouts
  /** Number of searches for a missing root so far. Only the latest search may set the watch of an ancestor. */
  #searches = 0

  /**
   * Other users of the same file system should share the `timeouts`, because its limit of unanswered operations applies to all of them
   * together.
   */
  constructor(root: string, deep: boolean, listener: DirectoryListener, timeouts = new FileTimeouts()) {
    this.#root = root
    this.#deep = deep
    this.#listener = listener
    this.#timeouts = timeouts
  }

  /**
   * Retries directories that could not be watched. Changes made in them before were not reported, so `everything` is called if any is
   * added.
   */
  async audit(): Promise<void> {
    if (await this.refresh()) this.#listener.everything()
  }

  /** Starts watching directories that are not watched yet. Resolves to whether there were any. */
  async refresh(directory = this.#root): Promise<boolean> {
    const added = await this.#watch(directory)
    if (directory === this.#root) await this.#awaitRoot()
    if (!this.#deep || !this.#watchers.has(directory)) return added
    const entries = await this.#timeouts.run(() => readdir(directory, { withFileTypes: true })).catch(() => [])
    const below = await Promise.all(entries.filter((entry) => entry.isDirectory()).map((entry) => this.refresh(join(directory, entry.name))))
    return added || below.includes(true)
  }

  close(): void {
    this.#closed = true
    this.#above?.close()
    for (const { watcher } of this.#watchers.values()) watcher.close()
    this.#watchers.clear()
  }

  async #watch(directory: string): Promise<boolean> {
    if (this.#closed) return false
    if (directory === this.#root) this.#isRootUnwatchable = false
    try {
      // `watch` blocks the thread while the file system does not answer, so it is called only right after an answer of the file system.
      const identity = await this.#identityOf(directory)
      if (this.#closed) return false
      const known = this.#watchers.get(directory)
      if (known?.identity === identity) return false
      // Another directory is at this path now; the old watch follows the old directory.
      if (known) this.#forget(directory)
      const watcher = watch(directory, (_, name) => this.#event(directory, name))
      watcher.on('error', () => this.#forget(directory))
      this.#watchers.set(directory, { watcher, identity })
      return true
    } catch (error) {
      if (isGone(error)) {
        this.#forget(directory)
        return false
      }
      if (directory === this.#root) this.#isRootUnwatchable = true
      if (!this.#closed && !this.#watchers.has(directory)) this.#listener.unwatchable(directory, error as Error)
      return false
    }
  }

  /** While the root does not exist, watches the nearest existing ancestor and audits when something happens on the path to the root. */
  async #awaitRoot(): Promise<void> {
    const search = ++this.#searches
    this.#above?.close()
    this.#above = undefined
    if (this.#closed || this.#watchers.has(this.#root) || this.#isRootUnwatchable) return
    let missing = this.#root
    while (!(await this.#exists(dirname(missing))) && dirname(missing) !== missing) missing = dirname(missing)
    if (this.#closed || search !== this.#searches) return
    const above = dirname(missing)
    const names = [basename(missing), basename(above), null]
    try {
      this.#above = watch(above, (_, name) => {
        if (names.includes(name)) void this.audit()
      })
      this.#above.on('error', () => undefined)
    } catch {
      // The periodic audit retries.
      return
    }
    // Changes before the watch started were not reported, including the root's return after it was found missing.
    if (await this.#exists(missing)) void this.audit()
  }

  #event(directory: string, name: string | null): void {
    if (this.#closed) return
    if (name === null) return this.#listener.everything()
    const path = join(directory, name)
    this.#listener.changed(path)
    if (this.#deep || path === this.#root) void this.#updateDirectory(path)
    // The removal of a watched directory is reported under the directory's own name.
    if (name === basename(directory)) void this.#updateDirectory(directory)
  }

  async #updateDirectory(path: string): Promise<void> {
    const statOf = path === this.#root ? stat : lstat
    const isDirectory = await this.#timeouts
      .run(() => statOf(path))
      .then(
        (found) => found.isDirectory(),
        // After an error that leaves the question open, the directory stays as it was.
        (error) => !isGone(error) && this.#watchers.has(path),
      )
    if (this.#closed) return
    if (!isDirectory && this.#watchers.has(path)) {
      this.#forget(path)
      this.#listener.everything()
      if (path === this.#root) void this.#awaitRoot()
    } else if (isDirectory && this.#deep && (await this.refresh(path))) this.#listener.everything()
  }

  #forget(directory: string): void {
    for (const [path, { watcher }] of this.#watchers) {
      if (path !== directory && !path.startsWith(directory + sep)) continue
      watcher.close()
      this.#watchers.delete(path)
    }
  }

  /** An identity that distinguishes a directory from one that replaces it at the same path. Rejects when there is none. */
  async #identityOf(directory: string): Promise<string> {
    const { dev, ino, birthtimeNs } = await this.#timeouts.run(() => stat(directory, { bigint: true }))
    return `${dev}:${ino}:${birthtimeNs}`
  }

  /** Whether a path exists; false where that cannot be determined. */
  #exists(path: string): Promise<boolean> {
    return this.#timeouts
      .run(() => stat(path))
      .then(
        () => true,
        () => false,
      )
  }
}
