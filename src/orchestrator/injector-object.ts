/** The ConfigMap with the configuration of injection (docs/injection.md, N1). */
import type { InjectorTexts } from '../../protocols/messages/injection.ts'
import { type Fault, isMapping } from '../config/shape.ts'
import { injectorConfigMaps } from '../names/mesh-names.ts'

/**
 * The names of the ConfigMaps that a control plane of a revision reads, of which the first one that exists counts: the mesh's own and its
 * alias. The revision `default` is none.
 */
export const injectorNames = (revision: string): readonly string[] =>
  injectorConfigMaps.map((name) => (revision === '' || revision === 'default' ? name : `${name}-${revision}`))

/** Cuts a ConfigMap to the texts of its keys. Never throws for any value. */
export function cutInjector(value: Readonly<Record<string, unknown>>): {
  readonly object: InjectorTexts | undefined
  readonly faults: readonly Fault[]
} {
  const data = value.data ?? {}
  if (!isMapping(data)) return { object: undefined, faults: [{ path: 'data', reason: 'expected a mapping' }] }
  const faults: Fault[] = []
  const textOf = (key: string) => {
    const text = data[key] ?? ''
    if (typeof text === 'string') return text
    faults.push({ path: `data.${key}`, reason: 'expected text' })
    return ''
  }
  const object = { config: textOf('config'), values: textOf('values') }
  if (data.config === undefined) faults.push({ path: 'data.config', reason: 'required, but missing' })
  return faults.length > 0 ? { object: undefined, faults } : { object, faults }
}
