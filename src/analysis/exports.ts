/** Finds namespaces that objects are exported to and that do not exist. */

import type { ConfigObject } from '../../protocols/data.ts'
import type { Resource } from '../../protocols/messages/analysis.ts'
import type { Tell } from './finding.ts'
import { tellNoNamespace } from './references.ts'
import type { World } from './world.ts'

/** Tells the namespaces of `exportTo` that do not exist. */
export function analyzeExports({ spec }: ConfigObject, world: World, tell: Tell): void {
  const { exportTo } = spec as { readonly exportTo?: unknown }
  if (Array.isArray(exportTo)) check(exportTo, (index) => `spec.exportTo[${index}]`, world, tell)
}

/** Tells those of the annotation of a Service. */
export function analyzeExportsOf({ annotations }: Resource, world: World, tell: Tell): void {
  const { names } = world
  for (const [key, value] of Object.entries(annotations))
    if (names.canonicalKey(key) === `networking.${names.domain}/exportTo`)
      check(
        value.split(',').map((each) => each.trim()),
        () => `metadata.annotations[${key}]`,
        world,
        tell,
      )
}

function check(targets: readonly unknown[], at: (index: number) => string, world: World, tell: Tell): void {
  for (const [index, target] of targets.entries()) {
    if (typeof target !== 'string' || ['', '*', '.', '~'].includes(target)) continue
    tellNoNamespace(target, ', so nobody in it sees this', { at: at(index), world, tell })
  }
}
