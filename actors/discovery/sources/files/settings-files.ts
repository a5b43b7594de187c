/**
 * The two settings files: mesh configuration and networks. Emits `MeshChanged` and `NetworksChanged` for valid content only; if a file
 * cannot be read or is gone, the settings in force stay, or the defaults if there were none.
 */
import { basename, dirname, resolve } from 'node:path'
import type { FileWatcherConfig } from '../../../../protocols/messages/config.ts'
import type { SourceEvent } from '../../../../protocols/messages/push.ts'
import { separateSources } from '../../../../src/config/config-sources.ts'
import {
  defaultMeshConfig,
  type MeshConfig,
  type MeshNetworks,
  type ReadResult,
  readMeshConfig,
  readMeshNetworks,
} from '../../../../src/config/mesh-config.ts'
import { monotonicMs } from '../../../runtime/clock.ts'
import { DirectoryWatch } from '../../../runtime/directory-watch.ts'
import { FileTimeouts } from '../../../runtime/file-timeouts.ts'
import type { Logger } from '../../../runtime/logger.ts'
import { WorkQueue } from '../../../runtime/work-queue.ts'
import { type Content, readFile, sameContent, signatureOf } from './file-content.ts'
import { gatewayResolver } from './resolve-gateways.ts'

/** The source of these settings and of the objects of `--configDir`, as events name it. */
export const filesSource = 'files'

/** Callbacks shared by the parts of the watcher of configuration files. */
export interface WatchParts {
  readonly log: Logger
  /** Called for every change. */
  emit(event: SourceEvent): void
  /** Called for directories that exist and cannot be watched. */
  unwatchable(directory: string, error: Error): void
}

/** Reads and watches the settings files. */
export class SettingsFiles {
  readonly #config: FileWatcherConfig
  readonly #parts: WatchParts
  readonly #resolve: ReturnType<typeof gatewayResolver>
  readonly #meshFile: SettingsFile<MeshConfig>
  readonly #networksFile: SettingsFile<MeshNetworks>
  readonly #work: WorkQueue
  readonly #watches: DirectoryWatch[] = []
  readonly #timeouts = new FileTimeouts()
  #mesh: SourceEvent | undefined
  #networks: SourceEvent | undefined
  /** The networks as read from the file, and whether the host names of their gateways are being looked up. */
  #given: MeshNetworks | undefined
  #isResolving = false
  /** Gateways whose host names were not found, with reason and consequence. */
  #missing: readonly string[] = []
  #isClosed = false
  /** Why sources that the mesh configuration names are left out. */
  faults: readonly string[] = []

  /** `resolve` looks up gateways that are given by host name. */
  constructor(config: FileWatcherConfig, parts: WatchParts, resolve = gatewayResolver()) {
    this.#config = config
    this.#parts = parts
    this.#resolve = resolve
    this.#work = new WorkQueue((what, reason) => parts.log('source').error(`${what}: ${reason}; the last state that was read stays in force`))
    this.#meshFile = new SettingsFile('mesh configuration', config.meshConfig, readMeshConfig, parts.log, this.#timeouts)
    this.#networksFile = new SettingsFile('networks', config.networksConfig, readMeshNetworks, parts.log, this.#timeouts)
  }

