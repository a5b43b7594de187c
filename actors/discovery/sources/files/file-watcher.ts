/**
 * The source actor for configuration files: a directory of objects, the mesh configuration, the networks. Emits `ConfigChanged`,
 * `MeshChanged` and `NetworksChanged` to the push queue, to the analyzer what cannot be used (`FaultsSeen`), and secrets to the writers that subscribed to them (`SecretsWanted`, `SecretChanged`). A periodic audit finds changes that the file system did not report.
 */

import { resolve } from 'node:path'
import type { SeenEvent } from '../../../../protocols/messages/analysis.ts'
import type { FileWatcherConfig } from '../../../../protocols/messages/config.ts'
import { unknownNote } from '../../../../protocols/messages/notes.ts'
import type { SourceEvent } from '../../../../protocols/messages/push.ts'
import type { GatewaySecret, SecretCommand, SecretEvent } from '../../../../protocols/messages/secrets.ts'
import type { Features } from '../../../../src/config/features.ts'
import { configKey } from '../../../../src/config/kinds.ts'
import { readOptOuts } from '../../../../src/config/opt-outs.ts'
import { accountsAnnotation } from '../../../../src/config/secret-document.ts'
import { mayReadSecret } from '../../../../src/identity/access.ts'
import { count } from '../../../../src/model/counts.ts'
import { meshNames } from '../../../../src/names/mesh-names.ts'
import type { ActorContext, ActorDefinition, Behaviour } from '../../../runtime/actor.ts'
import { wallClockMs } from '../../../runtime/clock.ts'
import type { Peer } from '../../../runtime/link.ts'
import { Counter } from '../../../runtime/metrics.ts'
import { every, type Timer } from '../../../runtime/timers.ts'
import { sendEvent } from '../../events/source-events.ts'
import { SecretDelivery } from '../secret-delivery.ts'
import { SeenReports } from '../seen-reports.ts'
import { measureSource } from '../source-metrics.ts'
import { ObjectDirectory } from './object-directory.ts'
import { SettingsFiles, type WatchParts } from './settings-files.ts'

/** Interval of the audit, in milliseconds. */
const auditMs = 30_000
/** Maximum number of files in a log line or note. */
const maxNamed = 20

/** Maximum number of faults and warnings on the debug page. */
const maxProblems = 1000

/** Content of the debug page about files. */
export interface FilesPage {
  /** Why the process is not ready: files and directories that could not be read since the start. */
  readonly waiting: readonly string[]
  /** Files and directories that cannot be read or used at present. Their last good state stays in force. */
  readonly unreadable: readonly { readonly path: string; readonly reason: string }[]
  /** Faults and warnings of documents at present, as they were logged: at most 100 for each file and 1000 in all. */
  readonly problems: readonly string[]
  /** The source whose files these are, what it reads, and whether every object of it could be read and identified. */
  readonly sources: readonly { readonly source: string; readonly directory: string; readonly files: number; readonly isComplete: boolean }[]
  /** Policies that cannot be used and are replaced by the strictest policy that they may mean. */
  readonly standIns: readonly { readonly key: string; readonly source: string; readonly place: string; readonly reason: string }[]
}

type Sent = SourceEvent | SecretEvent | SeenEvent

/** Reads a directory and, as the source `files`, the settings files. */
export class FileWatcher implements Behaviour<SecretCommand, Sent> {
  /**
   * `reload` reads every file again, changed or not; `secrets` lists the secrets without their content; `files` is the page about files.
   */
  readonly asks = {
    reload: () => void this.#reload(),
    secrets: () => this.#loaded.then(() => this.#secrets.summaries()),
    files: (): Promise<FilesPage> => this.#loaded.then(() => this.#page()),
  }
  readonly #context: ActorContext<FileWatcherConfig>
  readonly #settings: SettingsFiles
  readonly #objects: ObjectDirectory
  readonly #secrets: SecretDelivery
  /** Tells the analyzer what cannot be used; undefined: there is none. */
  readonly #seen: SeenReports | undefined
  readonly #audit: Timer
  /** The push queue. It is sent events once all files have been read. */
  #queue: Peer<SourceEvent> | undefined
  /** Whether the last replay was incomplete, so that nothing was withdrawn. */
  #isReplayIncomplete = false
  /** Whether readiness waits because something could not be read since the start. */
  #holdsReadiness = true
  #loaded: Promise<unknown>

