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
