/**
 * Watches configuration files: a directory of objects, the mesh configuration, the networks. Emits `ConfigChanged`,
 * `MeshChanged` and `NetworksChanged` to the push queue. A bad document is reported and counted, and only its object stays
 * at its last good state. A periodic look at the whole directory finds what the file system did not tell of.
 */
import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve } from 'node:path'
import type { ConfigObject } from '../../protocols/data.ts'
import type { FileWatcherConfig } from '../../protocols/messages/config.ts'
import type { SourceEvent } from '../../protocols/messages/push.ts'
import type { Features } from '../../src/config/features.ts'
import { configKey } from '../../src/config/kinds.ts'
import {
  defaultMeshConfig,
  type MeshConfig,
  type MeshNetworks,
  type ReadResult,
  readMeshConfig,
  readMeshNetworks,
} from '../../src/config/mesh-config.ts'
import { type DocumentFault, faultyFile, fileLimits, type ParsedFile, parseConfigFile, tooLarge } from '../../src/config/parse.ts'
import { meshNames } from '../../src/names/mesh-names.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../runtime/actor.ts'
import { monotonicMs } from '../runtime/clock.ts'
import type { Peer } from '../runtime/link.ts'
import { Counter, Gauge } from '../runtime/metrics.ts'
import { createPool, type Pool } from '../runtime/pool.ts'
import { after, every, type Timer } from '../runtime/timers.ts'
import { DirectoryWatch } from './directory-watch.ts'
import type { ParseTask } from './parse-task.ts'
import { resolveGateways } from './resolve-gateways.ts'
import { tellEvent } from './source-events.ts'

/** Files above this size are parsed on the pool, within a deadline: parsing must not hold up other changes. */
const pooledBytes = 262_144
const parseDeadlineMs = 30_000
const auditMs = 30_000
/** Changes of files that come within this time are read together, in milliseconds. */
const gatherMs = 10

/** What a file holds, or why that cannot be had; a file that is not there has neither. */
type Content = { readonly text: string } | { readonly fault: string }

interface KnownFile {
  readonly content: Content
  /** Inode, size and time of the last change; an audit reads only files of which they differ. */
  readonly signature: string
  readonly faults: number
  readonly objects: ReadonlyMap<string, ConfigObject>
}

class FileWatcher implements Behaviour<never> {
  /** `reload` has every file read again, changed or not. */
  readonly asks = { reload: () => void this.#reload() }
  readonly #context: ActorContext<FileWatcherConfig>
  readonly #root: string
  readonly #names
  readonly #files = new Map<string, KnownFile>()
  /** Which file an object is taken from, when several define it. */
  readonly #owners = new Map<string, string>()
  readonly #metrics
  readonly #watches: DirectoryWatch[] = []
  /** What the files of settings held when they were read last. */
  readonly #settings = new Map<string, Content>()
  /** Told things once everything has been read. */
  #queue: Peer<SourceEvent> | undefined
  #mesh: SourceEvent | undefined
  #networks: SourceEvent | undefined
  /** Networks with gateways whose host names were not found. */
  #unresolved: MeshNetworks | undefined
  #loaded: Promise<void>
  #pending = new Set<string>()
  #gather: Timer | undefined
  #work: Promise<void> = Promise.resolve()
  #audit: Timer | undefined
  #pool: Pool | undefined

  constructor(context: ActorContext<FileWatcherConfig>) {
    this.#context = context
    this.#root = context.config.configDir === '' ? '' : resolve(context.config.configDir)
    this.#names = meshNames((context.config.features as Features).MESH_DOMAIN)
    const registers = [context.metrics]
    this.#metrics = {
      rejected: new Counter({
        name: 'pilot_config_documents_rejected_total',
        help: 'configuration documents that could not be used',
        labelNames: ['kind'],
        registers,
      }),
      invalid: new Gauge({ name: 'pilot_config_documents_invalid', help: 'configuration documents that cannot be used at present', registers }),
      unwatchable: new Counter({ name: 'num_file_watcher_failures_total', help: 'failures to add file watchers', registers }),
      events: new Counter({ name: 'pilot_orch_cfg_events', help: 'events from configuration', labelNames: ['type', 'event'], registers }),
    }
    this.#loaded = this.#start()
  }

  linked(peer: Peer): void {
    void this.#loaded.then(() => this.#replay(peer as Peer<SourceEvent>))
  }

  receive(): void {}

