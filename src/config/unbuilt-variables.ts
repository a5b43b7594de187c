/**
 * The environment variables of the specification that `pilot-discovery` does not read, each with the reason. Their values are checked, and
 * setting one causes a warning at start. A variable moves to `features.ts` when code reads it.
 */
import type { DeclaredVariable } from './variable.ts'

const orchestrator = 'the orchestrator client has no such part yet'
const telemetry = 'stock Envoy has no Wasm extension for telemetry'

/** The table of these variables. */
export const unbuiltVariables = {
  ENABLE_WASM_TELEMETRY: { without: telemetry, type: 'boolean', default: false, meaning: 'enables Wasm-based telemetry' },
  PILOT_ENABLED_SERVICE_APIS: {
    without: orchestrator,
    type: 'boolean',
    default: false,
    meaning: 'enables support for the orchestrator’s service-apis; experimental',
  },
} as const satisfies Record<string, DeclaredVariable & { readonly without: string }>
