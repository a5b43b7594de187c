/**
 * The part of a cluster's watcher that follows the ConfigMap of the mesh configuration and the networks (docs/operation.md, C15): tells valid
 * texts (`MeshChanged`, `NetworksChanged`). What cannot be used, or is gone, keeps the last good one (`SettingUnusable`).
 */
import type { ClusterSettings } from '../../../../protocols/messages/orchestrator.ts'
import type { SourceEvent } from '../../../../protocols/messages/push.ts'
import type { MeshConfig, MeshNetworks } from '../../../../src/config/mesh-config.ts'
import { readMeshConfig, readMeshNetworks } from '../../../../src/config/mesh-texts.ts'
import { namedResource } from '../../../../src/orchestrator/resources.ts'
import { cutSettings, type SettingsObject, settingsNames } from '../../../../src/orchestrator/settings-object.ts'
import { monotonicMs } from '../../../runtime/clock.ts'
import type { Logger } from '../../../runtime/logger.ts'
import { every, type Timer } from '../../../runtime/timers.ts'
import { NetworkLookups, SettingText, type SettingTold, usableMesh } from '../given-settings.ts'
import type { Follower, WatcherPart } from './watcher-part.ts'

/** Interval at which gateways that were not found are looked up again, in milliseconds. */
const lookupMs = 30_000

/** What the part reports to. */
export interface SettingsEvents {
  /** The source as events name it. */
  readonly source: string
  readonly log: Logger
  send(event: SourceEvent): void
  readonly told: SettingTold | undefined
  /** What {@link WatcherPart.waitsFor} says may differ. */
  mayDiffer(): void
}

/** A setting of the ConfigMap: the text that was last taken, and where that was. */
interface Setting {
  readonly key: keyof SettingsObject
  readonly setting: 'mesh' | 'networks'
  readonly text: SettingText<MeshConfig | MeshNetworks>
  taken: { readonly place: string; readonly content: string } | undefined
}

/** Follows the settings of a cluster. */
export class SettingsPart implements WatcherPart {
  readonly followers: readonly Follower<SettingsObject>[]
  readonly #settings: ClusterSettings
  readonly #events: SettingsEvents
  readonly #mesh: Setting
  readonly #networks: Setting
  readonly #lookups: NetworkLookups
  readonly #retries: Timer
  /** The names of the ConfigMaps, the first one that exists counts. */
  readonly #names: readonly string[]
  /** The ConfigMaps that exist, and the names of those that are known to exist or not. */
  readonly #objects = new Map<string, SettingsObject>()
  readonly #listed = new Set<string>()
  /** The place of the last valid networks; empty: there were none. */
  #networksPlace = ''
  #meshEvent: SourceEvent | undefined
  #networksEvent: SourceEvent | undefined
  #isDecided = false
  /** The settings of which the push queue was told that they have no value. */
  readonly #said = new Set<'mesh' | 'networks'>()

  constructor(settings: ClusterSettings, revision: string, events: SettingsEvents) {
    this.#settings = settings
    this.#events = events
    this.#mesh = {
      key: 'mesh',
      setting: 'mesh',
      text: new SettingText('mesh configuration', readMeshConfig, events.log, events.told),
      taken: undefined,
    }
    this.#networks = {
      key: 'meshNetworks',
      setting: 'networks',
      text: new SettingText('networks', readMeshNetworks, events.log, events.told),
      taken: undefined,
    }
    this.#lookups = new NetworkLookups(events.log, (networks) => this.#found(networks))
    this.#retries = every(lookupMs, () => this.#lookups.retry()).unref()
    this.#names = settingsNames(revision)
    this.followers = this.#names.map((name) => ({
      resource: namedResource('ConfigMap', 'configmaps', settings.namespace, name),
      isAwaited: true,
      cut: cutSettings,
      set: (_, object) => {
        if (object) this.#objects.set(name, object)
        else this.#objects.delete(name)
      },
      listed: () => void this.#listed.add(name),
    }))
  }

  replay(): void {
    this.#said.clear()
    for (const event of [this.#meshEvent, this.#networksEvent]) if (event) this.#events.send(event)
    if (this.#isDecided) this.#sayUnknown()
  }

  /** Takes the ConfigMap that counts, once it is known of each whether it exists. */
  settled(): void {
    if (this.#listed.size < this.#names.length) return
    const name = this.#names.find((each) => this.#objects.has(each)) ?? this.#names[0] ?? ''
    const place = `ConfigMap ${this.#settings.namespace}/${name}`
    const object = this.#objects.get(name)
    const mesh = this.#take(this.#mesh, place, object)
    if (mesh) {
      const usable = usableMesh(mesh as MeshConfig, place, this.#settings, this.#events.log)
      this.#meshEvent = { type: 'MeshChanged', source: this.#events.source, place, mesh: usable.mesh, at: monotonicMs() }
      this.#events.send(this.#meshEvent)
    }
    const networks = this.#take(this.#networks, place, object)
    if (networks) {
      this.#networksPlace = place
      this.#lookups.give(networks as MeshNetworks)
      void this.#lookups.lookUp()
    }
    this.#isDecided = true
    this.#sayUnknown()
  }

  /** A setting that exists and cannot be used is waited for, since another trust domain or network would be wrong; so are host names. */
  waitsFor(): readonly string[] {
    const unknown = this.#settings.allowUnreadable ? [] : [this.#mesh, this.#networks].flatMap(({ text }) => text.unknown ?? [])
    const isLookingUp = this.#networksPlace !== '' && !this.#networksEvent
    return isLookingUp ? [...unknown, `networks ${this.#networksPlace}: gateways are being looked up`] : unknown
  }

  close(): void {
    this.#retries.cancel()
    this.#lookups.close()
  }

  /** Takes the text of a setting if it differs. Returns its value if it is valid. */
  #take(setting: Setting, place: string, object: SettingsObject | undefined): MeshConfig | MeshNetworks | undefined {
    const content = object?.[setting.key]
    const { taken, text } = setting
    if (content === undefined) {
      if (taken) text.gone(taken.place, object ? `the key ${setting.key} is gone` : 'the object is gone')
      setting.taken = undefined
      return undefined
    }
    if (taken?.place === place && taken.content === content) return undefined
    setting.taken = { place, content }
    return text.take(place, { text: content })
  }

  #found(networks: MeshNetworks): void {
    const place = this.#networksPlace
    this.#networksEvent = { type: 'NetworksChanged', source: this.#events.source, place, networks, at: monotonicMs() }
    this.#events.send(this.#networksEvent)
    this.#events.mayDiffer()
  }

  /**
   * Says once of each setting without a value that it has none, so that what an earlier incarnation of the actor gave stays; not of one that is
   * waited for, since the names of the mesh are not known before.
   */
  #sayUnknown(): void {
    for (const { setting, text } of [this.#mesh, this.#networks]) {
      const isKnown = setting === 'mesh' ? this.#meshEvent : this.#networksEvent
      if (isKnown || this.#said.has(setting) || (text.unknown !== undefined && !this.#settings.allowUnreadable)) continue
      this.#said.add(setting)
      this.#events.send({ type: 'SettingUnusable', setting, source: this.#events.source, at: monotonicMs() })
    }
  }
}