  async drain(): Promise<void> {
    this.#audit?.cancel()
    this.#gather?.cancel()
    for (const watch of this.#watches) watch.close()
    await this.#pool?.destroy()
  }

  async #start(): Promise<void> {
    const { meshConfig, networksConfig } = this.#context.config
    await Promise.all([this.#readMesh(meshConfig, true), this.#readNetworks(networksConfig)])
    this.#watchOne(meshConfig, () => this.#readMesh(meshConfig, false))
    this.#watchOne(networksConfig, () => this.#readNetworks(networksConfig))
    this.#audit = every(auditMs, () => this.#auditAll()).unref()
    if (this.#root === '') return
    await this.#loadAll(await this.#list())
    const watch = new DirectoryWatch(this.#root, true, {
      changed: (path) => this.#changed(path),
      everything: () => this.#lookAtAll(),
      unwatchable: (directory, error) => this.#unwatchable(directory, error),
    })
    this.#watches.push(watch)
    await watch.refresh()
    // What changed between the reading above and the start of the watch is told by nobody.
    this.#lookAtAll()
  }

  async #reload(): Promise<void> {
    await this.#loaded
    const { meshConfig, networksConfig } = this.#context.config
    const files = this.#root === '' ? [] : [...new Set([...this.#files.keys(), ...(await this.#list())])]
    await this.#enqueue('reading everything again', async () => {
      await Promise.all([this.#readMesh(meshConfig, false), this.#readNetworks(networksConfig)])
      await this.#loadAll(files)
    })
    this.#context.log('source').info(`configuration files read again: ${files.length}, the mesh configuration and the networks`)
  }

  /** Does one thing after the other. What fails is told, and what it was about stays as it was. */
  #enqueue(what: string, job: () => Promise<void>): Promise<void> {
    const failed = (error: unknown) =>
      this.#context.log('source').error(`${what}: ${error instanceof Error ? error.message : String(error)}; what was known before stays`)
    this.#work = this.#work.then(job).catch(failed)
    return this.#work
  }