  /** Reads both files, then watches them. Resolves when the gateways have been looked up, too. */
  async start(): Promise<void> {
    await this.#work.add('reading the settings', async () => {
      await Promise.all([this.#readMesh(true), this.#readNetworks(true)])
    })
    await this.#resolveNetworks()
    if (this.#isClosed) return
    this.#watch(this.#config.meshConfig, () => this.#readMesh(true))
    this.#watch(this.#config.networksConfig, () => this.#networksMayDiffer(true))
  }

  /** The last emitted events. A file that was not usable yet is mentioned, so that what an earlier incarnation of the actor gave stays. */
  events(): SourceEvent[] {
    const { meshConfig, networksConfig, source } = this.#config
    // Without a file it is said that there is no mesh configuration, since the names of the mesh wait until that is known.
    const none: SourceEvent = { type: 'MeshChanged', source: filesSource, place: '', mesh: undefined, at: monotonicMs() }
    const mesh = this.#mesh ?? (meshConfig === '' && source === filesSource ? none : unusable('mesh', meshConfig))
    return [mesh, this.#networks ?? unusable('networks', networksConfig)].flatMap((event) => event ?? [])
  }

  /** Files that exist and could not be used since the start, with reasons. */
  get unknown(): string[] {
    return [this.#meshFile, this.#networksFile].flatMap((file) => file.unknown ?? [])
  }

  /** Files that cannot be used at present. */
  troubles(): { readonly path: string; readonly reason: string }[] {
    return [this.#meshFile, this.#networksFile].flatMap((file) => file.trouble ?? [])
  }

  /** Reads both files again, changed or not. */
  async reload(): Promise<void> {
    await this.#work.add('reading the settings again', async () => {
      await this.#readMesh(true)
      await this.#networksMayDiffer(true)
    })
  }

  /** Finds changes that the file system did not report, and looks up gateways again that were not found. */
  audit(): void {
    for (const watch of this.#watches) void watch.audit().catch(() => undefined)
    void this.#work.add('checking the settings files', async () => {
      await this.#readMesh(false)
      await this.#networksMayDiffer(false)
    })
    if (this.#missing.length > 0) this.#lookUpGateways()
  }

  /** Ends the watches. What is being read or looked up is dropped. */
  close(): void {
    this.#isClosed = true
    this.#work.close()
    for (const watch of this.#watches) watch.close()
  }

  #watch(file: string, changed: () => Promise<void>): void {
    if (file === '') return
    const read = () => void this.#work.add(`reading ${file}`, changed)
    const listener = {
      changed: (path: string) => {
        if (basename(path) === basename(file) || basename(path).startsWith('..')) read()
      },
      everything: read,
      unwatchable: (directory: string, error: Error) => this.#parts.unwatchable(directory, error),
    }
    const watch = new DirectoryWatch(dirname(resolve(file)), false, listener, this.#timeouts)
    this.#watches.push(watch)
    void watch.refresh()
  }

  async #readMesh(always: boolean): Promise<void> {
    const mesh = await this.#meshFile.changed(always)
    if (!mesh || this.#isClosed) return
    const { trustDomain, meshConfig } = this.#config
    if (trustDomain !== '' && mesh.trustDomain !== trustDomain && mesh.trustDomain !== defaultMeshConfig().trustDomain)
      this.#parts
        .log('default')
        .warn(`mesh configuration ${meshConfig}: trustDomain ${mesh.trustDomain} has no effect: --trust-domain=${trustDomain} overrules it`)
    const usable = { ...mesh, ...this.#sourcesOf(mesh) }
    this.#mesh = { type: 'MeshChanged', source: filesSource, place: meshConfig, mesh: usable, at: monotonicMs() }
    this.#parts.emit(this.#mesh)
  }

  /** The sources that the mesh configuration names, without those whose directories are read already; these are reported. */
  #sourcesOf({ configSources }: MeshConfig): Pick<MeshConfig, 'configSources'> {
    const { configDir, meshConfig } = this.#config
    const { usable, faults } = separateSources(configSources ?? [], configDir === '' ? '' : resolve(configDir))
    this.faults = [...this.#meshFile.warnings, ...faults].map((fault) => `mesh configuration ${meshConfig}: ${fault}`)
    for (const fault of faults) this.#parts.log('default').warn(`mesh configuration ${meshConfig}: ${fault}`)
    return configSources ? { configSources: usable } : {}
  }

  /** Reads the networks, and has their gateways looked up if they differ. The file is read in turn, nothing waits for the lookup. */
  async #networksMayDiffer(always: boolean): Promise<void> {
    if (await this.#readNetworks(always)) this.#lookUpGateways()
  }

  /** Resolves to whether the networks differ from the last ones. */
  async #readNetworks(always: boolean): Promise<boolean> {
    const networks = await this.#networksFile.changed(always)
    if (!networks) return false
    this.#given = networks
    this.#isResolving = false
    return true
  }

  #lookUpGateways(): void {
    this.#resolveNetworks().catch((error: Error) => this.#parts.log('default').error(`networks: gateways cannot be looked up: ${error.message}`))
  }

  /** Looks up the gateways and emits the networks. Names that are not found are retried at the next audit. */
  async #resolveNetworks(): Promise<void> {
    const given = this.#given
    if (!given || this.#isResolving || this.#isClosed) return
    this.#isResolving = true
    const { networks, missing } = await this.#resolve(given)
    // The file changed during the lookup.
    if (this.#given !== given || this.#isClosed) return
    this.#isResolving = false
    for (const reason of missing) if (!this.#missing.includes(reason)) this.#parts.log('default').warn(`networks: gateway ${reason}`)
    this.#missing = missing
    this.#networks = { type: 'NetworksChanged', source: filesSource, place: this.#config.networksConfig, networks, at: monotonicMs() }
    this.#parts.emit(this.#networks)
  }
}

function unusable(setting: 'mesh' | 'networks', path: string): SourceEvent | undefined {
  return path === '' ? undefined : { type: 'SettingUnusable', setting, source: filesSource, at: monotonicMs() }
}

/** One settings file and its last content. */
class SettingsFile<T> {
  readonly #what: string
  readonly #path: string
  readonly #read: (content: string) => ReadResult<T>
  readonly #log: Logger
  readonly #timeouts: FileTimeouts
  #content: Content | undefined
  #signature: string | undefined
  /** Why it cannot be used at present. */
  #reason: string | undefined
  /** The warnings about the content in use. */
  warnings: readonly string[] = []
  /** Whether it could be used at any time. */
  #isKnown = false

  constructor(what: string, path: string, read: (content: string) => ReadResult<T>, log: Logger, timeouts: FileTimeouts) {
    this.#timeouts = timeouts
    this.#what = what
    this.#path = path
    this.#read = read
    this.#log = log
  }

  get trouble(): { readonly path: string; readonly reason: string } | undefined {
    return this.#reason === undefined ? undefined : { path: this.#path, reason: this.#reason }
  }

  /** Why its content was never known. Undefined if it was read before or does not exist. */
  get unknown(): string | undefined {
    return this.#isKnown || this.#reason === undefined ? undefined : `${this.#what} ${this.#path}: ${this.#reason}`
  }

  /**
   * Returns the value of the file if its content is new and valid; logs the reason if it is invalid. With `always`, the file is read even
   * if its signature is unchanged.
   */
  async changed(always: boolean): Promise<T | undefined> {
    if (this.#path === '') return undefined
    const seen = always ? '' : await signatureOf(this.#path, this.#timeouts)
    if (seen !== '' && seen === this.#signature) return undefined
    const { content, signature } = await readFile(this.#path, this.#timeouts)
    const before = this.#content
    this.#content = content
    this.#signature = signature
    if (sameContent(content, before)) return undefined
    const log = this.#log('default')
    const result = content === undefined ? { error: 'the file is gone' } : 'fault' in content ? { error: content.fault } : this.#read(content.text)
    this.#reason = 'error' in result ? result.error : undefined
    if ('error' in result) {
      log.error(`${this.#what} ${this.#path}: ${result.error}; the settings in force stay`)
      return undefined
    }
    this.#isKnown = true
    this.warnings = result.warnings
    for (const warning of result.warnings) log.warn(`${this.#what} ${this.#path}: ${warning}`)
    return result.value
  }
}
