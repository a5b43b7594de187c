/** WasmPlugin: a filter in WebAssembly. */
import { extension } from '../shapes/extensions.ts'

/** The kind WasmPlugin. */
export const wasmPlugin = { name: 'WasmPlugin', plural: 'wasmplugins', ...extension } as const
