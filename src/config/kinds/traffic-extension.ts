/** TrafficExtension: a filter in Lua or WebAssembly. */
import { anything, map, type Read } from '../shape.ts'
import type { Kind } from './kind.ts'

const spec = map(anything)

/** The kind TrafficExtension. */
export const trafficExtension = {
  name: 'TrafficExtension',
  plural: 'trafficextensions',
  group: 'extensions',
  versions: ['v1alpha1'],
  spec,
  scope: 'namespace or mesh',
  selects: undefined,
  without: 'no Envoy filter is generated from it; use an EnvoyFilter instead',
} satisfies Kind<'TrafficExtension', Read<typeof spec>>
