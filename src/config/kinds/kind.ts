/** The declaration of a kind of configuration object. */
import type { ConfigObject } from '../../../protocols/data.ts'
import type { Fault, Shape } from '../shape.ts'

/** A kind of configuration object. All properties common to the objects of the kind are declared here, in one file for each kind. */
export interface Kind<Name extends string = string, Spec = unknown> {
  readonly name: Name
  readonly plural: string
  /** The first label of the API group. It is followed by the mesh domain. */
  readonly group: 'networking' | 'security' | 'telemetry' | 'extensions'
  readonly versions: readonly string[]
  /** The shape of the spec, including its checks. */
  readonly spec: Shape<Spec>
  readonly scope: Scope
  /** The reason why objects of the kind have no effect. Undefined when they have one. */
  readonly without?: string
  /**
   * Returns parts of a valid object that have no effect, or another than expected, with reasons. Fields declared `unused` are not included.
   */
  remarks?(object: ConfigObject<Spec>, domain: string): Fault[]
  /**
   * Which proxies an object selects, that is, whose class it can change directly. Undefined: the object affects proxies only through what
   * their namespace sees.
   */
  readonly selects: Selection<Spec> | undefined
}

/**
 * The scope of an object. `exported`: the namespaces in its `exportTo`. `namespace`: its own namespace. `namespace or mesh`: its own
 * namespace, or all namespaces if its own is the root namespace. `mesh`: all namespaces.
 */
export type Scope = 'exported' | 'namespace' | 'namespace or mesh' | 'mesh'

/** The proxies within its scope that an object selects. */
export interface Selection<Spec = unknown> {
  readonly proxies: 'all' | 'sidecars' | 'routers'
  /** The labels that a selected proxy must have. Undefined or empty: every proxy is selected. */
  labels(spec: Spec): Readonly<Record<string, string>> | undefined
}

/** API versions of the `networking` kinds. */
export const networkingVersions = ['v1alpha3', 'v1beta1', 'v1']
/** API versions of the `security` kinds. */
export const securityVersions = ['v1beta1', 'v1']
