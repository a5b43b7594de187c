/** The kinds of extensions, which have no effect. */
import type { Kind } from '../kinds/kind.ts'
import { anything, map } from '../shape.ts'

/** The properties of an extension kind, without its names. */
export const extension = {
  group: 'extensions',
  versions: ['v1alpha1'],
  spec: map(anything),
  scope: 'namespace or mesh',
  selects: undefined,
  without: 'no Envoy filter is generated from it; use an EnvoyFilter instead',
} satisfies Omit<Kind, 'name' | 'plural'>
