/** Checks an object by itself, as a review of it does (docs/operation.md, W5): what of it is used without a part, or has no effect. */
import type { ConfigObject } from '../../protocols/data.ts'
import type { EnvoyFilterSpec } from '../config/kinds/envoy-filter.ts'
import { kindId, kindOfKey, kinds } from '../config/kinds.ts'
import { withoutEffect } from '../config/without-effect.ts'
import { analyzeEnvoyFilter } from './envoy-filters.ts'
import type { Tell } from './finding.ts'
import type { MeshFacts } from './mesh-facts.ts'
import type { World } from './world.ts'

/** Tells what is wrong with an object of a kind of the mesh, whatever else there is. */
export function analyzeSingle(object: ConfigObject, world: World, tell: Tell): void {
  for (const { path, reason } of withoutEffect(object, world.names.domain)) tell('IST0133', path, reason)
  if (kindId(object) === 'EnvoyFilter') analyzeEnvoyFilter(object as ConfigObject<EnvoyFilterSpec>, world, tell)
}

/** Tells what is wrong with the object that has a key, whatever else there is. */
export function analyzeSingleSubject(key: string, facts: MeshFacts, tell: Tell): void {
  const object = kinds.has(kindOfKey(key)) ? facts.subject(key) : undefined
  if (object) analyzeSingle(object as ConfigObject, facts, tell)
}
