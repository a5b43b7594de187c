/**
 * The directory of configuration objects: reads its files, watches them, and tells `ConfigChanged` for every object that comes,
 * changes or goes; of Secrets it tells whoever delivers them. A bad document is reported and counted, and only its object stays at its last good state. A file that cannot
 * be read keeps all of its objects, and is tried again; only one that is gone from a directory that is there loses them.
 */
import { opendir, readdir, stat } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'
import type { ConfigObject } from '../../../../protocols/data.ts'
import type { SourceEvent } from '../../../../protocols/messages/push.ts'
import type { GatewaySecret } from '../../../../protocols/messages/secrets.ts'
import { configKey } from '../../../../src/config/kinds.ts'
import type { OptOuts } from '../../../../src/config/opt-outs.ts'
import { type DocumentFault, faultyFile, type ParsedFile, parseConfigFile } from '../../../../src/config/parse.ts'
import { PatternChecks } from '../../../../src/config/patterns.ts'
import { isStandIn } from '../../../../src/config/stand-in.ts'
import type { MeshNames } from '../../../../src/names/mesh-names.ts'
import type { Settings } from '../../../../src/snapshot/snapshot.ts'
import { monotonicMs } from '../../../runtime/clock.ts'
import { DirectoryWatch, isGone } from '../../../runtime/directory-watch.ts'
import { Counter, Gauge, type Registry } from '../../../runtime/metrics.ts'
import { createPool, type Pool } from '../../../runtime/pool.ts'
import { after, type Timer } from '../../../runtime/timers.ts'
import { WorkQueue } from '../../../runtime/work-queue.ts'
import { type Content, readContent, sameContent, signatureAfter, signatureOf } from './file-content.ts'
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

/** What a file may hold. Secrets are told to those who deliver them, and not with the objects. */
type Held = ConfigObject | GatewaySecret

/** What the directory shares with the watcher. */
export interface DirectoryParts extends WatchParts {
  /** Hears of every secret that comes, changes or goes, `Secret/<namespace>/<name>`. */
  secret(key: string, secret: GatewaySecret | undefined): void
  /** Files were read: more may be certain of what there is not ({@link ObjectDirectory.isAbsent}). */
  settled(): void
}

interface KnownFile {
  readonly content: Content
  /** Of the file when it was read; an audit reads only files of which it differs, and those that could not be read. */
  readonly signature: string
  readonly faults: number
  readonly objects: ReadonlyMap<string, Held>
  /** Objects that are there, cannot be used and have no last good state that is known here. */
  readonly unusable: ReadonlySet<string>
  /** Whether it may hold objects that cannot be told. */
  readonly unclear: boolean
}

/** Reads and watches a directory; an empty path stands for none. */
export class ObjectDirectory {
  readonly #root: string
  readonly #names: MeshNames
  readonly #optOuts: OptOuts
  readonly #parts: DirectoryParts
  readonly #metrics
  readonly #work: WorkQueue
  /** Parses on the pool. */
  readonly #aside: WorkQueue
  /** What is being parsed on the pool, by file; a newer reading of the file takes its place. */
  readonly #parsing = new Map<string, { readonly content: Content }>()
  readonly #files = new Map<string, KnownFile>()
  /** Which file an object is taken from, when several define it. */
  readonly #owners = new Map<string, string>()
  /** Directories that cannot be read, with the codes of the errors. */
  readonly #unreadable = new Map<string, string>()
  /** Links to directories, which are not followed: they may lead back to where they are. */
  #links = new Set<string>()
  #watch: DirectoryWatch | undefined
  #pending = new Set<string>()
  #gather: Timer | undefined
  #pool: Pool | undefined

