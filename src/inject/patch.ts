/** The difference of two objects as a JSON Patch (RFC 6902). */
import patches from 'fast-json-patch'
import type { PatchOperation } from '../../protocols/messages/admission.ts'

/** Returns the operations that make `after` of `before`, both JSON. */
export function jsonPatch(before: unknown, after: unknown): PatchOperation[] {
  const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
  if (!isObject(before) || !isObject(after)) return [{ op: 'replace', path: '', value: after }]
  return patches.compare(before, after) as PatchOperation[]
}