  /** Looks for what the file system did not tell of. */
  #auditAll(): void {
    for (const watch of this.#watches) void watch.audit().catch(() => undefined)
    if (this.#root !== '') this.#lookAtAll()
    const unresolved = this.#unresolved
    if (unresolved) void this.#enqueue('looking for the gateways of networks', () => this.#resolveNetworks(unresolved))
  }

  #replay(queue: Peer<SourceEvent>): void {
    const at = monotonicMs()
    this.#queue = queue
    const replay = queue.replay()
    if (this.#mesh) this.#emit(this.#mesh)
    if (this.#networks) this.#emit(this.#networks)
    for (const [key, file] of this.#owners) this.#emit({ type: 'ConfigChanged', key, object: this.#files.get(file)?.objects.get(key), at })
    replay.finish()
  }

  #emit(event: SourceEvent): void {
    if (this.#queue) tellEvent(this.#queue, event)
  }

  async #list(): Promise<string[]> {
    try {
      const entries = await readdir(this.#root, { recursive: true, withFileTypes: true })
      const files = entries
        .filter((entry) => isConfigFile(entry.name) && (entry.isFile() || entry.isSymbolicLink()))
        .map((entry) => join(entry.parentPath, entry.name))
      return files.filter((file) => !isInHiddenDirectory(relative(this.#root, file))).sort()
    } catch (error) {
      this.#context.log('source').error(`cannot read the configuration directory ${this.#root}: ${(error as Error).message}`)
      return []
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
      void this.#enqueue('reading changed files', () => this.#loadAll(files))
    })
  }

  /** Has every file read that is new, gone, or not what it was. */
  #lookAtAll(): void {
    void this.#enqueue(`looking through ${this.#root}`, async () => {
      for (const file of new Set([...this.#files.keys(), ...(await this.#list())]))
        if ((await signatureOf(file)) !== this.#files.get(file)?.signature) this.#changed(file)
    })
  }

  /** Reads files one after the other; one that fails in a way that nobody thought of costs itself only. */
  async #loadAll(files: readonly string[]): Promise<void> {
    for (const file of files)
      await this.#load(file).catch((error: unknown) =>
        this.#report('error', faultyFile(relative(this.#root, file), String(error)).faults[0] as DocumentFault, '; what it said before stays'),
      )
  }

  /** Brings what is known of a file up to date with what it holds, and tells what changed. */
  async #load(file: string): Promise<void> {
    const at = monotonicMs()
    const before = this.#files.get(file)
    const signature = await signatureOf(file)
    const content = signature === undefined ? undefined : await readContent(file)
    if (sameContent(content, before?.content)) {
      if (before && signature !== undefined) this.#files.set(file, { ...before, signature })
      return
    }
    if (content === undefined) {
      this.#metrics.invalid.dec(before?.faults ?? 0)
      this.#files.delete(file)
      this.#tell(file, before?.objects ?? new Map(), new Map(), at)
      return
    }
    const parsed = await this.#parse(file, content)
    const objects = new Map(parsed.objects.map((object) => [configKey(object), object]))
    // A document that cannot be told may be any of those that the file had; after a mistake in one, others may not be seen.
    const unclear = parsed.faults.some(({ key }) => key === undefined)
    if (unclear) for (const [key, object] of before?.objects ?? []) if (!objects.has(key)) objects.set(key, object)
    for (const fault of parsed.faults) {
      this.#metrics.rejected.inc({ kind: fault.key?.split('/')[0] ?? 'unknown' })
      const known = fault.key === undefined ? undefined : before?.objects.get(fault.key)
      const lastGood = known && !isStandIn(known) ? known : undefined
      const present = parsed.objects.some((object) => configKey(object) === fault.key)
      const standIn = lastGood || present ? undefined : parsed.standIns.get(fault.key ?? '')
      if (!present) for (const kept of [lastGood, standIn]) if (kept) objects.set(configKey(kept), kept)
      const stays =
        fault.key === undefined && (before?.objects.size ?? 0) > 0 ? '; what the file said before stays, except where it says otherwise' : ''
      this.#report('error', fault, stays || consequence(present ? undefined : lastGood, standIn))
    }
    for (const warning of parsed.warnings) this.#report('warn', warning, '')
    this.#metrics.invalid.inc(parsed.faults.length - (before?.faults ?? 0))
    this.#files.set(file, { content, signature: signature ?? '', faults: parsed.faults.length, objects })
    this.#tell(file, before?.objects ?? new Map(), objects, at)
  }

  async #parse(file: string, content: Content): Promise<ParsedFile> {
    const name = relative(this.#root, file)
    if ('fault' in content) return faultyFile(name, content.fault)
    if (content.text.length < pooledBytes) return parseConfigFile(name, content.text, this.#names)
    this.#pool ??= createPool(new URL(`./parse-task${import.meta.url.slice(-3)}`, import.meta.url), { threads: 1, queue: 16 })
    try {
      const task: ParseTask = { name, content: content.text, domain: this.#names.domain }
      return await this.#pool.run<ParsedFile>(task, parseDeadlineMs)
    } catch (error) {
      return faultyFile(name, `the file could not be parsed within ${parseDeadlineMs} ms: ${(error as Error).message}`)
    }
  }

  #tell(file: string, before: ReadonlyMap<string, ConfigObject>, after: ReadonlyMap<string, ConfigObject>, at: number): void {
    for (const [key, object] of after) {
      const owner = this.#owners.get(key)
      if (owner !== undefined && owner !== file && this.#files.get(owner)?.objects.has(key)) {
        this.#context.log('validation').warn(`${key} in ${object.origin} is left out: ${relative(this.#root, owner)} already defines it`)
        continue
      }
      this.#owners.set(key, file)
      this.#metrics.events.inc({ type: object.kind, event: before.has(key) ? 'update' : 'add' })
      this.#emit({ type: 'ConfigChanged', key, object, at })
    }
    for (const [key, object] of before) {
      if (after.has(key) || this.#owners.get(key) !== file) continue
      const heir = [...this.#files].find(([, known]) => known.objects.has(key))
      if (heir) this.#owners.set(key, heir[0])
      else this.#owners.delete(key)
      this.#metrics.events.inc({ type: object.kind, event: heir ? 'update' : 'delete' })
      this.#emit({ type: 'ConfigChanged', key, object: heir?.[1].objects.get(key), at })
    }
  }

  #report(
    level: 'error' | 'warn',
    fault: { file: string; document: number; key: string | undefined; path: string; reason: string },
    suffix: string,
  ): void {
    const field = fault.path === '' ? '' : `, field ${fault.path}`
    this.#context
      .log('validation')
      [level](`${fault.file}, document ${fault.document}${fault.key ? `, ${fault.key}` : ''}${field}: ${fault.reason}${suffix}`)
  }

  #unwatchable(directory: string, error: Error): void {
    this.#metrics.unwatchable.inc()
    this.#context.log('default').warn(`${directory} cannot be watched: ${error.message}; it is looked at every ${auditMs / 1000} s`)
  }

  #watchOne(file: string, changed: () => Promise<void>): void {
    if (file === '') return
    const look = () => void this.#enqueue(`reading ${file}`, changed)
    const watch = new DirectoryWatch(dirname(resolve(file)), false, {
      changed: (path) => {
        if (basename(path) === basename(file) || basename(path).startsWith('..')) look()
      },
      everything: look,
      unwatchable: (directory, error) => this.#unwatchable(directory, error),
    })
    this.#watches.push(watch)
    void watch.refresh()
  }

  async #readMesh(file: string, first: boolean): Promise<void> {
    const mesh = await this.#accept('mesh configuration', file, readMeshConfig)
    if (!mesh && !first) return
    this.#mesh = this.#meshChanged(mesh ?? defaultMeshConfig())
    this.#emit(this.#mesh)
  }

  /** `--trust-domain` overrules what the file says. */
  #meshChanged(mesh: MeshConfig): SourceEvent {
    const { trustDomain, meshConfig } = this.#context.config
    const at = monotonicMs()
    if (trustDomain === '' || trustDomain === mesh.trustDomain) return { type: 'MeshChanged', mesh, at }
    if (mesh.trustDomain !== defaultMeshConfig().trustDomain)
      this.#context
        .log('default')
        .warn(`mesh configuration ${meshConfig}: trustDomain ${mesh.trustDomain} has no effect: --trust-domain=${trustDomain} overrules it`)
    return { type: 'MeshChanged', mesh: { ...mesh, trustDomain }, at }
  }

  async #readNetworks(file: string): Promise<void> {
    const networks = await this.#accept('networks', file, readMeshNetworks)
    if (networks) await this.#resolveNetworks(networks)
  }

