/** What the analyzer of a running service is told, and what it answers. */
import type { ConfigObject, Service } from '../data.ts'

/** Push queue to analyzer: what is in force. The analyzer is told everything in a replay, and later what a push has changed. */
export type InForceEvent =
  /** An object of configuration, Namespace or Pod is in force, or no longer. */
  | { readonly type: 'ObjectInForce'; readonly key: string; readonly object: ConfigObject | undefined }
  /** The services with a host. */
  | { readonly type: 'ServicesInForce'; readonly host: string; readonly services: readonly Service[] }
  /** The mesh configuration, and the networks: a `MeshConfig` and `MeshNetworks`. */
  | { readonly type: 'MeshInForce'; readonly mesh: object; readonly networks: object }

type Labels = Readonly<Record<string, string>>

/** A container of a pod, as far as analyzers look at it. */
export interface Container {
  readonly name: string
  readonly image: string
  readonly ports: readonly { readonly name: string; readonly number: number }[]
}

/** An object of a cluster with labels and annotations that is not configuration of the mesh: a Service, Namespace, or workload. */
export interface Resource {
  readonly kind: string
  readonly namespace: string
  readonly name: string
  readonly labels: Labels
  readonly annotations: Labels
  /** File and document, or empty. */
  readonly place: string
  /** What an Ingress leads to. */
  readonly backends?: readonly IngressBackend[]
}

/** A Service that an Ingress leads to, and where in the Ingress. */
export interface IngressBackend {
  readonly service: string
  /** Its number or name; undefined: it says none. */
  readonly port: number | string | undefined
  /** The path of the backend. */
  readonly path: string
}

/**
 * A workload that selectors may match: a pod, a template of pods, or an entry, with the labels of the pods. Their names are as the source has them;
 * analyzers are given them in the mesh form (`MeshFacts.setWorkload`).
 */
export interface Workload extends Resource {
  /** What is known of its pods beside the labels; undefined: nothing. */
  readonly pod?: PodDetails
}

/** What analyzers look at in a pod or template. */
export interface PodDetails {
  /** Labels and annotations with the names that the source has. */
  readonly labels: Labels
  readonly annotations: Labels
  readonly containers: readonly Container[]
  readonly hostNetwork: boolean
  /** Whether its programs have ended. */
  readonly hasEnded: boolean
}

/** A Secret, as far as analysis looks at it: never its values. */
export interface SecretFacts {
  readonly name: string
  /** The keys with a value that gateways read; undefined: they are not known. */
  readonly keys: readonly string[] | undefined
}

/** A fault or warning of a document or object, as a finding. */
export interface FaultFound {
  /** Of what cannot be used, and of what is used without a part. */
  readonly code: 'IST0106' | 'IST0133'
  /** The key of the object; empty: it is not known. */
  readonly object: string
  readonly path: string
  readonly message: string
  readonly place: string
}

/** Source to analyzer: what it has read and what is in force does not say. */
export type SeenEvent =
  /** A Service, Namespace, Pod or Ingress was read, or is gone. */
  | { readonly type: 'ResourceSeen'; readonly key: string; readonly resource: Resource | Workload | undefined }
  /** All Secrets of a namespace; undefined: they are not read, or cannot be at present. */
  | { readonly type: 'SecretsSeen'; readonly cluster: string; readonly namespace: string; readonly secrets: readonly SecretFacts[] | undefined }
  /** All faults and warnings of what was read together: a file, or an object of a cluster. */
  | { readonly type: 'FaultsSeen'; readonly name: string; readonly faults: readonly FaultFound[] }
  /** The values of the configuration of injection; undefined: there is none. */
  | { readonly type: 'InjectorSeen'; readonly values: string | undefined }

/** Configuration of the analyzer. */
export interface AnalyzerConfig {
  readonly features: object
  /** The DNS suffix of the cluster. */
  readonly domain: string
}

/** A finding of a running service. */
export interface FindingRow {
  readonly code: string
  /** The name of the code. */
  readonly name: string
  readonly level: 'error' | 'warning' | 'info'
  /** The kind, namespace and name of the object. */
  readonly kind: string
  readonly namespace: string
  readonly object: string
  /** The field. */
  readonly path: string
  readonly message: string
  /** Where the object stands in its source. */
  readonly place: string
}

/** What was found, and how much is still to be looked at. */
export interface FoundNow {
  readonly findings: readonly FindingRow[]
  /** Objects that have changed and were not looked at again yet. */
  readonly due: number
  /** Whether everything in force has been told. */
  readonly isComplete: boolean
}
