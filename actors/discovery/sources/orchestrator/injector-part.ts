/**
 * The part of a cluster's watcher that follows what the webhooks of injection depend on: the ConfigMap with their configuration
 * (`InjectorChanged`) and the MutatingWebhookConfigurations that lead to them (`InjectorWebhooksChanged`) (docs/injection.md, N1 and N15).
 */
import type { InjectorEvent, InjectorTexts, InjectorWebhooksEvent } from '../../../../protocols/messages/injection.ts'
import type { MeshNames } from '../../../../src/names/mesh-names.ts'
import { cutInjector, injectorNames } from '../../../../src/orchestrator/injector-object.ts'
import { groupResource, namedResource } from '../../../../src/orchestrator/resources.ts'
import { cutWebhooks, type WebhookObject } from '../../../../src/orchestrator/webhook-object.ts'
import type { Peer } from '../../../runtime/link.ts'
import type { SeenReports } from '../seen-reports.ts'
import type { Follower, WatcherPart } from './watcher-part.ts'

type Told = InjectorEvent | InjectorWebhooksEvent

/** What the part follows. */
export interface InjectorSettings {
  /** The namespace of the control plane. */
  readonly namespace: string
  readonly revision: string
  /** The name of the MutatingWebhookConfiguration that has no revision; empty: none is followed. */
  readonly webhookConfig: string
  readonly names: MeshNames
  /** Another cluster, of which only the webhook configurations are followed; undefined: it is the own one. */
  readonly cluster?: string | undefined
  /** Tells the analyzer the values too; undefined: there is none (`PILOT_ENABLE_ANALYSIS`). */
  readonly seen?: SeenReports | undefined
}

/** Tells the webhooks what they depend on. */
export class InjectorPart implements WatcherPart {
  readonly followers: readonly Follower[]
  readonly #cluster: string | undefined
  readonly #namespace: string
  readonly #mapNames: readonly string[]
  readonly #maps = new Map<string, InjectorTexts>()
  readonly #listed = new Set<string>()
  readonly #webhooks = new Map<string, WebhookObject>()
  readonly #seen: SeenReports | undefined
  #reader: Peer<Told> | undefined
  /** What was last told of the ConfigMap, and the webhook configurations that may differ from what was told. */
  #told = ''
  readonly #changed = new Set<string>()

  constructor({ namespace, revision, webhookConfig, names, cluster, seen }: InjectorSettings) {
    this.#seen = seen
    this.#cluster = cluster
    this.#namespace = namespace
    this.#mapNames = cluster === undefined ? injectorNames(revision) : []
    const maps = this.#mapNames.map(
      (name): Follower<InjectorTexts> => ({
        resource: namedResource('ConfigMap', 'configmaps', namespace, name),
        isAwaited: false,
        cut: cutInjector,
        set: (_, object) => {
          if (object) this.#maps.set(name, object)
          else this.#maps.delete(name)
        },
        listed: () => void this.#listed.add(name),
      }),
    )
    const webhooks: Follower<WebhookObject | 'another'> = {
      resource: groupResource('MutatingWebhookConfiguration', 'admissionregistration.k8s.io', 'v1', 'mutatingwebhookconfigurations'),
      isAwaited: false,
      cut: (value) => ({ object: cutWebhooks(value, { revision, name: webhookConfig, names }) ?? 'another', faults: [] }),
      set: (key, object) => {
        const name = key.slice(1)
        if (object !== undefined && object !== 'another') this.#webhooks.set(name, object)
        else if (!this.#webhooks.delete(name)) return
        this.#changed.add(name)
      },
    }
    this.followers = [...maps, ...(webhookConfig === '' ? [] : [webhooks])] as Follower[]
  }

  replay(): void {}

  linked(peer: Peer): void {
    if (peer.kind !== 'webhooks') return
    this.#reader = peer as Peer<Told>
    this.#told = ''
    for (const name of this.#webhooks.keys()) this.#changed.add(name)
    this.settled()
  }

  unlinked(peer: Peer): void {
    if (peer.kind === 'webhooks') this.#reader = undefined
  }

  /** Tells the ConfigMap that counts, once it is known of each whether it exists, and the webhook configurations that have changed. */
  settled(): void {
    if (this.#reader) {
      const cluster = this.#cluster === undefined ? {} : { cluster: this.#cluster }
      for (const name of this.#changed)
        this.#reader.tell({ type: 'InjectorWebhooksChanged', ...cluster, name, state: this.#webhooks.get(name) }, `webhooks ${name}`)
      this.#changed.clear()
    }
    if (this.#cluster !== undefined || this.#listed.size < this.#mapNames.length) return
    const name = this.#mapNames.find((each) => this.#maps.has(each)) ?? this.#mapNames[0] ?? ''
    const event: InjectorEvent = { type: 'InjectorChanged', place: `ConfigMap ${this.#namespace}/${name}`, texts: this.#maps.get(name) }
    const text = JSON.stringify(event)
    if (text === this.#told) return
    this.#told = text
    this.#reader?.tell(event, 'injector')
    this.#seen?.tell({ type: 'InjectorSeen', values: event.texts?.values })
  }
}
