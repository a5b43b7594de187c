/**
 * The directory of configuration objects: reads its files, watches them, and tells `ConfigChanged` for every object that comes,
 * changes or goes; of Secrets it tells whoever delivers them. A bad document is reported and counted, and only its object stays at its last good state. A file that cannot
 * be read keeps all of its objects, and is tried again; only one that is gone from a directory that is there loses them.
 */
import { relative } from 'node:path'
import type { SourceEvent } from '../../../../protocols/messages/push.ts'
import type { OptOuts } from '../../../../src/config/opt-outs.ts'
import { faultyFile, type ParsedFile, parseConfigFile } from '../../../../src/config/parse.ts'
import { PatternChecks } from '../../../../src/config/patterns.ts'
import type { MeshNames } from '../../../../src/names/mesh-names.ts'
import type { Settings } from '../../../../src/snapshot/snapshot.ts'
import { monotonicMs } from '../../../runtime/clock.ts'
import { DirectoryWatch } from '../../../runtime/directory-watch.ts'
import { Gauge, type Registry } from '../../../runtime/metrics.ts'
import { FilePatience } from '../../../runtime/patience.ts'
import { createPool, type Pool } from '../../../runtime/pool.ts'
import { after, type Timer } from '../../../runtime/timers.ts'
import { WorkQueue } from '../../../runtime/work-queue.ts'
import { DirectoryListing, isConfigFile } from './directory-listing.ts'
import { type Content, readContent, sameContent, signatureAfter, signatureOf } from './file-content.ts'
import { type HeldListener, HeldObjects, type Reading } from './held-objects.ts'
import type { ParseTask } from './parse-task.ts'
import type { WatchParts } from './settings-files.ts'

/**
 * Files above this size, and files whose regular expressions take longer than this to compile, are parsed on the pool, within a
 * deadline, one after the other: parsing must not hold up other changes. Below this size the costliest text known takes 0.3 CPU-seconds.
 */
const pooledBytes = 65_536
const patternsMs = 25
const parseDeadlineMs = 30_000
/** Changes of files that come within this time are read together, in milliseconds. */
const gatherMs = 10
/** What could not be read is tried again after so many milliseconds, then after twice as many, and so on. */
const retryMs = { first: 250, longest: 30_000 }
/** What the directory shares with the watcher. */
export interface DirectoryParts extends WatchParts, HeldListener {
  /** Files were read: more may be certain of what there is not ({@link ObjectDirectory.isAbsent}). */
  settled(): void
}

/** One entry of the directory that is not as it should be, for pages. */
export interface FileTrouble {
  readonly path: string
  readonly reason: string
}

/** Reads and watches a directory; an empty path stands for none. */
export class ObjectDirectory {
  readonly #root: string
  readonly #names: MeshNames
  readonly #optOuts: OptOuts
  readonly #parts: DirectoryParts
  readonly #work: WorkQueue
  /** Parses on the pool. */
  readonly #aside: WorkQueue
  /** What is being parsed on the pool, by file; a newer reading of the file takes its place. */
  readonly #parsing = new Map<string, { readonly content: Content }>()
  readonly #held: HeldObjects
  readonly #listing: DirectoryListing
  readonly #patience = new FilePatience()
  #watch: DirectoryWatch | undefined
  #pending = new Set<string>()
  #gather: Timer | undefined
  #retry: Timer | undefined
  #retryMs = retryMs.first
  #pool: Pool | undefined

  constructor(root: string, { names, optOuts }: Pick<Settings, 'names' | 'optOuts'>, register: Registry, parts: DirectoryParts) {
    this.#root = root
    this.#names = names
    this.#optOuts = optOuts
    this.#parts = parts
    const queue = () => new WorkQueue((what, reason) => parts.log('source').error(`${what}: ${reason}; what was known before stays`))
    this.#work = queue()
    this.#aside = queue()
    this.#held = new HeldObjects(register, optOuts, parts)
    this.#listing = new DirectoryListing(root, this.#patience, parts.log)
    const troubles = () => this.troubles().length
    new Gauge({
      name: 'pilot_config_files_unreadable',
      help: 'configuration files and directories that cannot be read at present, whose last state stays',
      registers: [register],
      collect() {
        this.set(troubles())
      },
    })
  }

