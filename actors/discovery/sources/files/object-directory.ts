/**
 * The directory of configuration objects: reads and watches its files, and emits `ConfigChanged` for every object that is added, changed
 * or removed; Secrets go to their delivery. An invalid document is reported and counted, and only its object stays at its last good
 * state. A file that cannot be read keeps all of its objects and is retried; objects are removed only when the file is gone from a
 * directory that can be read.
 */
import { relative } from 'node:path'
import type { SourceEvent } from '../../../../protocols/messages/push.ts'
import type { OptOuts } from '../../../../src/config/opt-outs.ts'
import { faultyFile, type ParsedFile, parseConfigFile } from '../../../../src/config/parse.ts'
import { PatternChecks } from '../../../../src/config/patterns.ts'
import { BackOff, type Pauses } from '../../../../src/model/back-off.ts'
import type { MeshNames } from '../../../../src/names/mesh-names.ts'
import type { Settings } from '../../../../src/snapshot/snapshot.ts'
import { monotonicMs, threadCpuMs } from '../../../runtime/clock.ts'
import { DirectoryWatch } from '../../../runtime/directory-watch.ts'
import { FileTimeouts } from '../../../runtime/file-timeouts.ts'
import { Gauge, type MetricRegistry } from '../../../runtime/metrics.ts'
import { createPool, type Pool } from '../../../runtime/pool.ts'
import { after, type Timer } from '../../../runtime/timers.ts'
import { WorkQueue } from '../../../runtime/work-queue.ts'
import { DefinedObjects, type DefinitionListener, type Reading } from './defined-objects.ts'
import { DirectoryListing, isConfigFile } from './directory-listing.ts'
import { type Content, type FoundFile, readFile, sameContent, signaturesOf } from './file-content.ts'
import type { ParseTask } from './parse-task.ts'
import { filesSource, type WatchParts } from './settings-files.ts'
import { ValidationMetrics } from './validation-metrics.ts'

/**
 * Files above `pooledBytes`, and files whose regular expressions take longer than `patternsMs` to compile, are parsed on the pool, one
 * after the other and with a deadline, so that parsing does not delay other changes. Below this size, the most expensive known text takes
 * 0.3 CPU-seconds.
 */
const pooledBytes = 65_536
const patternsMs = 25
const parseDeadlineMs = 30_000
/** Debounce time of changed files, in milliseconds. */
const debounceMs = 10
/** The delays before files that could not be read are retried. */
const pauses: Pauses = { firstMs: 250, longestMs: 30_000 }
/**
 * Number of files that are read ahead of the one that is parsed. Each occupies a thread of Node's pool when its file system does not answer,
 * so it must not exceed the number of operations that `FileTimeouts` lets time out.
 */
const readAhead = 2

/** Callbacks into the watcher. */
export interface DirectoryParts extends WatchParts, DefinitionListener {
  /** Called after files were read: more objects may be known to be absent ({@link ObjectDirectory.isAbsent}). */
  filesRead(): void
}

/** An entry of the directory that cannot be read, for debug pages. */
export interface FileTrouble {
  readonly path: string
  readonly reason: string
}

/** How documents are read. */
interface ReadSettings extends Pick<Settings, 'names' | 'optOuts'> {
  /** The revision of this control plane; none by default. */
  readonly revision?: string
  /** The source that the objects are of: `files` by default, or the address of a directory. */
  readonly source?: string
}

/** Reads and watches a directory; with an empty path it does nothing. */
export class ObjectDirectory {
  readonly #root: string
  readonly #names: MeshNames
  readonly #optOuts: OptOuts
  readonly #revision: string
  readonly #source: string
  readonly #parts: DirectoryParts
  readonly #work: WorkQueue
  /** Queue of the files that are parsed on the pool. */
  readonly #poolQueue: WorkQueue
  /** The files being parsed on the pool. A newer reading of a file replaces the older one. */
  readonly #parsing = new Map<string, { readonly content: Content }>()
  readonly #defined: DefinedObjects
  readonly #validation: ValidationMetrics
  readonly #listing: DirectoryListing
  readonly #timeouts = new FileTimeouts()
  #watch: DirectoryWatch | undefined
  #pending = new Set<string>()
  #debounceTimer: Timer | undefined
  #retryTimer: Timer | undefined
  readonly #backOff = new BackOff(pauses)
  #pool: Pool | undefined
  #isClosed = false

