/** Watches a directory, and what is below it, for changes of files; tells of paths, not of what happened to them. */
import { type FSWatcher, watch } from 'node:fs'
import { lstat, readdir, stat } from 'node:fs/promises'
import { basename, dirname, join, sep } from 'node:path'
import { FilePatience } from './patience.ts'

/** Who is told. */
export interface DirectoryListener {
  /** Something happened to the entry at a path. */
  changed(path: string): void
  /** Anything may have changed: directories came or went, or the system lost events. */
  everything(): void
  /** A directory that is there could not be watched. */
  unwatchable(directory: string, error: Error): void
}

/** Whether an error of the file system means that there is no such file. Every other error leaves open whether it is there. */
export function isGone(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'ENOENT' || code === 'ENOTDIR'
}

/** The watch of one directory, and which directory was at its path when it began. */
interface Watched {
  readonly watcher: FSWatcher
  readonly identity: string
}

/**
 * One watch a directory: an event costs one look at one entry, however many files there are. Links to directories are not
 * followed, but for the root itself. While the root is not there, the nearest directory above it is watched for it. What could
 * not be watched is tried again by {@link audit}. A directory on a file system that does not answer holds nothing up: it is one that cannot be watched.
 */
export class DirectoryWatch {
  readonly #root: string
  readonly #deep: boolean
  readonly #listener: DirectoryListener
  readonly #watchers = new Map<string, Watched>()
  /** Watches for the root while that is not there. */
  #above: FSWatcher | undefined
  /** Whether the root is there and cannot be watched, so that there is nothing to wait for. */
  #isRootUnwatchable = false
  #closed = false
  readonly #patience: FilePatience
  /** Counts the searches for a root that is not there: the last one has the watch above it. */
  #searches = 0

  /** Whoever asks the same file system for more shares the `patience`: what may be left behind without an answer is counted for all of it. */
  constructor(root: string, deep: boolean, listener: DirectoryListener, patience = new FilePatience()) {
    this.#root = root
    this.#deep = deep
    this.#listener = listener
    this.#patience = patience
  }

  /** Watches what could not be watched before; what came to be there meanwhile was told by nobody. */
  async audit(): Promise<void> {
    if (await this.refresh()) this.#listener.everything()
  }

  /** Starts to watch directories that are not watched yet. Resolves to whether there were any. */
  async refresh(directory = this.#root): Promise<boolean> {
    const added = await this.#watch(directory)
    if (directory === this.#root) await this.#awaitRoot()
    if (!this.#deep || !this.#watchers.has(directory)) return added
    const entries = await this.#patience.wait(() => readdir(directory, { withFileTypes: true })).catch(() => [])
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
      // A watch begins at once, and the thread with it: it is asked for only where the file system has just answered.
      const identity = await this.#identityOf(directory)
      if (this.#closed) return false
      const known = this.#watchers.get(directory)
      if (known?.identity === identity) return false
      // Another directory has taken its place: the watch went with the one that was there.
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
      if (!this.#watchers.has(directory)) this.#listener.unwatchable(directory, error as Error)
      return false
    }
  }

  /** While the root is not there, has it looked for when something happens to the path that leads to it. */
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
      // The audit goes on looking.
      return
    }
    // What came before the watch began is told by nobody: the root too, where it came back after it was found to be gone.
    if (await this.#exists(missing)) void this.audit()
  }

  #event(directory: string, name: string | null): void {
    if (this.#closed) return
    if (name === null) return this.#listener.everything()
    const path = join(directory, name)
    this.#listener.changed(path)
    if (this.#deep || path === this.#root) void this.#lookForDirectory(path)
    // A directory that goes says so under its own name.
    if (name === basename(directory)) void this.#lookForDirectory(directory)
  }

  async #lookForDirectory(path: string): Promise<void> {
    const look = path === this.#root ? stat : lstat
    const isDirectory = await this.#patience
      .wait(() => look(path))
      .then(
        (found) => found.isDirectory(),
        // What cannot be told stays as it was.
        (error) => !isGone(error) && this.#watchers.has(path),
      )
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

  /** Tells one directory at a path from another that takes its place. Rejects when there is none. */
  async #identityOf(directory: string): Promise<string> {
    const { dev, ino, birthtimeNs } = await this.#patience.wait(() => stat(directory, { bigint: true }))
    return `${dev}:${ino}:${birthtimeNs}`
  }

  /** Whether there is something at a path; false where that cannot be told. */
  #exists(path: string): Promise<boolean> {
    return this.#patience
      .wait(() => stat(path))
      .then(
        () => true,
        () => false,
      )
  }
}
