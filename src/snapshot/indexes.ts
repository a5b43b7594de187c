/** The indexes by which a snapshot finds objects: one for each kind, built again when objects of the kind change. */
import type { ConfigObject } from '../../protocols/data.ts'
import { configKey, type KindName } from '../config/kinds.ts'
import type { MeshConfig } from '../config/mesh-config.ts'
import { consequences, contain, type Faults, type ResourceFault } from '../model/faults.ts'
import { reportMissingProviders } from './authorizer-providers.ts'
import { indexDestinationRules, type KeptRules } from './destination-rules.ts'
import { matchableByNamespace } from './matchable-policies.ts'
import type { ObjectStore } from './object-store.ts'
import type { DestinationRule, EnvoyFilter, Gateway, Sidecar, VirtualService } from './objects.ts'
import { type AuthorizationPolicy, byNamespace, type PeerAuthentication, type PolicyIndex, type RequestAuthentication } from './policies.ts'
import type { Settings } from './snapshot.ts'
import { indexVirtualServices, type VirtualServiceIndex } from './virtual-services.ts'

/** The inputs of indexes other than the objects. */
interface Context {
  readonly settings: Settings
  readonly mesh: MeshConfig
  /** Reports a fault of an object, for example that it is indexed as a stand-in. */
  report(fault: ResourceFault): void
}

/**
 * Builds the index of each kind from its objects, the oldest first. `before` is the last index; parts that did not change keep their
 * identity. A kind missing from this table is a compile error.
 */
const indexers = {
  VirtualService: (objects: readonly VirtualService[], { settings, mesh }: Context, before: VirtualServiceIndex | undefined) =>
    indexVirtualServices(
      objects,
      {
        domain: settings.domain,
        delegates: settings.features.PILOT_ENABLE_VIRTUAL_SERVICE_DELEGATE,
        defaultExportTo: mesh.defaultVirtualServiceExportTo,
      },
      before,
    ),
  DestinationRule: (objects: readonly DestinationRule[], { settings }: Context, before: KeptRules | undefined) =>
    indexDestinationRules(objects, settings.domain, before),
  Gateway: (objects: readonly Gateway[]): readonly Gateway[] => objects,
  Sidecar: (objects: readonly Sidecar[]) => byNamespace(objects),
  EnvoyFilter: (objects: readonly EnvoyFilter[]): readonly EnvoyFilter[] => objects,
  AuthorizationPolicy: (objects: readonly AuthorizationPolicy[], context: Context, before: PolicyIndex['authorization'] | undefined) => {
    reportMissingProviders(objects, context)
    return matchableByNamespace(objects, context, before)
  },
  RequestAuthentication: (objects: readonly RequestAuthentication[]) => byNamespace(objects),
  PeerAuthentication: (objects: readonly PeerAuthentication[]) => byNamespace(objects),
  // Entries are converted to services and endpoints before.
  ServiceEntry: undefined,
  WorkloadEntry: undefined,
  // Objects of these kinds have no effect.
  WorkloadGroup: undefined,
  Telemetry: undefined,
  ProxyConfig: undefined,
  WasmPlugin: undefined,
  TrafficExtension: undefined,
} satisfies Record<KindName, ((objects: readonly never[], context: Context, before: never) => unknown) | undefined>

type Indexers = typeof indexers
type IndexedKind = { [Kind in KindName]: Indexers[Kind] extends undefined ? never : Kind }[KindName]
type IndexOf<Kind extends IndexedKind> = ReturnType<Indexers[Kind]>
type Indexer = (objects: readonly ConfigObject[], context: Context, before: unknown) => unknown

/** The indexes of all kinds as of the last update. */
export class Indexes {
  readonly #settings: Settings
  readonly #objects: ObjectStore
  readonly #faults: Faults
  readonly #made = new Map<string, unknown>()
  #mesh: MeshConfig
  /** Kinds whose index has read the mesh configuration. */
  readonly #readMesh = new Set<string>()

  constructor(settings: Settings, mesh: MeshConfig, objects: ObjectStore, faults: Faults) {
    this.#settings = settings
    this.#mesh = mesh
    this.#objects = objects
    this.#faults = faults
    this.update(Object.keys(indexers), mesh)
  }

  /** Builds the indexes of some kinds again, and of those that read the mesh configuration if it changed. */
  update(kinds: Iterable<string>, mesh: MeshConfig): void {
    const touched = new Set([...kinds, ...(mesh === this.#mesh ? [] : this.#readMesh)])
    this.#mesh = mesh
    for (const kind of touched) {
      const indexer = indexers[kind as KindName] as Indexer | undefined
      if (indexer) this.#made.set(kind, this.#index(kind, indexer))
    }
  }

  /** The index of a kind. */
  of<Kind extends IndexedKind>(kind: Kind): IndexOf<Kind> {
    return this.#made.get(kind) as IndexOf<Kind>
  }

  /**
   * Indexes all objects of a kind. If that fails, objects that cannot be indexed on their own are left out. If it fails even though each
   * object can be, the index stays as it was.
   */
  #index(kind: string, indexer: Indexer): unknown {
    const objects = this.#objects.ofKind(kind)
    const before = this.#made.get(kind)
    const settings = this.#settings
    const mesh = () => {
      this.#readMesh.add(kind)
      return this.#mesh
    }
    const faults: ResourceFault[] = []
    const context: Context = {
      settings,
      report: (fault) => faults.push(fault),
      get mesh() {
        return mesh()
      },
    }
    const make = (of: readonly ConfigObject[]) => indexer(of, context, before)
    const index = contain(
      () => make(objects),
      (whole) => {
        const good = objects.filter((object) => {
          const resource = configKey(object)
          const reason = contain<string | undefined>(
            () => {
              indexer([object], context, undefined)
              return undefined
            },
            (found) => found,
          )
          if (reason !== undefined) faults.push({ type: 'index', resource, objects: [resource], reason, consequence: consequences.leftOut })
          return reason === undefined
        })
        if (good.length === objects.length) faults.push({ type: 'index', resource: kind, objects: [], reason: whole, consequence: consequences.kept })
        return good.length === objects.length ? (before ?? make([])) : make(good)
      },
    )
    this.#faults.replace(`index|${kind}`, faults)
    return index
  }
}
