/**
 * Path normalization (`meshConfig.pathNormalization`): what Envoy makes of a path before anything matches on it. Unless the
 * mesh configuration asks for less, `//` is merged and escaped slashes are decoded, since servers may take them for one.
 */
import type { MeshConfig } from '../config/mesh-config.ts'

type Normalization = MeshConfig['pathNormalization']['normalization']

/** Whether slashes in a row become one. */
export function mergesSlashes(normalization: Normalization | undefined): boolean {
  return normalization !== 'NONE' && normalization !== 'BASE'
}

/** Whether `%2F` and `%5C` become slashes. */
export function decodesSlashes(normalization: Normalization | undefined): boolean {
  return mergesSlashes(normalization) && normalization !== 'MERGE_SLASHES'
}

/**
 * What a path is to policies: without its query, and as Envoy normalizes it (RFC 3986, section 6.2.2, as browsers do): dot
 * segments resolved, backslashes turned into slashes, characters decoded that need no encoding.
 */
export function normalizePath(path: string, normalization: Normalization | undefined): string {
  const end = path.search(/[?#]/)
  let result = end < 0 ? path : path.slice(0, end)
  if (decodesSlashes(normalization)) result = result.replace(/%2f/gi, '/').replace(/%5c/gi, '\\')
  if (normalization !== 'NONE') {
    const decoded = result.replace(/%([0-9a-f]{2})/gi, (escaped, digits: string) => {
      const character = String.fromCharCode(Number.parseInt(digits, 16))
      return /[A-Za-z0-9._~-]/.test(character) ? character : escaped
    })
    result = URL.parse(`http://x${decoded}`)?.pathname ?? decoded
  }
  return mergesSlashes(normalization) ? result.replace(/\/{2,}/g, '/') : result
}