  constructor(context: ActorContext<FileWatcherConfig>) {
    this.#context = context
    const { config, log, metrics } = context
    this.#holdsReadiness = !config.allowUnreadable
    const unwatchable = new Counter({ name: 'num_file_watcher_failures_total', help: 'failures to add file watchers', registers: [metrics] })
    const parts: WatchParts = {
      log,
      settingRead: (what, place, found) => this.#seen?.setting(what, place, found),
      emit: (event) => {
        if (this.#queue) sendEvent(this.#queue, event)
        if (event.type === 'MeshChanged' || event.type === 'NetworksChanged') this.#repeatReplay()
      },
      unwatchable: (directory, error) => {
        unwatchable.inc()
        log('default').warn(`${directory} cannot be watched: ${error.message}; it is checked every ${auditMs / 1000} s`)
      },
    }
    const root = config.configDir === '' ? '' : resolve(config.configDir)
    this.#settings = new SettingsFiles(config, parts)
    const { MESH_DOMAIN, MESH_POLICY_OPT_OUTS, REVISION, PILOT_ENABLE_ANALYSIS } = config.features as Features
    this.#seen = PILOT_ENABLE_ANALYSIS ? new SeenReports(config.source) : undefined
    const read = { names: meshNames(MESH_DOMAIN), optOuts: readOptOuts(MESH_POLICY_OPT_OUTS), revision: REVISION, source: config.source }
    this.#secrets = new SecretDelivery(
      (key) => this.#objects.isAbsent(key),
      (reader, secret) => mayReadSecret(reader, secret, read.optOuts.has('secret-accounts')),
      ({ account }, secret) => log('validation').warn(refusedSecretLine(account, secret, MESH_DOMAIN)),
      metrics,
    )
    this.#objects = new ObjectDirectory(root, read, metrics, {
      ...parts,
      read: (file, parsed) => this.#seen?.read(file, parsed),
      secret: (key, secret) => {
        const until = secret?.validity.pair?.notAfter
        if (until !== undefined && until < wallClockMs())
          log('validation').warn(
            `${key} in ${secret?.place}: its certificate has expired on ${new Date(until).toISOString()}; clients will refuse it`,
          )
        log('cache').debug(secret ? `${key} of ${secret.place} is held for gateways` : `${key} is held no longer`)
        this.#secrets.set(key, secret)
      },
      filesRead: () => {
        this.#secrets.answerPending()
        this.#repeatReplay()
      },
    })
    measureSource(config.source, { size: () => this.#objects.size, isComplete: () => this.#isComplete }, metrics)
    this.#loaded = Promise.all([this.#settings.start(), this.#objects.start()]).then(() => {
      if (root !== '') log('source').info(`${count(this.#objects.objects, 'object')} from ${count(this.#objects.size, 'file')} of ${root}`)
      this.#logUnknown()
      this.#seen?.complete()
    })
    this.#audit = every(auditMs, () => {
      this.#settings.audit()
      this.#objects.audit()
      this.#repeatReplay()
    }).unref()
  }

  linked(peer: Peer<Sent>): void {
    if (peer.kind === 'push-queue') void this.#loaded.then(() => this.#replay(peer))
    this.#seen?.linked(peer)
  }

  unlinked(peer: Peer): void {
    this.#seen?.unlinked(peer)
    void this.#loaded.then(() => this.#secrets.unlinked(peer))
  }

  receive(command: SecretCommand, from: Peer): void {
    void this.#loaded.then(() => this.#secrets.wanted(from as Peer<SecretEvent>, command))
  }

  async drain(): Promise<void> {
    this.#audit.cancel()
    this.#settings.close()
    await this.#objects.close()
  }

  async #reload(): Promise<void> {
    await this.#loaded
    const [files] = await Promise.all([this.#objects.reload(), this.#settings.reload()])
    this.#repeatReplay()
    this.#context.log('source').info(`configuration files read again: ${files}, the mesh configuration and the networks`)
  }

  /** Logs what could not be read at the start, and the consequence. */
  #logUnknown(): void {
    const unknown = this.#unknown
    const log = this.#context.log('source')
    const what = unknown.slice(0, maxNamed).join('; ') + (unknown.length > maxNamed ? `; and ${unknown.length - maxNamed} more` : '')
    if (!this.#holdsReadiness && unknown.length > 0)
      log.warn(`--allowUnreadableConfig is set: the process goes on without the configuration in these: ${what}`)
    else if (unknown.length > 0)
      log.error(
        `these cannot be read and may contain policies: ${what}; a process that starts is not ready until they are fixed or removed, or goes on without them with --allowUnreadableConfig`,
      )
    this.#holdsReadiness &&= unknown.length > 0
    this.#noteUnknown()
  }

  get #unknown(): string[] {
    return [...this.#settings.unknown, ...this.#objects.unknown]
  }

  #noteUnknown(): void {
    this.#context.note(unknownNote, this.#holdsReadiness ? this.#unknown.slice(0, maxNamed) : [])
  }

  /**
   * Repeats an incomplete replay once every object is known, so that objects that are gone get withdrawn; and once readiness no longer
   * waits.
   */
  #repeatReplay(): void {
    if (!this.#queue || !this.#isReplayIncomplete) return
    const waited = this.#holdsReadiness
    this.#holdsReadiness &&= this.#unknown.length > 0
    if (waited) this.#noteUnknown()
    if (waited !== this.#holdsReadiness || this.#objects.isComplete) this.#replay(this.#queue)
  }

  get #isComplete(): boolean {
    return !this.#holdsReadiness && this.#objects.isComplete
  }

  #page(): FilesPage {
    return {
      waiting: this.#holdsReadiness ? this.#unknown : [],
      unreadable: [...this.#settings.troubles(), ...this.#objects.troubles()],
      problems: [...this.#settings.faults, ...this.#objects.problems()].slice(0, maxProblems),
      sources: [
        { source: this.#context.config.source, directory: this.#context.config.configDir, files: this.#objects.size, isComplete: this.#isComplete },
      ],
      standIns: this.#objects.standIns(),
    }
  }

  #replay(queue: Peer<SourceEvent>): void {
    this.#queue = queue
    const replay = queue.replay()
    for (const event of this.#settings.events()) sendEvent(queue, event)
    for (const event of this.#objects.events()) sendEvent(queue, event)
    this.#isReplayIncomplete = !this.#isComplete
    // An unfinished replay keeps a starting process from becoming ready, and leaves a running push queue's state unchanged.
    if (this.#holdsReadiness) return
    if (this.#isReplayIncomplete)
      this.#context
        .log('source')
        .warn(
          'some configuration documents cannot be read or identified: objects that were deleted since an earlier start stay in force until all can be',
        )
    replay.finish(!this.#isReplayIncomplete)
  }
}

/** The log line about gateways of a service account that request a Secret which is not for them. */
function refusedSecretLine(account: string, { namespace, name, place, serviceAccounts }: GatewaySecret, domain: string): string {
  const said = serviceAccounts?.length ? `names ${serviceAccounts.slice(0, 10).join(', ')} only` : serviceAccounts ? 'is not valid' : 'is missing'
  return `${configKey({ kind: 'Secret', namespace, name })} in ${place} is not for the service account ${account} of gateways that request it: its annotation ${accountsAnnotation(domain)} ${said}; listeners and clusters that need it refuse connections (docs/resources.md, K7)`
}

/** The actor definition of the watcher of configuration files. */
export const actor: ActorDefinition<FileWatcherConfig, SecretCommand, Sent> = {
  kind: 'source',
  start: (context) => new FileWatcher(context),
}