  /** Reads every file and watches the directory from then on. */
  async start(): Promise<void> {
    if (this.#root === '') return
    await this.#loadAll(await this.#listing.files())
    await this.#aside.done()
    const listener = {
      changed: (path: string) => this.#changed(path),
      everything: () => this.#lookAtAll(),
      unwatchable: (directory: string, error: Error) => this.#parts.unwatchable(directory, error),
    }
    this.#watch = new DirectoryWatch(this.#root, true, listener, this.#patience)
    await this.#watch.refresh()
    // What changed between the reading above and the start of the watch is told by nobody.
    this.#lookAtAll()
  }

  /** All objects, as they were told, and those that are there and cannot be used: whoever heard of those before me keeps them. */
  events(): Generator<SourceEvent> {
    return this.#held.events()
  }

  /** Whether every object of the directory can be told; otherwise one that was not told may be there all the same. */
  get isComplete(): boolean {
    return this.#listing.troubles.size === 0 && this.#held.isComplete
  }

  /** Whether there is certainly no object of a key: no file has it, usable or not, and none may hold it that cannot be told. */
  isAbsent(key: string): boolean {
    return this.isComplete && !this.#held.has(key)
  }

  /** Why the directory may hold what was never known. */
  get unknown(): string[] {
    const directories = [...this.#listing.troubles].flatMap(([path, { reason, isUnknown }]) => (isUnknown ? [`${path}: ${reason}`] : []))
    return [...directories, ...[...this.#held.files.values()].flatMap(({ unknown }) => unknown ?? [])]
  }

  /** Files and directories that cannot be read at present. */
  troubles(): FileTrouble[] {
    const directories = [...this.#listing.troubles].map(([path, { reason }]) => ({ path, reason }))
    const files = [...this.#held.files].flatMap(([path, { content }]) => ('fault' in content ? [{ path, reason: content.fault }] : []))
    return [...directories, ...files]
  }

  /** Policies that cannot be used and are stood in for. */
  standIns(): ReturnType<HeldObjects['standIns']> {
    return this.#held.standIns()
  }

  /** Reads every file again, changed or not. Resolves to their number. */
  async reload(): Promise<number> {
    if (this.#root === '') return 0
    const files = [...new Set([...this.#held.files.keys(), ...(await this.#listing.files())])]
    await this.#work.add('reading everything again', () => this.#loadAll(files))
    await this.#aside.done()
    return files.length
  }

  /** Looks for what the file system did not tell of, and again at what could not be read. */
  audit(): void {
    if (this.#root === '') return
    void this.#watch?.audit().catch(() => undefined)
    this.#lookAtAll()
  }

  async close(): Promise<void> {
    this.#gather?.cancel()
    this.#retry?.cancel()
    this.#watch?.close()
    this.#parsing.clear()
    await this.#pool?.destroy()
  }

  #changed(path: string): void {
    // What is in such a directory counts under the links to it, any of which may now show something else.
    if (isInHiddenDirectory(relative(this.#root, path))) this.#lookAtAll()
    else if (isConfigFile(path)) this.#pending.add(path)
    else return
    this.#gather ??= after(gatherMs, () => {
      this.#gather = undefined
      const files = [...this.#pending].sort()
      this.#pending = new Set()
      void this.#work.add('reading changed files', () => this.#loadAll(files))
    })
  }

  /** Has every file read that is new, gone, or not what it was. */
  #lookAtAll(): void {
    void this.#work.add(`looking through ${this.#root}`, async () => {
      for (const file of new Set([...this.#held.files.keys(), ...(await this.#listing.files())])) {
        const signature = await signatureOf(file, this.#patience)
        if (signature === undefined || signature === '' || signature !== this.#held.files.get(file)?.signature) this.#changed(file)
      }
      this.#retryLater()
    })
  }

  /** What cannot be read is tried again, soon and then more and more seldom. */
  #retryLater(): void {
    const troubles = this.troubles()
    if (troubles.length === 0) {
      this.#retry?.cancel()
      this.#retry = undefined
      this.#retryMs = retryMs.first
      return
    }
    this.#retry ??= after(this.#retryMs, () => {
      this.#retry = undefined
      this.#retryMs = Math.min(this.#retryMs * 2, retryMs.longest)
      if (this.#listing.troubles.size > 0) this.#lookAtAll()
      else for (const { path } of this.troubles()) this.#changed(path)
    }).unref()
  }

  /** Reads files one after the other, and takes what they hold as one change; one that fails in a way that nobody thought of costs itself only. */
  async #loadAll(files: readonly string[]): Promise<void> {
    const at = monotonicMs()
    const readings = new Map<string, Reading | undefined>()
    const load = (file: string) =>
      this.#load(file, readings).catch((error: unknown) =>
        this.#parts.log('validation').error(`${relative(this.#root, file)}: ${String(error)}; what it said before stays`),
      )
    for (const file of files) await load(file)
    // A link to a file has changed with it, of which the file system does not tell: two definitions of one policy would seem to disagree.
    for (const file of this.#held.sharers(readings)) await load(file)
    // Editors and tools write one file after the other: a policy that is gone from one of them may be in another, of whose change nobody has told yet.
    if (this.#held.losesPolicy(readings)) for (const file of await this.#changedBeside(readings)) await load(file)
    this.#apply(readings, at)
    this.#retryLater()
    this.#parts.settled()
  }

  /** Takes what was read as one change. What is gone may be in a file that is being parsed: that it is gone is told with that. */
  #apply(readings: ReadonlyMap<string, Reading | undefined>, at: number): void {
    this.#held.apply(readings, at, this.#parsing.size === 0)
  }

  /** Files, others than those that were read, that are new or not what they were. */
  async #changedBeside(readings: ReadonlyMap<string, Reading | undefined>): Promise<string[]> {
    const changed: string[] = []
    for (const file of new Set([...this.#held.files.keys(), ...(await this.#listing.files())])) {
      if (readings.has(file)) continue
      const signature = await signatureOf(file, this.#patience)
      if (signature !== '' && signature !== this.#held.files.get(file)?.signature) changed.push(file)
    }
    return changed
  }

  /** Reads a file, and adds what it holds, unless that is what it held, or is parsed on the pool. */
  async #load(file: string, readings: Map<string, Reading | undefined>): Promise<void> {
    const before = this.#held.files.get(file)
    const signature = await signatureOf(file, this.#patience)
    const content = await readContent(file, this.#patience)
    const read = signatureAfter(content, signature) ?? ''
    if (content === undefined) {
      if (before && !(await this.#listing.isGone(file))) return
      this.#parsing.delete(file)
      if (before) readings.set(file, undefined)
      return
    }
    if (sameContent(content, before?.content)) {
      this.#parsing.delete(file)
      this.#held.unchanged(file, content, read)
      return
    }
    if (sameContent(content, this.#parsing.get(file)?.content)) return
    const name = relative(this.#root, file)
    if ('fault' in content) {
      // What never was a file holds nothing.
      if (content.isNoFile && !before) return
      this.#parsing.delete(file)
      readings.set(file, { name, content, signature: read, parsed: faultyFile(name, content.fault) })
      return
    }
    if (before && 'fault' in before.content) this.#parts.log('source').info(`${name} can be read again`)
    const patterns = new PatternChecks(patternsMs, monotonicMs)
    if (content.text.length < pooledBytes) {
      const parsed = parseConfigFile(name, content.text, this.#names, patterns, this.#optOuts)
      if (!patterns.isExhausted) {
        this.#parsing.delete(file)
        readings.set(file, { name, content, signature: read, parsed })
        return
      }
    }
    this.#parseAside(file, { name, content, signature: read })
  }

  /** Has a file parsed on the pool, and takes what comes of it unless the file was read anew meanwhile. */
  #parseAside(
    file: string,
    { name, content, signature }: Omit<Reading, 'parsed' | 'content'> & { readonly content: { readonly text: string } },
  ): void {
    const at = monotonicMs()
    const parsing = { content }
    this.#parsing.set(file, parsing)
    const isNewest = () => this.#parsing.get(file) === parsing
    void this.#aside.add(`parsing ${file}`, async () => {
      if (!isNewest()) return
      const parsed = await this.#parseOnPool(name, content.text)
      await this.#work.add(`reading ${file}`, async () => {
        if (isNewest()) {
          this.#parsing.delete(file)
          this.#apply(new Map([[file, { name, content, signature, parsed }]]), at)
        }
        this.#parts.settled()
      })
    })
  }

  async #parseOnPool(name: string, content: string): Promise<ParsedFile> {
    this.#pool ??= createPool(new URL(`./parse-task${import.meta.url.slice(-3)}`, import.meta.url), { threads: 1, queue: 16 })
    try {
      const task: ParseTask = { name, content, domain: this.#names.domain, optOuts: [...this.#optOuts].join(',') }
      return await this.#pool.run<ParsedFile>(task, parseDeadlineMs)
    } catch (error) {
      return faultyFile(name, `the file could not be parsed within ${parseDeadlineMs} ms: ${(error as Error).message}`)
    }
  }
}

/** Whether part of a path starts with `..`, as the directories do that mounted volumes swap. */
const isInHiddenDirectory = (path: string): boolean => path.split('/').some((part) => part.startsWith('..'))
