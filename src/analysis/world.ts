/** What analyzers may ask of the mesh. Each answer is recorded, so that one that changes says which objects to look at again. */
import type { ConfigObject, Service } from '../../protocols/data.ts'
import type { SecretFacts, Workload } from '../../protocols/messages/analysis.ts'
import type { KindName } from '../config/kinds.ts'
import type { MeshConfig } from '../config/mesh-config.ts'
import type { PatchCheck } from '../config/patch-faults.ts'
import type { MeshNames } from '../names/mesh-names.ts'
import type { Meeting } from './claimants.ts'

type Labels = Readonly<Record<string, string>>

/** A provider, and the service that an external authorizer asks. */
export interface ProviderView {
  readonly name: string
  /** `<host>` or `<namespace>/<host>`; undefined: the provider is no external authorizer. */
  readonly service: string | undefined
  readonly port: number | undefined
}

/** What analyzers look at in the settings of the mesh. */
export interface MeshView {
  /** Whether Gateways select workloads of their own namespace only (`PILOT_SCOPE_GATEWAY_TO_NAMESPACE`). */
  readonly scopesGateways: boolean
  readonly rootNamespace: string
  /** The trust domain of the mesh, and its aliases. */
  readonly trustDomains: readonly string[]
  /** The special addresses from which keys of tokens are fetched nonetheless (`PILOT_JWKS_ALLOWED_ADDRESSES`). */
  readonly allowedKeyAddresses: string
  /** The `extensionProviders`; undefined: the mesh configuration is not known. */
  readonly providers: readonly ProviderView[] | undefined
  readonly exportTo: { readonly services: readonly string[]; readonly virtualServices: readonly string[] }
  /** The registries that networks name, with their place in the text. */
  readonly registries: readonly { readonly name: string; readonly path: string }[]
  /** The hosts of services that networks name as their gateways, with their network and port, and their place in the text. */
  readonly gatewayHosts: readonly { readonly host: string; readonly network: string; readonly port: number | undefined; readonly path: string }[]
  /** The networks that the text names. */
  readonly networks: readonly string[]
  /** The mesh configuration, or that of none. */
  readonly config: MeshConfig
  /** The image of sidecars that the configuration of injection gives; undefined: it is not known. */
  readonly proxyImage: string | undefined
}

/** Everything that is known of a mesh. What could not be read is undefined, and nothing is said to be missing in it. */
export interface World {
  /** The DNS suffix of the cluster. */
  readonly domain: string
  readonly names: MeshNames
  readonly mesh: MeshView
  /** Finds mistakes in the values of patches. */
  readonly patchFaults: PatchCheck
  /** The object of a kind at `<namespace>/<name>`. */
  object(kind: KindName, path: string): ConfigObject | undefined
  /** Whether an object is there that cannot be used: its own fault says why. */
  isRefused(kind: KindName, path: string): boolean
  /** The paths of all objects of a kind. */
  paths(kind: KindName): readonly string[]
  /** The objects that make a claim (`claims.ts`), the oldest first. */
  claimants(claim: string): readonly ConfigObject[]
  /**
   * The others that make a claim of an object and that some namespace may see beside it, by `exportTo`; the first `most` of them, the oldest first.
   * `fallback`: the export list of objects without one. What is worked out once is kept until the claim changes.
   */
  meeting(claim: string, object: ConfigObject, fallback: readonly string[], most: number): Meeting
  /** The services with exactly this host, a wildcard included. */
  services(host: string): readonly Service[]
  /** All hosts of services, and those of them that are wildcards. */
  hosts(): readonly string[]
  wildcards(): readonly string[]
  /** The hosts of services outside of the cluster, wildcards not included, that differ from a host in one label at most. */
  similarHosts(host: string): readonly string[]
  /** The services of a cluster in a namespace. */
  servicesIn(namespace: string): readonly Service[]
  /** Whether there is a Service, also one of which another definition of its host is in force. */
  hasService(namespace: string, name: string): boolean
  /**
   * Whether a namespace may be there. Of files a namespace is also there that has a Service or a workload, that objects without one are applied to, or
   * that is one of the control plane's or of every cluster.
   */
  hasNamespace(name: string): boolean
  /** The labels of a namespace; undefined: it does not exist, or nothing says them. Only where {@link knowsNamespaces}. */
  namespaceLabels(name: string): Labels | undefined
  namespaces(): readonly string[]
  /** The Secrets with a name in a namespace, of all clusters; none: there is none. */
  secrets(namespace: string, name: string): readonly SecretFacts[]
  /** The names of the Secrets of a namespace. */
  secretNames(namespace: string): readonly string[]
  /** The workloads with all of at least one labels, in a namespace, or anywhere without one; undefined: workloads are not known. */
  workloads(labels: Labels, namespace: string | undefined): readonly Workload[] | undefined
  /** The workloads of a namespace of which more than labels is known. */
  workloadsIn(namespace: string): readonly Workload[]
  /** Whether a namespace has workloads of which more than labels is known. */
  hasWorkloads(namespace: string): boolean
  /** Whether a namespace other than this one and the root namespace is known to have configuration of the mesh. */
  hasOthers(namespace: string): boolean
  /** Whether a namespace has configuration of the mesh. */
  hasConfiguration(namespace: string): boolean
  /** Whether namespaces are known, and their labels. */
  readonly knowsNamespaces: boolean
  /** Whether all Secrets of a namespace are known. */
  knowsSecrets(namespace: string): boolean
  /**
   * Counts steps of the analysis of an object that grow with the product of two sizes. Throws an Error when they are too many: the object is told as
   * one that could not be analyzed, and others are not kept waiting. Answers that are lists are counted by themselves.
   */
  spend(steps: number): void
  /**
   * Whether the objects of a kind were read, in a namespace or, without one, in all: an object that was not read is not missing. Kinds of the
   * mesh and of clusters have different names.
   */
  isRead(kind: string, namespace?: string): boolean
  /** The clusters whose registries are known. */
  readonly clusters: readonly string[]
  /** Whether the mesh is known to have other clusters than the own one. */
  readonly hasOtherClusters: boolean
}
