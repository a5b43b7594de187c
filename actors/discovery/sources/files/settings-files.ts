/**
 * The two settings files: mesh configuration and networks. Emits `MeshChanged` and `NetworksChanged` for valid content only; if a file
 * cannot be read or is gone, the settings in force stay, or the defaults if there were none.
 */
import { basename, dirname, resolve } from 'node:path'
import type { FileWatcherConfig } from '../../../../protocols/messages/config.ts'
import type { SourceEvent } from '../../../../protocols/messages/push.ts'
import type { MeshConfig, MeshNetworks } from '../../../../src/config/mesh-config.ts'
import { type ReadResult, readMeshConfig, readMeshNetworks } from '../../../../src/config/mesh-texts.ts'
import { monotonicMs } from '../../../runtime/clock.ts'
import { DirectoryWatch } from '../../../runtime/directory-watch.ts'
import { FileTimeouts } from '../../../runtime/file-timeouts.ts'
import type { Logger } from '../../../runtime/logger.ts'
import { WorkQueue } from '../../../runtime/work-queue.ts'
import { NetworkLookups, SettingText, type SettingTold, usableMesh } from '../given-settings.ts'
import type { gatewayResolver } from '../resolve-gateways.ts'
import { type Content, readFile, sameContent, signatureOf } from './file-content.ts'

/** The source of these settings and of the objects of `--configDir`, as events name it. */
export const filesSource = 'files'

/** Callbacks shared by the parts of the watcher of configuration files. */
export interface WatchParts {
  readonly log: Logger
  /** Called for every change. */
  emit(event: SourceEvent): void
  /** Called for directories that exist and cannot be watched. */
  unwatchable(directory: string, error: Error): void
  readonly settingRead?: SettingTold
}

/** Reads and watches the settings files. */
export class SettingsFiles {
  readonly #config: FileWatcherConfig
  readonly #parts: WatchParts
  readonly #lookups: NetworkLookups
  readonly #meshFile: SettingsFile<MeshConfig>
  readonly #networksFile: SettingsFile<MeshNetworks>
  readonly #work: WorkQueue
  readonly #watches: DirectoryWatch[] = []
  readonly #timeouts = new FileTimeouts()
  #mesh: SourceEvent | undefined
  #networks: SourceEvent | undefined
  #isClosed = false
  /** Why sources that the mesh configuration names are left out. */
  faults: readonly string[] = []

  /** `resolve` looks up gateways that are given by host name. */
  constructor(config: FileWatcherConfig, parts: WatchParts, resolve?: ReturnType<typeof gatewayResolver>) {
    this.#config = config
    this.#parts = parts
    this.#lookups = new NetworkLookups(parts.log, (networks) => this.#emitNetworks(networks), resolve)
    this.#work = new WorkQueue((what, reason) => parts.log('source').error(`${what}: ${reason}; the last state that was read stays in force`))
    this.#meshFile = new SettingsFile('mesh configuration', config.meshConfig, readMeshConfig, parts, this.#timeouts)
    this.#networksFile = new SettingsFile('networks', config.networksConfig, readMeshNetworks, parts, this.#timeouts)
  }

  /** Reads both files, then watches them. Resolves when the gateways have been looked up, too. */
  async start(): Promise<void> {
    await this.#work.add('reading the settings', async () => {
      await Promise.all([this.#readMesh(true), this.#readNetworks(true)])
    })
    await this.#lookups.lookUp()
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
    this.#lookups.retry()
  }

  /** Ends the watches. What is being read or looked up is dropped. */
  close(): void {
    this.#isClosed = true
    this.#work.close()
    this.#lookups.close()
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
    const { meshConfig: place } = this.#config
    const usable = usableMesh(mesh, place, this.#config, this.#parts.log)
    this.faults = [...this.#meshFile.warnings, ...usable.faults].map((fault) => `mesh configuration ${place}: ${fault}`)
    this.#mesh = { type: 'MeshChanged', source: filesSource, place, mesh: usable.mesh, at: monotonicMs() }
    this.#parts.emit(this.#mesh)
  }

  /** Reads the networks, and has their gateways looked up if they differ. The file is read in turn, nothing waits for the lookup. */
  async #networksMayDiffer(always: boolean): Promise<void> {
    if (await this.#readNetworks(always)) void this.#lookups.lookUp()
  }

  /** Resolves to whether the networks differ from the last ones. */
  async #readNetworks(always: boolean): Promise<boolean> {
    const networks = await this.#networksFile.changed(always)
    if (!networks) return false
    this.#lookups.give(networks)
    return true
  }

  #emitNetworks(networks: MeshNetworks): void {
    this.#networks = { type: 'NetworksChanged', source: filesSource, place: this.#config.networksConfig, networks, at: monotonicMs() }
    this.#parts.emit(this.#networks)
  }
}

function unusable(setting: 'mesh' | 'networks', path: string): SourceEvent | undefined {
  return path === '' ? undefined : { type: 'SettingUnusable', setting, source: filesSource, at: monotonicMs() }
}

/** One settings file and its last content. */
class SettingsFile<T> {
  readonly #path: string
  readonly #text: SettingText<T>
  readonly #timeouts: FileTimeouts
  #content: Content | undefined
  #signature: string | undefined

  constructor(what: string, path: string, read: (content: string) => ReadResult<T>, { log, settingRead }: WatchParts, timeouts: FileTimeouts) {
    this.#path = path
    this.#text = new SettingText(what, read, log, settingRead)
    this.#timeouts = timeouts
  }

  get trouble(): { readonly path: string; readonly reason: string } | undefined {
    return this.#text.trouble
  }

  /** Why its content was never known. Undefined if it was read before or does not exist. */
  get unknown(): string | undefined {
    return this.#text.unknown
  }

  /** The warnings about the content in use. */
  get warnings(): readonly string[] {
    return this.#text.warnings
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
    if (content) return this.#text.take(this.#path, content)
    this.#text.gone(this.#path, 'the file is gone')
    return undefined
  }
}
