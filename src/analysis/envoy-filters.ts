/** Finds mistakes in the patches of an EnvoyFilter, before they meet a proxy. */
import type { ConfigObject } from '../../protocols/data.ts'
import type { EnvoyFilterSpec } from '../config/kinds/envoy-filter.ts'
import { faultsOfPatches } from '../config/patch-faults.ts'
import type { Tell } from './finding.ts'
import type { World } from './world.ts'

const codeOf = { error: 'IST0106', 'unknown type': 'MESH0003', 'unknown field': 'IST0133' } as const

/** Tells the mistakes in the values of an EnvoyFilter's patches. */
export function analyzeEnvoyFilter({ spec }: ConfigObject<EnvoyFilterSpec>, { patchFaults }: World, tell: Tell): void {
  for (const { level, path, reason } of faultsOfPatches(spec, patchFaults)) tell(codeOf[level], path, reason)
}
