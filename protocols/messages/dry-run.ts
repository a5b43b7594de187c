/**
 * A dry run: what proxies would get if documents were applied. The push queue gives out the mesh in pieces; a thread of a pool makes all of it
 * twice, as it is and with the documents, and compares.
 */
import type { ConfigObject, ObjectReference, ProxyNode } from '../data.ts'
import type { RegistryService } from './explain.ts'
import type { PassedSettings } from './passed-settings.ts'

/** A file with documents. */
export interface GivenText {
  readonly name: string
  readonly text: string
}

/** A proxy as the push queue knows it, and how people call it. */
export interface DryRunProxy {
  readonly nodeId: string
  readonly node: ProxyNode
}

/** A part of the mesh. */
export type DryRunRow =
  | { readonly settings: PassedSettings }
  | { readonly object: ConfigObject }
  | { readonly service: RegistryService }
  | { readonly proxy: DryRunProxy }
  /** The number of proxies that are left out, because there are too many. */
  | { readonly left: number }

/** A piece of the mesh: its rows as `serialize` of `node:v8` writes them. */
export interface DryRunPiece {
  readonly rows: Uint8Array
  /** The number by which the next piece is asked for (question `moreOfDryRun`); undefined: that was all. */
  readonly next: number | undefined
}

/** What a dry run is made of. */
export interface DryRunInput {
  readonly texts: readonly GivenText[]
  /** Whether objects that are in no document are removed. */
  readonly replace: boolean
  /** The namespace of objects that name none; empty: that which the place of the mesh's configuration has for them. */
  readonly namespace: string
  readonly pieces: readonly Uint8Array[]
  /** Proxies of other replicas. */
  readonly others: readonly DryRunProxy[]
  /** Unix milliseconds: the time at which the objects are created. */
  readonly at: number
}

export type Change = 'added' | 'changed' | 'removed'

/** A field in which two states of a resource differ; a value is undefined where the field is not set. Values are JSON. */
export interface FieldChange {
  readonly field: string
  readonly before: unknown
  readonly now: unknown
}

/** A resource that would differ. */
export interface ResourceChange {
  readonly typeUrl: string
  readonly name: string
  readonly change: Change
  /** The first fields that differ, and the number of others; empty for a resource that is added or removed, or that is too large to be compared. */
  readonly fields: readonly FieldChange[]
  readonly otherFields: number
}

/** Proxies that would see the same differences. */
export interface ChangedProxies {
  /** The node ids of the first of them. */
  readonly nodeIds: readonly string[]
  readonly proxies: number
  readonly resources: readonly ResourceChange[]
  /** The number of resources that would differ too and are not told. */
  readonly otherResources: number
}

/** What a document says of itself that is wrong. */
export interface DryRunFault {
  readonly level: 'error' | 'warning'
  readonly file: string
  readonly document: number
  /** The key of the object; empty where it cannot be read. */
  readonly key: string
  readonly path: string
  readonly reason: string
}

/** The result of a dry run. */
export interface DryRun {
  readonly faults: readonly DryRunFault[]
  /** The objects that would differ, and the number of those that are not told. */
  readonly objects: readonly { readonly reference: ObjectReference; readonly change: Change }[]
  readonly otherObjects: number
  /** The number of objects of the documents that the mesh has already. */
  readonly sameObjects: number
  /** The number of documents that are no configuration of the mesh, by kind. */
  readonly foreign: Readonly<Record<string, number>>
  readonly changed: readonly ChangedProxies[]
  /** The number of proxies with differences that are not told. */
  readonly otherProxies: number
  /** The number of proxies that would see no difference. */
  readonly unchangedProxies: number
  /** The number of proxies that were left out, because there are too many or time was up. */
  readonly leftProxies: number
  /** What could not be made, or not as configured, and can be made now. */
  readonly newFaults: readonly {
    readonly type: string
    readonly resource: string
    readonly reason: string
    readonly consequence: string
    readonly isLoss: boolean
    readonly references: readonly ObjectReference[]
  }[]
}