  /** Tells networks with the addresses of their gateways. Names that are not found are tried again at the next audit. */
  async #resolveNetworks(given: MeshNetworks): Promise<void> {
    const { networks, missing } = await resolveGateways(given)
    for (const reason of missing) this.#context.log('default').warn(`networks: gateway ${reason}; it is left out until it is found`)
    this.#unresolved = missing.length > 0 ? given : undefined
    this.#networks = { type: 'NetworksChanged', networks, at: monotonicMs() }
    this.#emit(this.#networks)
  }

  /** Reads a file of settings. Undefined when it is not there or cannot be used: what was in force stays, and that is told. */
  async #accept<T>(what: string, file: string, read: (content: string) => ReadResult<T>): Promise<T | undefined> {
    const content = file === '' ? undefined : await readContent(file)
    const before = this.#settings.get(file)
    if (content) this.#settings.set(file, content)
    else this.#settings.delete(file)
    if (sameContent(content, before)) return undefined
    const log = this.#context.log('default')
    const result = content === undefined ? { error: 'the file is gone' } : 'fault' in content ? { error: content.fault } : read(content.text)
    if ('error' in result) {
      log.error(`${what} ${file}: ${result.error}; what was in force stays`)
      return undefined
    }
    for (const warning of result.warnings) log.warn(`${what} ${file}: ${warning}`)
    return result.value
  }
}

/** Reads a file. Undefined when there is none; what is no file (a pipe, say) is none. */
async function readContent(file: string): Promise<Content | undefined> {
  try {
    const found = await stat(file)
    if (!found.isFile()) return undefined
    return found.size > fileLimits.bytes ? { fault: tooLarge } : { text: await readFile(file, 'utf8') }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    return code === 'ENOENT' || code === 'ENOTDIR' ? undefined : { fault: `cannot be read: ${message}` }
  }
}

function sameContent(one: Content | undefined, other: Content | undefined): boolean {
  if (one === undefined || other === undefined) return one === other
  return 'text' in one ? 'text' in other && one.text === other.text : 'fault' in other && one.fault === other.fault
}

/** Whether an object stands in for a policy that was never valid. */
const isStandIn = (object: ConfigObject): boolean => (object.spec as { invalid?: string }).invalid !== undefined

async function signatureOf(file: string): Promise<string | undefined> {
  const found = await stat(file, { bigint: true }).catch(() => undefined)
  return found && `${found.ino}|${found.size}|${found.mtimeNs}`
}

/** Whether part of a path starts with `..`, as the directories do that mounted volumes swap. */
const isInHiddenDirectory = (path: string): boolean => path.split('/').some((part) => part.startsWith('..'))

/** What follows from a fault, for the log. */
function consequence(lastGood: ConfigObject | undefined, standIn: ConfigObject | undefined): string {
  if (lastGood) return '; its last good state stays'
  return standIn ? '; until it is valid, the workloads that it selects are guarded by the strictest it could mean' : ''
}

const isConfigFile = (path: string): boolean => /\.(ya?ml|json)$/.test(path) && !basename(path).startsWith('.')

/** The watcher of configuration files as an actor. */
export const actor: ActorDefinition<FileWatcherConfig, never> = { kind: 'registry-watcher', start: (context) => new FileWatcher(context) }
