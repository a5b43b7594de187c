/** The shape of export lists: `exportTo` and its defaults in the mesh configuration (docs/resources.md, V1). */
import { isObjectName } from '../../names/object-names.ts'
import { list, text } from '../shape.ts'

/** The entries that are not names of namespaces: every namespace, the object's own, none. */
const signs: ReadonlySet<string> = new Set(['*', '.', '~'])

/** Returns why an entry of an export list is none; undefined: it is one. */
export const exportFault = (value: string): string | undefined =>
  signs.has(value) || isObjectName(value) ? undefined : `${JSON.stringify(value.slice(0, 100))} is neither a namespace nor one of * . ~`

/** A list of namespaces that see an object. */
export const exportList = list(
  text({
    check: exportFault,
    examples: ['*', '.', '~', 'shop', 'bank'],
  }),
)
