/** Documents that are lists of objects, and those that are no objects. */
import { nearest } from '../model/edit-distance.ts'
import { type Fault, isMapping } from './shape.ts'

/**
 * Returns the items of a list: of a kind that ends with `List`, or of an array. Items of a list of one kind may omit their kind and
 * version.
 */
export function itemsOf(value: unknown): { readonly field: string; readonly values: readonly unknown[] } | undefined {
  if (Array.isArray(value)) return { field: '', values: value }
  if (!isMapping(value) || !Array.isArray(value.items) || typeof value.kind !== 'string' || !value.kind.endsWith('List')) return undefined
  const { kind, apiVersion } = value
  const own = kind === 'List' ? {} : { kind: kind.slice(0, -'List'.length), apiVersion }
  return { field: 'items', values: value.items.map((item: unknown) => (isMapping(item) ? { ...own, ...item } : item)) }
}

/** Says what is wrong with a list whose items cannot be read, which may contain any object; undefined for others. */
export function unreadList(value: Readonly<Record<string, unknown>>, kind: string, apiVersion: string): Fault | undefined {
  if (!kind.endsWith('List')) return undefined
  const written = `kind ${JSON.stringify(kind.slice(0, 100))}, apiVersion ${JSON.stringify(apiVersion.slice(0, 100))}`
  if (spellingsOf(value, 'items').length > 0) return { path: 'items', reason: `expected a list of objects in ${written}` }
  const meant = Object.keys(value).find((field) => Array.isArray(value[field]) && nearest(field, ['items']) !== undefined)
  if (meant !== undefined) return { path: meant, reason: `unknown field in ${written}, so none of its objects is read; did you mean "items"?` }
  return kind === 'List' && apiVersion === 'v1' ? { path: 'kind', reason: `there are no items in ${written}` } : undefined
}

/** Returns the fields of a mapping that equal a name when case, hyphens and underscores are ignored. */
export const spellingsOf = (mapping: Readonly<Record<string, unknown>>, name: string): string[] =>
  Object.keys(mapping).filter((field) => field.length <= 64 && field.toLowerCase().replace(/[_-]/g, '') === name)

/** The reason why a document that is no object is told. */
export const noObject = 'it is no object, so it is left out: it has neither apiVersion nor kind'

/** Whether a file is one of a tool that makes objects, which stands beside these and has none. */
export const isOfTool = (file: string): boolean => /(^|[\\/])(kustomization|Chart|values[^\\/]*)\.ya?ml$/i.test(file)