  constructor(root: string, { names, optOuts }: Pick<Settings, 'names' | 'optOuts'>, register: Registry, parts: DirectoryParts) {
    this.#root = root
    this.#names = names
    this.#optOuts = optOuts
    this.#parts = parts
    const queue = () => new WorkQueue((what, reason) => parts.log('source').error(`${what}: ${reason}; what was known before stays`))
    this.#work = queue()
    this.#aside = queue()
    const registers = [register]
    this.#metrics = {
      rejected: new Counter({
        name: 'pilot_config_documents_rejected_total',
        help: 'configuration documents that could not be used',
        labelNames: ['kind'],
        registers,
      }),
      invalid: new Gauge({ name: 'pilot_config_documents_invalid', help: 'configuration documents that cannot be used at present', registers }),
      events: new Counter({ name: 'pilot_orch_cfg_events', help: 'events from configuration', labelNames: ['type', 'event'], registers }),
    }
  }

  /** Reads every file and watches the directory from then on. */
  async start(): Promise<void> {
    if (this.#root === '') return
    await this.#loadAll(await this.#list())
    await this.#aside.done()
    this.#watch = new DirectoryWatch(this.#root, true, {
      changed: (path) => this.#changed(path),
      everything: () => this.#lookAtAll(),
      unwatchable: (directory, error) => this.#parts.unwatchable(directory, error),
    })
    await this.#watch.refresh()
    // What changed between the reading above and the start of the watch is told by nobody.
    this.#lookAtAll()
  }

  /** All objects, as they were told, and those that are there and cannot be used: whoever heard of those before me keeps them. */
  *events(): Generator<SourceEvent> {
    const at = monotonicMs()
    for (const [key, file] of this.#owners) {
      const object = this.#files.get(file)?.objects.get(key)
      if (!isSecret(object)) yield eventOf(key, object, at)
    }
    for (const { unusable } of this.#files.values())
      for (const key of unusable) if (!this.#owners.has(key) && !isSecretKey(key)) yield { type: 'ConfigUnusable', key, standIn: undefined, at }
  }

  /** Whether every object of the directory can be told; otherwise one that was not told may be there all the same. */
  get isComplete(): boolean {
    return this.#unreadable.size === 0 && ![...this.#files.values()].some(({ unclear }) => unclear)
  }

  /** Whether there is certainly no object of a key: no file has it, usable or not, and none may hold it that cannot be told. */
  isAbsent(key: string): boolean {
    return this.isComplete && !this.#owners.has(key) && ![...this.#files.values()].some(({ unusable }) => unusable.has(key))
  }

  /** Reads every file again, changed or not. Resolves to their number. */
  async reload(): Promise<number> {
    if (this.#root === '') return 0
    const files = [...new Set([...this.#files.keys(), ...(await this.#list())])]
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
    this.#watch?.close()
    this.#parsing.clear()
    await this.#pool?.destroy()
  }

  /** All files of the directory, sorted. A directory that cannot be read is reported once, and those beside it are read. */
  async #list(): Promise<string[]> {
    const files: string[] = []
    const links = new Set<string>()
    const read = async (directory: string): Promise<void> => {
      const entries = await this.#attempt(directory, () => readdir(directory, { withFileTypes: true }))
      for (const entry of entries ?? []) {
        const path = join(directory, entry.name)
        if (entry.isDirectory() && !entry.name.startsWith('..')) await read(path)
        else if (entry.isSymbolicLink() && !entry.name.startsWith('..') && (await isDirectory(path))) links.add(path)
        else if (isConfigFile(entry.name) && (entry.isFile() || entry.isSymbolicLink())) files.push(path)
      }
    }
    await read(this.#root)
    for (const link of links)
      if (!this.#links.has(link))
        this.#parts.log('source').warn(`${link} is a link to a directory, which is not followed: files that are only there are not read`)
    this.#links = links
    return files.sort()
  }

  /** Whether the directory is there, so that a file that is not is gone from it. */
  async #isThere(): Promise<boolean> {
    const isThere = await this.#attempt(this.#root, async () => {
      const directory = await opendir(this.#root)
      await directory.read().finally(() => directory.close())
      return true
    })
    return isThere === true
  }

  /** Does something with a directory. Undefined when that fails, which is reported when the reason is new; one below the root may be gone. */
  async #attempt<T>(directory: string, act: () => Promise<T>): Promise<T | undefined> {
    try {
      const result = await act()
      this.#unreadable.delete(directory)
      return result
    } catch (error) {
      const { code = '', message } = error as NodeJS.ErrnoException
      if (isGone(error) && directory !== this.#root) this.#unreadable.delete(directory)
      else if (this.#unreadable.get(directory) !== code) {
        this.#unreadable.set(directory, code)
        this.#parts.log('source').error(`cannot read the configuration directory ${directory}: ${message}; the objects of its files stay`)
      }
      return undefined
    }
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
      for (const file of new Set([...this.#files.keys(), ...(await this.#list())])) {
        const signature = await signatureOf(file)
        if (signature === '' || signature !== this.#files.get(file)?.signature) this.#changed(file)
      }
    })
  }

  /** Reads files one after the other; one that fails in a way that nobody thought of costs itself only. */
  async #loadAll(files: readonly string[]): Promise<void> {
    for (const file of files)
      await this.#load(file).catch((error: unknown) =>
        this.#report('error', faultyFile(relative(this.#root, file), String(error)).faults[0] as DocumentFault, '; what it said before stays'),
      )
    this.#parts.settled()
  }

  /** Brings what is known of a file up to date with what it holds, and tells what changed. */
  async #load(file: string): Promise<void> {
    const at = monotonicMs()
    const before = this.#files.get(file)
    const signature = await signatureOf(file)
    const content = signature === undefined ? undefined : await readContent(file)
    const read = signatureAfter(content, signature) ?? ''
    if (sameContent(content, before?.content)) {
      this.#parsing.delete(file)
      if (before) this.#files.set(file, { ...before, signature: read })
      return
    }
    if (content === undefined) {
      if (!(await this.#isThere())) return
      this.#parsing.delete(file)
      this.#metrics.invalid.dec(before?.faults ?? 0)
      this.#files.delete(file)
      this.#tell(file, before, undefined, at)
      return
    }
    if (sameContent(content, this.#parsing.get(file)?.content)) return
    const name = relative(this.#root, file)
    const patterns = new PatternChecks(patternsMs, monotonicMs)
    if ('fault' in content) return this.#take(file, content, read, faultyFile(name, content.fault), at)
    if (content.text.length < pooledBytes) {
      const parsed = parseConfigFile(name, content.text, this.#names, patterns, this.#optOuts)
      if (!patterns.isExhausted) return this.#take(file, content, read, parsed, at)
    }
    this.#parseAside(file, content, read, at)
  }

  /** Brings what is known of a file up to date with what was parsed of it, and tells what changed. */
  #take(file: string, content: Content, signature: string, parsed: ParsedFile, at: number): void {
    this.#parsing.delete(file)
    const before = this.#files.get(file)
    const found: readonly Held[] = [...parsed.objects, ...parsed.secrets]
    const objects = new Map(found.map((object) => [configKey(object), object]))
    // A document that cannot be told may be any of those that the file had; after a mistake in one, others may not be seen.
    const unclear = parsed.faults.some(({ key }) => key === undefined)
    if (unclear) for (const [key, object] of before?.objects ?? []) if (!objects.has(key)) objects.set(key, object)
    const unusable = new Set(unclear ? before?.unusable : [])
    for (const fault of parsed.faults) {
      this.#metrics.rejected.inc({ kind: fault.key?.split('/')[0] ?? 'unknown' })
      const known = fault.key === undefined ? undefined : before?.objects.get(fault.key)
      const lastGood = known && (isSecret(known) || !isStandIn(known)) ? known : undefined
      const present = found.some((object) => configKey(object) === fault.key)
      const standIn = lastGood || present ? undefined : parsed.standIns.get(fault.key ?? '')
      if (!present) for (const kept of [lastGood, standIn]) if (kept) objects.set(configKey(kept), kept)
      if (fault.key !== undefined) unusable.add(fault.key)
      const stays =
        fault.key === undefined && (before?.objects.size ?? 0) > 0 ? '; what the file said before stays, except where it says otherwise' : ''
      this.#report('error', fault, stays || consequence(present ? undefined : lastGood, standIn))
    }
    for (const warning of parsed.warnings) this.#report('warn', warning, '')
    this.#metrics.invalid.inc(parsed.faults.length - (before?.faults ?? 0))
    for (const key of objects.keys()) unusable.delete(key)
    const known = { content, signature, faults: parsed.faults.length, objects, unusable, unclear }
    this.#files.set(file, known)
    this.#tell(file, before, known, at)
  }

  /** Has a file parsed on the pool, and takes what comes of it unless the file was read anew meanwhile. */
  #parseAside(file: string, content: Content & { text: string }, signature: string, at: number): void {
    const parsing = { content }
    this.#parsing.set(file, parsing)
    const isNewest = () => this.#parsing.get(file) === parsing
    void this.#aside.add(`parsing ${file}`, async () => {
      if (!isNewest()) return
      const parsed = await this.#parseOnPool(relative(this.#root, file), content.text)
      await this.#work.add(`reading ${file}`, async () => {
        if (isNewest()) this.#take(file, content, signature, parsed, at)
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

  #tell(file: string, earlier: KnownFile | undefined, now: KnownFile | undefined, at: number): void {
    const before = earlier?.objects ?? new Map<string, Held>()
    const after = now?.objects ?? new Map<string, Held>()
    for (const [key, object] of after) {
      const owner = this.#owners.get(key)
      if (owner !== undefined && owner !== file && this.#files.get(owner)?.objects.has(key)) {
        this.#parts.log('validation').warn(`${key} in ${object.origin} is left out: ${relative(this.#root, owner)} already defines it`)
        continue
      }
      this.#owners.set(key, file)
      this.#metrics.events.inc({ type: object.kind, event: before.has(key) ? 'update' : 'add' })
      this.#tellOne(key, object, at)
    }
    for (const key of earlier?.unusable ?? []) if (!this.#owners.has(key) && !now?.unusable.has(key)) this.#tellOne(key, undefined, at)
    for (const [key, object] of before) {
      if (after.has(key) || this.#owners.get(key) !== file) continue
      const heir = [...this.#files].find(([, known]) => known.objects.has(key))
      if (heir) this.#owners.set(key, heir[0])
      else this.#owners.delete(key)
      this.#metrics.events.inc({ type: object.kind, event: heir ? 'update' : 'delete' })
      this.#tellOne(key, heir?.[1].objects.get(key), at)
    }
  }

  /** Tells of an object that is there now as said, or gone. */
  #tellOne(key: string, object: Held | undefined, at: number): void {
    if (isSecretKey(key)) this.#parts.secret(key, isSecret(object) ? object : undefined)
    else if (!isSecret(object)) this.#parts.tell(eventOf(key, object, at))
  }

  #report(
    level: 'error' | 'warn',
    fault: { file: string; document: number; key: string | undefined; path: string; reason: string },
    suffix: string,
  ): void {
    const field = fault.path === '' ? '' : `, field ${fault.path}`
    this.#parts
      .log('validation')
      [level](`${fault.file}, document ${fault.document}${fault.key ? `, ${fault.key}` : ''}${field}: ${fault.reason}${suffix}`)
  }
}

const isSecret = (object: Held | undefined): object is GatewaySecret => object?.kind === 'Secret'
const isSecretKey = (key: string): boolean => key.startsWith('Secret/')

/** What is told of an object; a stand-in must not take the place of a last good state that was told by another incarnation. */
function eventOf(key: string, object: ConfigObject | undefined, at: number): SourceEvent {
  return object && isStandIn(object) ? { type: 'ConfigUnusable', key, standIn: object, at } : { type: 'ConfigChanged', key, object, at }
}

const isDirectory = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  )

/** Whether part of a path starts with `..`, as the directories do that mounted volumes swap. */
const isInHiddenDirectory = (path: string): boolean => path.split('/').some((part) => part.startsWith('..'))

/** What follows from a fault, for the log. */
function consequence(lastGood: Held | undefined, standIn: ConfigObject | undefined): string {
  if (lastGood) return '; its last good state stays'
  return standIn ? '; until it is valid, the workloads that it selects are guarded by the strictest it could mean' : ''
}

const isConfigFile = (path: string): boolean => /\.(ya?ml|json)$/.test(path) && !basename(path).startsWith('.')
