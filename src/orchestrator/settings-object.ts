/** The ConfigMap with the mesh configuration and the networks (docs/operation.md, C15). */
import { type Fault, isMapping } from '../config/shape.ts'
import { settingsConfigMaps } from '../names/mesh-names.ts'

/** The texts of such a ConfigMap, as far as it has them. */
export interface SettingsObject {
  readonly mesh?: string
  readonly meshNetworks?: string
}

/**
 * The names of the ConfigMaps that a control plane of a revision reads, of which the first one that exists counts: the mesh's own and its
 * alias. The revision `default` is none.
 */
export const settingsNames = (revision: string): readonly string[] =>
  settingsConfigMaps.map((name) => (revision === '' || revision === 'default' ? name : `${name}-${revision}`))

/** Cuts a ConfigMap to its settings. Never throws for any value. */
export function cutSettings(value: Readonly<Record<string, unknown>>): {
  readonly object: SettingsObject | undefined
  readonly faults: readonly Fault[]
} {
  const data = value.data ?? {}
  if (!isMapping(data)) return { object: undefined, faults: [{ path: 'data', reason: 'expected a mapping' }] }
  const faults: Fault[] = []
  const object: Record<string, string> = {}
  for (const key of ['mesh', 'meshNetworks']) {
    const text = data[key]
    if (typeof text === 'string') object[key] = text
    else if (text !== undefined && text !== null) faults.push({ path: `data.${key}`, reason: 'expected text' })
  }
  return faults.length > 0 ? { object: undefined, faults } : { object, faults }
}
