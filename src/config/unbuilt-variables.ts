/**
 * The environment variables of the specification that `pilot-discovery` does not read, each with the reason. Their values are checked, and
 * setting one causes a warning at start. A variable moves to `features.ts` when code reads it.
 */
import type { DeclaredVariable } from './variable.ts'

const orchestrator = 'the orchestrator client has no such part yet'
const telemetry = 'stock Envoy has no Wasm extension for telemetry'
const mysql = 'releases of Envoy have no filter for MySQL, only contrib builds have'

/** The table of these variables. */
export const unbuiltVariables = {
  ENABLE_WASM_TELEMETRY: { without: telemetry, type: 'boolean', default: false, meaning: 'enables Wasm-based telemetry' },
  PILOT_ENABLED_SERVICE_APIS: {
    without: orchestrator,
    type: 'boolean',
    default: false,
    meaning: 'enables support for the orchestrator’s service-apis; experimental',
  },
  PILOT_ENABLE_MYSQL_FILTER: {
    without: mysql,
    type: 'boolean',
    default: false,
    meaning: 'injects proxy.filters.network.mysql_proxy into the filter chain',
  },
} as const satisfies Record<string, DeclaredVariable & { readonly without: string }>
