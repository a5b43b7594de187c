/** What is in a configuration directory, and whether what is not there is gone: only from a directory that can be read, and is the one that it was. */
import { lstat, opendir, readdir, stat } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { isGone } from '../../../runtime/directory-watch.ts'
import type { Logger } from '../../../runtime/logger.ts'
import type { FilePatience } from '../../../runtime/patience.ts'

/** Names that a message lists at most. */
const mostNamed = 20

/** Why a directory cannot be used, and whether it never could. */
export interface DirectoryTrouble {
  readonly reason: string
  readonly isUnknown: boolean
}

/** Looks through a directory and those below it. */
export class DirectoryListing {
  readonly #root: string
  readonly #patience: FilePatience
  readonly #log: Logger
  /** Directories that cannot be read, with the codes of the errors. */
  readonly #unreadable = new Map<string, DirectoryTrouble & { readonly code: string }>()
  /** Directories that were read, with the file systems that they were on when they held configuration. */
  readonly #read = new Map<string, number | undefined>()
  /** What was said of entries that are not read, by what is said. */
  readonly #said = new Map<string, ReadonlySet<string>>()

  constructor(root: string, patience: FilePatience, log: Logger) {
    this.#root = root
    this.#patience = patience
    this.#log = log
  }

  /** Directories that cannot be read at present: the objects of their files stay. */
  get troubles(): ReadonlyMap<string, DirectoryTrouble> {
    return this.#unreadable
  }

  /** All files of the directory, sorted. A directory that cannot be read is reported once, and those beside it are read. */
  async files(): Promise<string[]> {
    const files: string[] = []
    const left = { links: new Set<string>(), pipes: new Set<string>(), others: new Set<string>() }
    const read = async (directory: string): Promise<void> => {
      const entries = await this.#attempt(directory, async () => {
        const found = await this.#patience.wait(() => readdir(directory, { withFileTypes: true }))
        await this.#checkPlace(directory, found)
        return found
      })
      for (const entry of entries ?? []) {
        const path = join(directory, entry.name)
        if (entry.name.startsWith('..')) continue
        if (entry.isDirectory()) await read(path)
        else if (entry.isSymbolicLink() && (await this.#isDirectory(path))) left.links.add(path)
        else if (!isConfigFile(entry.name)) {
          if (!entry.name.startsWith('.')) left.others.add(path)
        } else if (entry.isFile() || entry.isSymbolicLink()) files.push(path)
        else left.pipes.add(path)
      }
    }
    await read(this.#root)
    this.#say('links to directories are not followed: files that are only there are not read', left.links, 'warn')
    this.#say('pipes, sockets and devices are not read', left.pipes, 'warn')
    this.#say('files are not read whose names do not end in .yaml, .yml or .json', left.others, 'info')
    return files.sort()
  }

  /** Whether a file that has no entry is gone: the nearest directory above it that is there can be read, and is the one that it was. */
  async isGone(file: string): Promise<boolean> {
    for (let directory = dirname(file); ; directory = dirname(directory)) {
      const found = await this.#attempt(directory, async () => {
        try {
          const opened = await this.#patience.wait(() => opendir(directory))
          await opened.read().finally(() => opened.close())
        } catch (error) {
          if (!isGone(error) || directory === this.#root || (error as NodeJS.ErrnoException).code === 'ENOTDIR') throw error
          if (await this.#isEntry(directory)) throw Object.assign(new Error('it is a link that leads nowhere'), { code: 'ENOLINK' })
          return 'above'
        }
        await this.#checkPlace(directory)
        return 'here'
      })
      if (found !== 'above') return found === 'here'
    }
  }

  /**
   * Throws where a directory is on another file system than it was with configuration in it, and is without any: then what was mounted there is
   * not mounted at present.
   */
  async #checkPlace(directory: string, given?: readonly { readonly name: string; isDirectory(): boolean }[]): Promise<void> {
    const { dev } = await this.#patience.wait(() => stat(directory))
    const before = this.#read.get(directory)
    if (before === dev) return
    const entries = given ?? (await this.#patience.wait(() => readdir(directory, { withFileTypes: true })))
    const holdsAny = entries.some(
      (entry) => isConfigFile(entry.name) || (entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'lost+found'),
    )
    if (before !== undefined && !holdsAny) throw Object.assign(new Error('it is empty, and on another file system than before'), { code: 'EXDEV' })
    this.#read.set(directory, holdsAny ? dev : undefined)
  }

  /** Does something with a directory. Undefined when that fails, which is reported when the reason is new; one below the root may be gone. */
  async #attempt<T>(directory: string, act: () => Promise<T>): Promise<T | undefined> {
    try {
      const result = await act()
      if (this.#unreadable.delete(directory)) this.#log('source').info(`the configuration directory ${directory} can be read again`)
      return result
    } catch (error) {
      const { code = '', message } = error as NodeJS.ErrnoException
      // As of now: another look at the same time may have told it.
      const known = this.#unreadable.get(directory)
      if (isGone(error) && directory !== this.#root) {
        this.#unreadable.delete(directory)
        this.#read.delete(directory)
      } else if (known?.code !== code) {
        const isUnknown = known?.isUnknown ?? !this.#read.has(directory)
        this.#unreadable.set(directory, { code, reason: message, isUnknown })
        this.#log('source').error(`cannot read the configuration directory ${directory}: ${message}; the objects of its files stay`)
      }
      return undefined
    }
  }

  /** Whether there is an entry, of whatever kind. Rejects where that cannot be told. */
  #isEntry(path: string): Promise<boolean> {
    return this.#patience
      .wait(() => lstat(path))
      .then(
        () => true,
        (error) => {
          if (isGone(error)) return false
          throw error
        },
      )
  }

  #isDirectory(path: string): Promise<boolean> {
    return this.#patience
      .wait(() => stat(path))
      .then(
        (found) => found.isDirectory(),
        () => false,
      )
  }

  /** Says of entries that they are not read, when there are others than before. */
  #say(what: string, paths: ReadonlySet<string>, level: 'info' | 'warn'): void {
    const before = this.#said.get(what)
    this.#said.set(what, paths)
    const news = [...paths].filter((path) => !before?.has(path)).map((path) => relative(this.#root, path))
    const more = news.length > mostNamed ? ` and ${news.length - mostNamed} more` : ''
    if (news.length > 0) this.#log('source')[level](`${this.#root}: ${what}: ${news.slice(0, mostNamed).join(', ')}${more}`)
  }
}

/** Whether a file may hold configuration, by its name. */
export const isConfigFile = (path: string): boolean => /\.(ya?ml|json)$/i.test(path) && !basename(path).startsWith('.')
