/** Finds patches with types that Envoy does not have. */
import type { ConfigObject } from '../../protocols/data.ts'
import type { EnvoyFilterSpec } from '../config/kinds/envoy-filter.ts'
import { isMapping } from '../config/shape.ts'
import type { Tell } from './finding.ts'
import type { World } from './world.ts'

/** Types of the second version of the API, which no supported release has. */
const secondVersion = /^envoy\.(api\.v2|config\.(filter|transport_socket|accesslog|trace)\..*v2)/
/** Types that only some builds of Envoy have, and those whose schemas are not known here. */
const ofOtherBuilds = /v3alpha|open_?telemetry|opencensus|prometheus/i
const typeFields = ['@type', 'type_url', 'typeUrl']

/** Tells the types of an EnvoyFilter that Envoy does not have. */
export function analyzeEnvoyFilter({ spec }: ConfigObject<EnvoyFilterSpec>, world: World, tell: Tell): void {
  for (const [index, { patch }] of (spec.configPatches ?? []).entries())
    for (const [at, type] of typesIn(patch.value, `spec.configPatches[${index}].patch.value`)) {
      if (secondVersion.test(type))
        tell('MESH0003', at, `${type} is a type of the second version of Envoy's API, which no release has any more: use that of v3`)
      else if (type.startsWith('envoy.') && !ofOtherBuilds.test(type) && !world.hasEnvoyType(type))
        tell('MESH0003', at, `Envoy has no type ${type}, so proxies refuse the patch, unless they are built with it: correct its name`)
    }
}

/** Yields the names of types in a value with their places. */
function* typesIn(value: unknown, at: string): Generator<[string, string]> {
  if (Array.isArray(value)) for (const [index, item] of value.entries()) yield* typesIn(item, `${at}[${index}]`)
  if (!isMapping(value)) return
  for (const [field, entry] of Object.entries(value))
    if (typeof entry !== 'string') yield* typesIn(entry, `${at}.${field}`)
    else if (typeFields.includes(field)) yield [`${at}.${field}`, entry.slice(entry.lastIndexOf('/') + 1)]
}
