/**
 * Lists a configuration directory, and decides whether a missing file is gone: only if its directory can be read and is on the same file
 * system as before.
 */
import { lstat, opendir, readdir, stat } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { isGone } from '../../../runtime/bounded-file.ts'
import type { FileTimeouts } from '../../../runtime/file-timeouts.ts'
import type { Logger } from '../../../runtime/logger.ts'

/** Maximum number of names in a log line. */
const maxNamed = 20

/** Why a directory cannot be used, and whether it could never be read since the start (`isUnknown`). */
export interface DirectoryTrouble {
  readonly reason: string
  readonly isUnknown: boolean
}

/** Lists a directory and its subdirectories. */
export class DirectoryListing {
  readonly #root: string
  readonly #timeouts: FileTimeouts
  readonly #log: Logger
  /** Directories that cannot be read, with the error codes. */
  readonly #unreadable = new Map<string, DirectoryTrouble & { readonly code: string }>()
  /** Directories that have been read, with the device number that they had when they held configuration. */
  readonly #read = new Map<string, number | undefined>()
  /** The entries reported as ignored, by the text of the report. */
  readonly #ignored = new Map<string, ReadonlySet<string>>()

  constructor(root: string, timeouts: FileTimeouts, log: Logger) {
    this.#root = root
    this.#timeouts = timeouts
    this.#log = log
  }

  /** Directories that cannot be read at present. The objects of their files stay in force. */
  get troubles(): ReadonlyMap<string, DirectoryTrouble> {
    return this.#unreadable
  }

  /**
   * All configuration files of the directory, sorted. A directory that cannot be read is reported once and does not stop the listing of
   * the others.
   */
  async files(): Promise<string[]> {
    const files: string[] = []
    const ignored = { links: new Set<string>(), pipes: new Set<string>(), others: new Set<string>() }
    const read = async (directory: string): Promise<void> => {
      const entries = await this.#attempt(directory, async () => {
        const found = await this.#timeouts.run(() => readdir(directory, { withFileTypes: true }))
        await this.#checkFileSystem(directory, found)
        return found
      })
      for (const entry of entries ?? []) {
        const path = join(directory, entry.name)
        if (entry.name.startsWith('..')) continue
        if (entry.isDirectory()) await read(path)
        else if (entry.isSymbolicLink() && (await this.#isDirectory(path))) ignored.links.add(path)
        else if (!isConfigFile(entry.name)) {
          if (!entry.name.startsWith('.')) ignored.others.add(path)
        } else if (entry.isFile() || entry.isSymbolicLink()) files.push(path)
        else ignored.pipes.add(path)
      }
    }
    await read(this.#root)
    this.#reportIgnored('links to directories are not followed, files behind them are not read', ignored.links, 'warn')
    this.#reportIgnored('pipes, sockets and devices are not read', ignored.pipes, 'warn')
    this.#reportIgnored('files are not read whose names do not end in .yaml, .yml or .json', ignored.others, 'info')
    return files.sort()
  }

  /** Whether a missing file is gone: the nearest existing directory above it can be read and is on the same file system as before. */
  async isGone(file: string): Promise<boolean> {
    for (let directory = dirname(file); ; directory = dirname(directory)) {
      const found = await this.#attempt(directory, async () => {
        try {
          const opened = await this.#timeouts.run(() => opendir(directory))
          await opened.read().finally(() => opened.close())
        } catch (error) {
          if (!isGone(error) || directory === this.#root || (error as NodeJS.ErrnoException).code === 'ENOTDIR') throw error
          if (await this.#isEntry(directory)) throw Object.assign(new Error('it is a symbolic link without a target'), { code: 'ENOLINK' })
          return 'above'
        }
        await this.#checkFileSystem(directory)
        return 'here'
      })
      if (found !== 'above') return found === 'here'
    }
  }

  /**
   * Throws when a directory that held configuration is now empty and on another file system: its volume is probably not mounted at
   * present.
   */
  async #checkFileSystem(directory: string, given?: readonly { readonly name: string; isDirectory(): boolean }[]): Promise<void> {
    const { dev } = await this.#timeouts.run(() => stat(directory))
    const before = this.#read.get(directory)
    if (before === dev) return
    const entries = given ?? (await this.#timeouts.run(() => readdir(directory, { withFileTypes: true })))
    const holdsAny = entries.some(
      (entry) => isConfigFile(entry.name) || (entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'lost+found'),
    )
    if (before !== undefined && !holdsAny) throw Object.assign(new Error('it is empty, and on another file system than before'), { code: 'EXDEV' })
    this.#read.set(directory, holdsAny ? dev : undefined)
  }

  /**
   * Performs an action on a directory. Resolves to undefined when it fails. The failure is reported if its reason is new, and ignored if
   * a directory below the root is gone.
   */
  async #attempt<T>(directory: string, act: () => Promise<T>): Promise<T | undefined> {
    try {
      const result = await act()
      if (this.#unreadable.delete(directory)) this.#log('source').info(`the configuration directory ${directory} can be read again`)
      return result
    } catch (error) {
      const { code = '', message } = error as NodeJS.ErrnoException
      // Read now, because a concurrent attempt may have recorded the same failure.
      const known = this.#unreadable.get(directory)
      if (isGone(error) && directory !== this.#root) {
        this.#unreadable.delete(directory)
        this.#read.delete(directory)
      } else if (known?.code !== code) {
        const isUnknown = known?.isUnknown ?? !this.#read.has(directory)
        this.#unreadable.set(directory, { code, reason: message, isUnknown })
        const consequence = isUnknown ? 'no object of its files is in force' : 'the objects of its files stay in force'
        this.#log('source').error(`cannot read the configuration directory ${directory}: ${message}; ${consequence}`)
      }
      return undefined
    }
  }

  /** Whether a path has an entry of any kind. Rejects where that cannot be determined. */
  #isEntry(path: string): Promise<boolean> {
    return this.#timeouts
      .run(() => lstat(path))
      .then(
        () => true,
        (error) => {
          if (isGone(error)) return false
          throw error
        },
      )
  }

  #isDirectory(path: string): Promise<boolean> {
    return this.#timeouts
      .run(() => stat(path))
      .then(
        (found) => found.isDirectory(),
        () => false,
      )
  }

  /** Reports ignored entries, if there are new ones. */
  #reportIgnored(what: string, paths: ReadonlySet<string>, level: 'info' | 'warn'): void {
    const before = this.#ignored.get(what)
    this.#ignored.set(what, paths)
    const news = [...paths].filter((path) => !before?.has(path)).map((path) => relative(this.#root, path))
    const more = news.length > maxNamed ? ` and ${news.length - maxNamed} more` : ''
    if (news.length > 0) this.#log('source')[level](`${this.#root}: ${what}: ${news.slice(0, maxNamed).join(', ')}${more}`)
  }
}

/** Whether a file name is one of a configuration file. */
export const isConfigFile = (path: string): boolean => /\.(ya?ml|json)$/i.test(path) && !basename(path).startsWith('.')
