/**
 * The sources that `configSources` of the mesh configuration names: starts the actor of each when the mesh configuration first names it, and
 * removes it when it names it no longer. Other sources, and the objects that they define, are not concerned.
 */
import { configSourcesNote, syncedNote } from '../../protocols/messages/notes.ts'
import { actorOfSource, type ConfigSource } from '../../src/config/config-sources.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Supervisor } from '../runtime/supervisor.ts'
import { after, type Timer } from '../runtime/timers.ts'
import type { LateActor } from '../runtime/wiring.ts'

/** How long a source that is removed may take to end, in milliseconds. */
const drainMs = 5000

/**
 * How long a source stays that the mesh configuration no longer names, in milliseconds: a file that is being written is empty for a moment,
 * which must not withdraw objects.
 */
const lingerMs = 1000

/** Follows the mesh configuration. */
export class ConfiguredSources {
  readonly #log: Logger
  #supervisor: Supervisor | undefined
  #actorOf: ((source: () => ConfigSource) => LateActor) | undefined
  /** The sources of the mesh configuration, by the name of the actor. */
  #wanted: ReadonlyMap<string, ConfigSource> = new Map()
  /** The actors that were started and not stopped, with their sources. */
  readonly #running = new Map<string, ConfigSource>()
  /** The actors that are no longer wanted and will be stopped. */
  readonly #lingering = new Map<string, Timer>()
  /** The actors that are being removed. */
  readonly #leaving = new Set<string>()
  #synced: ReadonlySet<string> | undefined

  constructor(log: Logger) {
    this.#log = log
  }

  /** The sources that a push queue of this process has had the whole state of; undefined before the first push. */
  get syncedBefore(): readonly string[] | undefined {
    return this.#synced && [...this.#synced]
  }

  /** Follows the mesh configuration from now on. `actorOf` returns the actor for a source, which is asked for at each of its starts. */
  follow(supervisor: Supervisor, actorOf: (source: () => ConfigSource) => LateActor): void {
    this.#supervisor = supervisor
    this.#actorOf = actorOf
    void this.#next()
  }

  async #next(): Promise<void> {
    for (;;) {
      await this.#supervisor?.changed()
      const notes = (name: string) => this.#supervisor?.states().find((state) => state.name === name)?.notes
      const synced = notes('push-queue')?.get(syncedNote) as readonly string[] | undefined
      if (synced) this.#synced = new Set([...(this.#synced ?? []), ...synced])
      // Without a note the push queue does not know the mesh configuration yet, since the start or a restart: what was named before stays.
      const sources = notes('push-queue')?.get(configSourcesNote) as readonly ConfigSource[] | undefined
      if (sources) this.#wanted = new Map(sources.map((source) => [actorOfSource(source), source]))
      this.#startAndStop()
    }
  }

  #startAndStop(): void {
    for (const name of this.#running.keys()) {
      const timer = this.#lingering.get(name)
      if (!this.#wanted.has(name)) this.#lingering.set(name, timer ?? after(lingerMs, () => this.#stop(name)).unref())
      else if (timer) {
        timer.cancel()
        this.#lingering.delete(name)
      }
    }
    for (const [name, source] of this.#wanted) {
      const running = this.#running.get(name)
      if (running) this.#settingsMayDiffer(name, running, source)
      else if (!this.#leaving.has(name)) this.#start(name, source)
    }
  }

  /** Starts the actor of a source anew whose settings differ: its objects stay until it has read them again. */
  #settingsMayDiffer(name: string, running: ConfigSource, source: ConfigSource): void {
    if (JSON.stringify(running) === JSON.stringify(source)) return
    this.#running.set(name, source)
    this.#log('source').info(`the settings of ${source.address} have changed: the actor ${name} is started again`)
    this.#supervisor?.restart(name)
  }

  #start(name: string, source: ConfigSource): void {
    const actor = this.#actorOf?.(() => this.#running.get(name) ?? source)
    if (!actor) return
    this.#running.set(name, source)
    this.#log('source').info(`configuration is read from ${source.address} too (actor ${name})`)
    this.#supervisor?.start(actor.spec, actor.peers)
  }

  #stop(name: string): void {
    this.#lingering.delete(name)
    this.#running.delete(name)
    this.#leaving.add(name)
    this.#log('source').info(`the mesh configuration no longer names the source of the actor ${name}: its objects are removed`)
    void this.#supervisor?.stop(name, drainMs).then(() => {
      this.#leaving.delete(name)
      this.#synced = this.#synced && new Set([...this.#synced].filter((each) => each !== name))
      // It may have been named again meanwhile.
      this.#startAndStop()
    })
  }
}
