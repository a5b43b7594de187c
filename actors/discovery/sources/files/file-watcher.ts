/**
 * The source actor for configuration files: a directory of objects, the mesh configuration, the networks. Emits `ConfigChanged`,
 * `MeshChanged` and `NetworksChanged` to the push queue. A periodic look finds what the file system did not tell of.
 */
import { resolve } from 'node:path'
import type { FileWatcherConfig } from '../../../../protocols/messages/config.ts'
import type { SourceEvent } from '../../../../protocols/messages/push.ts'
import type { Features } from '../../../../src/config/features.ts'
import { meshNames } from '../../../../src/names/mesh-names.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../../runtime/actor.ts'
import type { Peer } from '../../../runtime/link.ts'
import { Counter } from '../../../runtime/metrics.ts'
import { every, type Timer } from '../../../runtime/timers.ts'
import { tellEvent } from '../../source-events.ts'
import { ObjectDirectory } from './object-directory.ts'
import { SettingsFiles, type WatchParts } from './settings-files.ts'

/** How often everything is looked at, in milliseconds. */
const auditMs = 30_000

class FileWatcher implements Behaviour<never, SourceEvent> {
  /** `reload` has every file read again, changed or not. */
  readonly asks = { reload: () => void this.#reload() }
  readonly #context: ActorContext<FileWatcherConfig>
  readonly #settings: SettingsFiles
  readonly #objects: ObjectDirectory
  readonly #audit: Timer
  /** Told things once everything has been read. */
  #queue: Peer<SourceEvent> | undefined
  /** Whether the last replay could not tell every object, so that nothing was withdrawn. */
  #owesReplay = false
  #loaded: Promise<unknown>

  constructor(context: ActorContext<FileWatcherConfig>) {
    this.#context = context
    const { config, log, metrics } = context
    const unwatchable = new Counter({ name: 'num_file_watcher_failures_total', help: 'failures to add file watchers', registers: [metrics] })
    const parts: WatchParts = {
      log,
      tell: (event) => {
        if (this.#queue) tellEvent(this.#queue, event)
      },
      unwatchable: (directory, error) => {
        unwatchable.inc()
        log('default').warn(`${directory} cannot be watched: ${error.message}; it is looked at every ${auditMs / 1000} s`)
      },
    }
    const root = config.configDir === '' ? '' : resolve(config.configDir)
    this.#settings = new SettingsFiles(config, parts)
    this.#objects = new ObjectDirectory(root, meshNames((config.features as Features).MESH_DOMAIN), metrics, parts)
    this.#loaded = Promise.all([this.#settings.start(), this.#objects.start()])
    this.#audit = every(auditMs, () => {
      this.#settings.audit()
      this.#objects.audit()
      this.#replayOwed()
    }).unref()
  }

  linked(queue: Peer<SourceEvent>): void {
    void this.#loaded.then(() => this.#replay(queue))
  }

  receive(): void {}

  async drain(): Promise<void> {
    this.#audit.cancel()
    this.#settings.close()
    await this.#objects.close()
  }

  async #reload(): Promise<void> {
    await this.#loaded
    const [files] = await Promise.all([this.#objects.reload(), this.#settings.reload()])
    this.#replayOwed()
    this.#context.log('source').info(`configuration files read again: ${files}, the mesh configuration and the networks`)
  }

  /** Says everything again once all of it can be told, so that what is gone is withdrawn. */
  #replayOwed(): void {
    if (this.#queue && this.#owesReplay && this.#objects.isComplete) this.#replay(this.#queue)
  }

  #replay(queue: Peer<SourceEvent>): void {
    this.#queue = queue
    const replay = queue.replay()
    for (const event of this.#settings.events()) tellEvent(queue, event)
    for (const event of this.#objects.events()) tellEvent(queue, event)
    this.#owesReplay = !this.#objects.isComplete
    if (this.#owesReplay)
      this.#context
        .log('source')
        .warn('not every configuration document can be told: objects that are gone since an earlier start stay until it can be')
    replay.finish(!this.#owesReplay)
  }
}

/** The watcher of configuration files as an actor. */
export const actor: ActorDefinition<FileWatcherConfig, never, SourceEvent> = {
  kind: 'registry-watcher',
  start: (context) => new FileWatcher(context),
}
