/** Watches a directory, and what is below it, for changes of files; tells of paths, not of what happened to them. */
import { type FSWatcher, watch } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { basename, join, sep } from 'node:path'
import { isGone } from './file-content.ts'

/** Who is told. */
export interface DirectoryListener {
  /** Something happened to the entry at a path. */
  changed(path: string): void
  /** Anything may have changed: directories came or went, or the system lost events. */
  everything(): void
  /** A directory that is there could not be watched. */
  unwatchable(directory: string, error: Error): void
}

/**
 * One watch a directory: an event costs one look at one entry, however many files there are. A directory that is not there yet,
 * or could not be watched, is tried again by {@link audit}.
 */
export class DirectoryWatch {
  readonly #root: string
  readonly #deep: boolean
  readonly #listener: DirectoryListener
  readonly #watchers = new Map<string, FSWatcher>()
  #closed = false

  constructor(root: string, deep: boolean, listener: DirectoryListener) {
    this.#root = root
    this.#deep = deep
    this.#listener = listener
  }

  /** Watches what could not be watched before; what came to be there meanwhile was told by nobody. */
  async audit(): Promise<void> {
    if (await this.refresh()) this.#listener.everything()
  }

  /** Starts to watch directories that are not watched yet. Resolves to whether there were any. */
  async refresh(directory = this.#root): Promise<boolean> {
    const added = this.#watch(directory)
    if (!this.#deep || !this.#watchers.has(directory)) return added
    const entries = await readdir(directory, { withFileTypes: true }).catch(() => [])
    const below = await Promise.all(entries.filter((entry) => entry.isDirectory()).map((entry) => this.refresh(join(directory, entry.name))))
    return added || below.includes(true)
  }

  close(): void {
    this.#closed = true
    for (const watcher of this.#watchers.values()) watcher.close()
    this.#watchers.clear()
  }

  #watch(directory: string): boolean {
    if (this.#closed || this.#watchers.has(directory)) return false
    try {
      const watcher = watch(directory, (_, name) => this.#event(directory, name))
      watcher.on('error', () => this.#forget(directory))
      this.#watchers.set(directory, watcher)
      return true
    } catch (error) {
      if (!isGone(error)) this.#listener.unwatchable(directory, error as Error)
      return false
    }
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
    const isDirectory = await stat(path).then(
      (found) => found.isDirectory(),
      // What cannot be told stays as it was.
      (error) => !isGone(error) && this.#watchers.has(path),
    )
    if (!isDirectory && this.#watchers.has(path)) {
      this.#forget(path)
      this.#listener.everything()
    } else if (isDirectory && this.#deep && (await this.refresh(path))) this.#listener.everything()
  }

  #forget(directory: string): void {
    for (const [path, watcher] of this.#watchers) {
      if (path !== directory && !path.startsWith(directory + sep)) continue
      watcher.close()
      this.#watchers.delete(path)
    }
  }
}
