/** Mistakes in the values of the patches of EnvoyFilters, as they are told to people. What finds them knows Envoy's messages. */
import type { ConfigPatch, EnvoyFilterSpec } from './kinds/envoy-filter.ts'
import type { Fault } from './shape.ts'

/** A mistake in the value of a patch. Its path is below the value; an empty one is the whole of it. */
export interface PatchFault extends Fault {
  /** Of a patch that cannot be used; of a type that Envoy does not have; of a field that its type does not have. */
  readonly level: 'error' | 'unknown type' | 'unknown field'
}

/** Finds mistakes in the value of a patch. */
export type PatchCheck = (patch: ConfigPatch) => readonly PatchFault[]

/** Returns the mistakes in the values of all patches of an EnvoyFilter, with paths in the object. */
export const faultsOfPatches = ({ configPatches = [] }: EnvoyFilterSpec, check: PatchCheck): PatchFault[] =>
  configPatches.flatMap((patch, index) =>
    check(patch).map(({ path, ...fault }) => ({
      ...fault,
      path: `spec.configPatches[${index}].patch.value${path === '' ? '' : `.${path}`}`,
    })),
  )
