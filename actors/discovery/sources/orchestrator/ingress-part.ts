/**
 * The part of a cluster's watcher that follows Ingresses and IngressClasses: tells the Gateways and VirtualServices that they become
 * (`ConfigChanged`; docs/resources.md, I1 to I6), and has their addresses written where this process leads ({@link IngressStatus}).
 */
import type { IngressSettings, MeshNamesEvent } from '../../../../protocols/messages/identity.ts'
import type { SourceEvent } from '../../../../protocols/messages/push.ts'
import { configKey } from '../../../../src/config/kinds.ts'
import type { MeshNames } from '../../../../src/names/mesh-names.ts'
import type { ClusterRegistry } from '../../../../src/orchestrator/cluster-registry.ts'
import { IngressConversion, type IngressPlace } from '../../../../src/orchestrator/ingress-conversion.ts'
import { cutIngress, cutIngressClass, type IngressClassObject, type IngressObject } from '../../../../src/orchestrator/ingress-objects.ts'
import { groupResource, type Resource } from '../../../../src/orchestrator/resources.ts'
import { monotonicMs } from '../../../runtime/clock.ts'
import type { ScopedLogger } from '../../../runtime/logger.ts'
import type { Follower, WatcherPart } from './watcher-part.ts'

/** What the part is made of. */
export interface IngressParts extends IngressPlace {
  readonly names: MeshNames
  readonly registry: ClusterRegistry
  readonly log: ScopedLogger
  send(event: SourceEvent): void
  /** What {@link WatcherPart.waitsFor} says may differ. */
  mayDiffer(): void
}

/** Follows the Ingresses of a cluster. */
export class IngressPart implements WatcherPart {
  readonly followers: readonly Follower[]
  readonly #parts: IngressParts
  readonly #conversion: IngressConversion
  #settings: IngressSettings | undefined
  /** The paths of the resources that have been listed, or cannot be because the role does not permit it. */
  readonly #known = new Set<string>()
  /** The number of changes of Services that ports were looked up at. */
  #servicesAt = -1
  /** The backends that were logged to be lost. */
  #lost: ReadonlySet<string> = new Set()

  constructor(parts: IngressParts) {
    this.#parts = parts
    const { registry, names } = parts
    this.#conversion = new IngressConversion(parts, (key, name) => registry.service(key)?.ports.find((port) => port.name === name)?.number)
    const ingresses = groupResource('Ingress', 'networking.k8s.io', 'v1', 'ingresses')
    const classes = groupResource('IngressClass', 'networking.k8s.io', 'v1', 'ingressclasses')
    const follow = (resource: Resource) => ({
      resource,
      // Not awaited, since a role that lacks them must not keep the mesh from being served.
      isAwaited: false,
      listed: () => void this.#known.add(resource.path),
      forbidden: () => {
        if (this.#known.has(resource.path)) return
        this.#known.add(resource.path)
        this.#parts.mayDiffer()
      },
    })
    this.followers = [
      {
        ...follow(classes),
        cut: (value) => cutIngressClass(value, names),
        set: (key, object) => this.#conversion.setClass(key.slice(key.indexOf('/') + 1), object as IngressClassObject | undefined),
      },
      {
        ...follow(ingresses),
        cut: (value) => cutIngress(value, names),
        set: (key, object) => this.#conversion.set(key, object as IngressObject | undefined),
      },
    ]
  }

  /** The settings of the mesh configuration in force; undefined: not known yet. */
  get settings(): IngressSettings | undefined {
    return this.#settings
  }

  /** What Ingresses become. */
  get conversion(): IngressConversion {
    return this.#conversion
  }

  /** Whether all that decides about Ingresses has been listed. */
  get isListed(): boolean {
    return this.#known.size === this.followers.length
  }

  meshChanged({ ingress }: MeshNamesEvent): void {
    if (!ingress || JSON.stringify(ingress) === JSON.stringify(this.#settings)) return
    this.#settings = ingress
    this.#conversion.setSettings(ingress)
    this.settled()
    this.#parts.mayDiffer()
  }

  replay(): void {
    for (const object of this.#conversion.all()) this.#send(configKey(object), object)
  }

  /** Sends what has changed, once Ingresses and classes are known: before, an Ingress could seem to be for somebody else. */
  settled(): void {
    if (!this.isListed || !this.#settings) return
    const { serviceChanges } = this.#parts.registry
    if (serviceChanges !== this.#servicesAt) this.#conversion.servicesChanged()
    this.#servicesAt = serviceChanges
    for (const [key, object] of this.#conversion.take()) this.#send(key, object)
    this.#sayLost()
  }

  /** The first push has the routes of Ingresses, unless the role does not permit to read them. */
  waitsFor(): readonly string[] {
    if (!this.#settings) return ['Ingresses: the mesh configuration is not known yet']
    return this.isListed ? [] : [`cluster ${this.#parts.cluster}: Ingresses and their classes have not been listed yet`]
  }

  #send(key: string, object: ReturnType<IngressConversion['all']>[number] | undefined): void {
    this.#parts.send({ type: 'ConfigChanged', key, object, at: monotonicMs() })
  }

  #sayLost(): void {
    const now = new Map(this.#conversion.lost.map((each) => [JSON.stringify(each), each]))
    for (const [text, { ingress, path, reason }] of now)
      if (!this.#lost.has(text))
        this.#parts.log.warn(`Ingress ${ingress} of cluster ${this.#parts.cluster}, field ${path}: ${reason}; requests for it are answered with 503`)
    this.#lost = new Set(now.keys())
  }
}
