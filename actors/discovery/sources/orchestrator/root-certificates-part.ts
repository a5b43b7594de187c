/**
 * The part of a cluster's watcher that follows the ConfigMap with the root certificates in each namespace, and tells what each namespace has
 * (`NamespaceRootsChanged`).
 */
import type { NamespaceRoots, NamespaceRootsEvent } from '../../../../protocols/messages/root-certificates.ts'
import { isMapping } from '../../../../src/config/shape.ts'
import { coreResource, named } from '../../../../src/orchestrator/resources.ts'
import { rootConfigMap, rootLabel, rootsDigest } from '../../../../src/orchestrator/root-config-maps.ts'
import type { Peer, Replay } from '../../../runtime/link.ts'
import type { Follower, WatcherPart } from './watcher-part.ts'

type Mapping = Readonly<Record<string, unknown>>

/** A namespace as another part uses it, which one it is, and whether objects can be made in it. */
interface Tapped {
  readonly inner: unknown
  readonly uid: string
  readonly isActive: boolean
}

/** Follows the ConfigMaps, and takes namespaces from the part that follows them. */
export class RootCertificatesPart implements WatcherPart {
  readonly followers: readonly Follower[]
  readonly #cluster: string | undefined
  readonly #namespaces = new Map<string, NamespaceRoots>()
  /** The digests of ConfigMaps by namespace: also of namespaces that are not known yet. */
  readonly #held = new Map<string, string>()
  /** The only namespaces that count; empty: all. */
  readonly #only: ReadonlySet<string>
  #areNamespacesListed = false
  #areMapsListed = false
  #keeper: Peer<NamespaceRootsEvent> | undefined
  #replay: Replay | undefined

  /** `namespaces`: the only ones that count (`--appNamespace`); empty: all. `cluster`: another cluster whose namespaces they are. */
  constructor(domain: string, namespaces: readonly string[], cluster?: string) {
    this.#cluster = cluster
    this.#only = new Set(namespaces)
    this.followers = [
      {
        resource: named(coreResource('ConfigMap', 'configmaps'), rootConfigMap.name),
        isAwaited: false,
        cut: (value) => ({ object: digestIn(value, rootLabel(domain)), faults: [] }),
        set: (key, digest) => this.#setHeld(key.slice(0, key.indexOf('/')), digest as string | undefined),
        listed: () => this.#complete(() => (this.#areMapsListed = true)),
      },
    ]
  }

  /** Returns a follower of namespaces that tells this part of them too. */
  tap(follower: Follower): Follower {
    return {
      ...follower,
      cut: (value) => {
        const { object, faults } = follower.cut(value)
        return { object: object === undefined ? undefined : { inner: object, uid: uidOf(value), isActive: isActive(value) }, faults }
      },
      set: (key, object) => {
        const tapped = object as Tapped | undefined
        follower.set(key, tapped?.inner)
        this.#setNamespace(key.slice(1), tapped)
      },
      listed: () => {
        follower.listed?.()
        this.#complete(() => (this.#areNamespacesListed = true))
      },
    }
  }

  linked(peer: Peer): void {
    if (peer.kind !== 'root-certificates') return
    this.#keeper = peer as Peer<NamespaceRootsEvent>
    this.#replay = peer.replay()
    for (const namespace of this.#namespaces.keys()) this.#tell(namespace)
    this.#finish()
  }

  unlinked(peer: Peer): void {
    if (peer.kind !== 'root-certificates') return
    this.#keeper = undefined
    this.#replay = undefined
  }

  replay(): void {}

  settled(): void {}

  /** Nothing is told before both have been listed: every namespace would seem to have no ConfigMap. */
  get #isComplete(): boolean {
    return this.#areNamespacesListed && this.#areMapsListed
  }

  #complete(change: () => void): void {
    const wasComplete = this.#isComplete
    change()
    if (wasComplete || !this.#isComplete) return
    for (const namespace of this.#namespaces.keys()) this.#tell(namespace)
    this.#finish()
  }

  #finish(): void {
    if (!this.#isComplete) return
    this.#replay?.finish()
    this.#replay = undefined
  }

  #setNamespace(namespace: string, tapped: Tapped | undefined): void {
    if (this.#only.size > 0 && !this.#only.has(namespace)) return
    if (!tapped) this.#namespaces.delete(namespace)
    else {
      const { uid, isActive } = tapped
      const next = { uid, isActive, held: this.#held.get(namespace) }
      const before = this.#namespaces.get(namespace)
      if (before?.uid === uid && before.isActive === isActive && before.held === next.held) return
      this.#namespaces.set(namespace, next)
    }
    this.#tell(namespace)
  }

  #setHeld(namespace: string, digest: string | undefined): void {
    if (digest === undefined) this.#held.delete(namespace)
    else this.#held.set(namespace, digest)
    const known = this.#namespaces.get(namespace)
    if (!known) return
    this.#namespaces.set(namespace, { ...known, held: digest })
    this.#tell(namespace)
  }

  #tell(namespace: string): void {
    if (!this.#isComplete) return
    const cluster = this.#cluster === undefined ? {} : { cluster: this.#cluster }
    this.#keeper?.tell({ type: 'NamespaceRootsChanged', ...cluster, namespace, state: this.#namespaces.get(namespace) }, namespace)
  }
}

function digestIn({ data, metadata }: Mapping, label: string): string {
  const labels = isMapping(metadata) && isMapping(metadata.labels) ? metadata.labels : {}
  const roots = isMapping(data) ? data[rootConfigMap.key] : undefined
  return rootsDigest(typeof roots === 'string' ? roots : '', labels[label] === 'true')
}

const uidOf = ({ metadata }: Mapping): string => (isMapping(metadata) && typeof metadata.uid === 'string' ? metadata.uid : '')

function isActive({ status, metadata }: Mapping): boolean {
  const isEnding = isMapping(metadata) && metadata.deletionTimestamp !== undefined && metadata.deletionTimestamp !== null
  return !isEnding && !(isMapping(status) && status.phase === 'Terminating')
}