  constructor(root: string, { names, optOuts, revision, source }: ReadSettings, register: MetricRegistry, parts: DirectoryParts) {
    this.#root = root
    this.#names = names
    this.#optOuts = optOuts
    this.#revision = revision ?? ''
    this.#source = source ?? filesSource
    this.#parts = parts
    const queue = () => new WorkQueue((what, reason) => parts.log('source').error(`${what}: ${reason}; the last state that was read stays in force`))
    this.#work = queue()
    this.#poolQueue = queue()
    this.#defined = new DefinedObjects(register, optOuts, parts)
    this.#validation = new ValidationMetrics(register, names.domain)
    this.#listing = new DirectoryListing(root, this.#timeouts, parts.log)
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

  /** Reads every file, then watches the directory. */
  async start(): Promise<void> {
    if (this.#root === '') return
    await this.#loadAll(await this.#listing.files())
    await this.#poolQueue.done()
    if (this.#isClosed) return
    const listener = {
      changed: (path: string) => this.#changed(path),
      everything: () => this.#scan(),
      unwatchable: (directory: string, error: Error) => this.#parts.unwatchable(directory, error),
    }
    this.#watch = new DirectoryWatch(this.#root, true, listener, this.#timeouts)
    await this.#watch.refresh()
    // Changes between the first reading and the start of the watch were not reported.
    this.#scan()
  }

  /** The events of a replay: all objects in force, and `ConfigUnusable` for objects that are defined and cannot be used. */
  events(): Generator<SourceEvent> {
    return this.#defined.events()
  }

  /**
   * Whether every object of the directory could be read and identified. Otherwise an object that was not emitted may exist all the same.
   */
  get isComplete(): boolean {
    return this.#listing.troubles.size === 0 && this.#defined.isComplete
  }

  /** The number of its objects in force. */
  get objects(): number {
    return this.#defined.size
  }

  /** The number of its files. */
  get size(): number {
    return this.#defined.files.size
  }

  /** Whether there is certainly no object with a key: no file defines it, usable or not, and no unreadable file may define it. */
  isAbsent(key: string): boolean {
    return this.isComplete && !this.#defined.has(key)
  }

  /** Directories and files that could not be read or identified since the start, with reasons. */
  get unknown(): string[] {
    const directories = [...this.#listing.troubles].flatMap(([path, { reason, isUnknown }]) => (isUnknown ? [`${path}: ${reason}`] : []))
    return [...directories, ...[...this.#defined.files.values()].flatMap(({ unknown }) => unknown ?? [])]
  }

  /** Files and directories that cannot be read at present. */
  troubles(): FileTrouble[] {
    const directories = [...this.#listing.troubles].map(([path, { reason }]) => ({ path, reason }))
    const files = [...this.#defined.files].flatMap(([path, { content }]) => ('fault' in content ? [{ path, reason: content.fault }] : []))
    return [...directories, ...files]
  }

  /** Faults and warnings of the documents of all files, as they were logged. */
  problems(): string[] {
    return [...this.#defined.files.values()].flatMap(({ problems }) => problems)
  }

  /** Policies that cannot be used and have a stand-in. */
  standIns(): ReturnType<DefinedObjects['standIns']> {
    return this.#defined.standIns()
  }

  /** Reads every file again, changed or not. Resolves to the number of files. */
  async reload(): Promise<number> {
    if (this.#root === '') return 0
    const files = [...new Set([...this.#defined.files.keys(), ...(await this.#listing.files())])]
    await this.#work.add('reading everything again', () => this.#loadAll(files))
    await this.#poolQueue.done()
    return files.length
  }

  /** Finds changes that the file system did not report, and retries files that could not be read. */
  audit(): void {
    if (this.#root === '') return
    void this.#watch?.audit().catch(() => undefined)
    this.#scan()
  }

  /** Ends the watch. What is being read or parsed is dropped. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#work.close()
    this.#poolQueue.close()
    this.#debounceTimer?.cancel()
    this.#retryTimer?.cancel()
    this.#watch?.close()
    this.#parsing.clear()
    await this.#pool?.destroy()
  }

  /** The name of a file in messages, which decides its precedence too: within `--configDir` relative to it, elsewhere the whole path. */
  #nameOf(file: string): string {
    return this.#source === filesSource ? relative(this.#root, file) : file
  }

  #changed(path: string): void {
    if (this.#isClosed) return
    // Files in such a directory are visible through symbolic links, any of which may now lead to another file.
    if (isInHiddenDirectory(relative(this.#root, path))) this.#scan()
    else if (isConfigFile(path)) this.#pending.add(path)
    else return
    this.#debounceTimer ??= after(debounceMs, () => {
      this.#debounceTimer = undefined
      const files = [...this.#pending].sort()
      this.#pending = new Set()
      void this.#work.add('reading changed files', () => this.#loadAll(files))
    })
  }

  /** Reads every file that is new, gone, or has another signature. */
  #scan(): void {
    void this.#work.add(`scanning ${this.#root}`, async () => {
      for await (const [file, signature] of await this.#signatures())
        if (signature === undefined || signature === '' || signature !== this.#defined.files.get(file)?.signature) this.#changed(file)
      this.#retryLater()
    })
  }

  /** Schedules a retry of unreadable files, with exponential back-off. */
  #retryLater(): void {
    if (this.#isClosed) return
    const troubles = this.troubles()
    if (troubles.length === 0) {
      this.#retryTimer?.cancel()
      this.#retryTimer = undefined
      this.#backOff.succeeded()
      return
    }
    this.#retryTimer ??= after(this.#backOff.failed(monotonicMs()), () => {
      this.#retryTimer = undefined
      if (this.#listing.troubles.size > 0) this.#scan()
      else for (const { path } of this.troubles()) this.#changed(path)
    }).unref()
  }

  /** Reads files and applies them as one change. */
  async #loadAll(files: readonly string[]): Promise<void> {
    const at = monotonicMs()
    const readings = new Map<string, Reading | undefined>()
    await this.#loadEach(files, readings)
    // A symbolic link changes with its target without an event. Both must be read together, or two definitions of one policy would seem
    // to conflict.
    await this.#loadEach([...this.#defined.otherDefiners(readings)], readings)
    // Editors and tools write one file after the other: a policy that disappeared from one file may have moved to another whose event has
    // not arrived yet.
    if (this.#defined.losesPolicy(readings)) await this.#loadEach(await this.#otherChanged(readings), readings)
    if (this.#isClosed) return
    this.#apply(readings, at)
    this.#retryLater()
    this.#parts.filesRead()
  }

  /**
   * Applies files as one change. While other files are being parsed, removals are held back, because those files may define the objects.
   */
  #apply(readings: ReadonlyMap<string, Reading | undefined>, at: number): void {
    for (const reading of readings.values()) if (reading) this.#validation.checked(reading.parsed)
    this.#defined.apply(readings, at, this.#parsing.size === 0)
  }

  /** Other files that are new, gone or changed. */
  async #otherChanged(readings: ReadonlyMap<string, Reading | undefined>): Promise<string[]> {
    const changed: string[] = []
    for await (const [file, signature] of await this.#signatures())
      if (!readings.has(file) && signature !== '' && signature !== this.#defined.files.get(file)?.signature) changed.push(file)
    return changed
  }

  /** The files that are in the directory or were read from it, with their present signatures. */
  async #signatures() {
    return signaturesOf(new Set([...this.#defined.files.keys(), ...(await this.#listing.files())]), this.#timeouts)
  }

  /** Reads and parses files in order. The next ones are read while one is parsed. An unexpected error concerns only its own file. */
  async #loadEach(files: readonly string[], readings: Map<string, Reading | undefined>): Promise<void> {
    const left = [...files].reverse()
    const started: { readonly file: string; readonly found: Promise<FoundFile> }[] = []
    const startNext = () => {
      const file = left.pop()
      if (file !== undefined) started.push({ file, found: readFile(file, this.#timeouts) })
    }
    for (let ahead = 0; ahead < readAhead; ahead++) startNext()
    for (let next = started.shift(); next; next = started.shift()) {
      const { file, found } = next
      const read = await found
      startNext()
      await this.#load(file, read, readings).catch((error: unknown) =>
        this.#parts.log('validation').error(`${this.#nameOf(file)}: ${String(error)}; the objects read from it before stay in force`),
      )
    }
  }

  /** Parses a file that was read and adds the result to `readings`, unless it is unchanged or is parsed on the pool. */
  async #load(file: string, { content, signature = '' }: FoundFile, readings: Map<string, Reading | undefined>): Promise<void> {
    const before = this.#defined.files.get(file)
    if (content === undefined) {
      if (before && !(await this.#listing.isGone(file))) return
      this.#parsing.delete(file)
      if (before) readings.set(file, undefined)
      return
    }
    if (sameContent(content, before?.content)) {
      this.#parsing.delete(file)
      this.#defined.unchanged(file, content, signature)
      return
    }
    if (sameContent(content, this.#parsing.get(file)?.content)) return
    const name = this.#nameOf(file)
    if ('fault' in content) {
      // A path that never was a file holds no objects.
      if (content.isNoFile && !before) return
      this.#parsing.delete(file)
      readings.set(file, { name, content, signature, parsed: faultyFile(name, content.fault) })
      return
    }
    if (before && 'fault' in before.content) this.#parts.log('source').info(`${name} can be read again`)
    const patterns = new PatternChecks(patternsMs, threadCpuMs)
    if (content.text.length < pooledBytes) {
      const parsed = parseConfigFile(name, content.text, this.#names, patterns, this.#optOuts, this.#revision, this.#source)
      if (!patterns.isExhausted) {
        this.#parsing.delete(file)
        readings.set(file, { name, content, signature, parsed })
        return
      }
    }
    this.#queueForPool(file, { name, content, signature })
  }

  /** Parses a file on the pool, and applies the result unless the file was read again meanwhile. */
  #queueForPool(
    file: string,
    { name, content, signature }: Omit<Reading, 'parsed' | 'content'> & { readonly content: { readonly text: string } },
  ): void {
    const at = monotonicMs()
    const parsing = { content }
    this.#parsing.set(file, parsing)
    const isNewest = () => this.#parsing.get(file) === parsing
    void this.#poolQueue.add(`parsing ${file}`, async () => {
      if (!isNewest()) return
      const parsed = await this.#parseOnPool(name, content.text)
      await this.#work.add(`reading ${file}`, async () => {
        if (isNewest()) {
          this.#parsing.delete(file)
          this.#apply(new Map([[file, { name, content, signature, parsed }]]), at)
        }
        this.#parts.filesRead()
      })
    })
  }

  async #parseOnPool(name: string, content: string): Promise<ParsedFile> {
    this.#pool ??= createPool(new URL(`./parse-task${import.meta.url.slice(-3)}`, import.meta.url), { threads: 1, queue: 16 })
    try {
      const read = { domain: this.#names.domain, optOuts: [...this.#optOuts].join(','), revision: this.#revision, source: this.#source }
      const task: ParseTask = { name, content, ...read }
      return await this.#pool.run<ParsedFile>(task, parseDeadlineMs)
    } catch (error) {
      return faultyFile(name, `the file could not be parsed within ${parseDeadlineMs} ms: ${(error as Error).message}`)
    }
  }
}

/** Whether a part of the path starts with `..`, like the directories that mounted volumes replace. */
const isInHiddenDirectory = (path: string): boolean => path.split('/').some((part) => part.startsWith('..'))
