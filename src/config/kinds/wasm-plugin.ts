/** WasmPlugin: a filter in WebAssembly. */
import { anything, map, type Read } from '../shape.ts'
import type { Kind } from './kind.ts'

const spec = map(anything)

/** The kind WasmPlugin. */
export const wasmPlugin = {
  name: 'WasmPlugin',
  plural: 'wasmplugins',
  group: 'extensions',
  versions: ['v1alpha1'],
  spec,
  scope: 'namespace or mesh',
  selects: undefined,
  without: 'no Envoy filter is generated from it; use an EnvoyFilter instead',
} satisfies Kind<'WasmPlugin', Read<typeof spec>>
