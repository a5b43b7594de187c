/** What is declared of a kind of configuration object. */
import type { ConfigObject } from '../../../protocols/data.ts'
import type { Fault, Shape } from '../shape.ts'

/** A kind of configuration object. Everything that holds for all objects of the kind is declared here, in one file a kind. */
export interface Kind<Name extends string = string, Spec = unknown> {
  readonly name: Name
  readonly plural: string
  /** First label of the API group; the mesh domain follows. */
  readonly group: 'networking' | 'security' | 'telemetry' | 'extensions'
  readonly versions: readonly string[]
  /** Shape of the spec, and what is checked in it. */
  readonly spec: Shape<Spec>
  readonly scope: Scope
  /** Why objects of the kind have no effect, where they have none. */
  readonly without?: string
  /** What of a valid object has no effect or another than it seems, beside the fields that never have one; with reasons. */
  remarks?(object: ConfigObject<Spec>, domain: string): Fault[]
  /** The proxies whose class an object decides by itself, or undefined: what changes for a proxy then follows from what its namespace sees. */
  readonly selects: Selection<Spec> | undefined
}

/**
 * How far an object reaches. `exported`: as far as its `exportTo` says. `namespace`: its own namespace. `namespace or mesh`: its own
 * namespace, or all where that is the root namespace. `mesh`: all namespaces.
 */
export type Scope = 'exported' | 'namespace' | 'namespace or mesh' | 'mesh'

/** Which of the proxies within its scope an object selects. */
export interface Selection<Spec = unknown> {
  readonly proxies: 'all' | 'sidecars' | 'routers'
  /** Labels that a selected proxy has; undefined or empty selects every proxy. */
  labels(spec: Spec): Readonly<Record<string, string>> | undefined
}

/** Versions of the kinds of `networking`. */
export const networkingVersions = ['v1alpha3', 'v1beta1', 'v1']
/** Versions of the kinds of `security`. */
export const securityVersions = ['v1beta1', 'v1']
