/** The variables that the path of a review sets: `/inject/cluster/east/net/n1` (docs/injection.md, N13). */
import { isObjectName } from '../names/object-names.ts'

/** Thrown for a path that cannot be used. */
export class PathError extends Error {}

/** Variables of the agent whose keys in the path have other names. */
const known: ReadonlyMap<string, string> = new Map([
  ['cluster', 'MESH_META_CLUSTER_ID'],
  ['net', 'MESH_META_NETWORK'],
])

/**
 * Returns the variables of what follows `/inject/` in the path. Other keys become variables of their own names in capitals. Throws a
 * {@link PathError} that says what is wrong.
 */
export function pathVariables(rest: string): Record<string, string> {
  const parts = rest.split('/').filter((part) => part !== '')
  if (parts.length % 2 !== 0)
    throw new PathError(`the path of the webhook has the key ${JSON.stringify(parts.at(-1)?.slice(0, 100))} without a value`)
  const variables: Record<string, string> = {}
  for (let at = 0; at < parts.length; at += 2) {
    const [key = '', encoded = ''] = parts.slice(at, at + 2)
    const value = decoded(encoded)
    if (!/^[A-Za-z_][A-Za-z0-9_]{0,100}$/.test(key))
      throw new PathError(`the path of the webhook has ${JSON.stringify(key.slice(0, 100))}, which is no name of a variable`)
    if (value === undefined || !isObjectName(value))
      throw new PathError(
        `the path of the webhook has ${JSON.stringify(encoded.slice(0, 100))} for ${key}, which is no name of letters, digits, ".", "_" and "-"`,
      )
    variables[known.get(key) ?? key.toUpperCase()] = value
  }
  return variables
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
