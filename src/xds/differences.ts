/** What two resources differ in. Resources are JSON with the names of their schema. */
import type { JsonObject, JsonValue } from '@bufbuild/protobuf'

/** The maximum number of differences that are told of one resource. */
const mostDifferences = 10

/** A field in which two resources differ; a value is undefined where the field is not set. */
export interface Difference {
  readonly field: string
  readonly sent: JsonValue | undefined
  readonly held: JsonValue | undefined
}

/** Returns the first fields in which what a proxy has differs from what it was sent. A value that the proxy does not show counts as equal. */
export function differences(sent: JsonValue | undefined, held: JsonValue | undefined): Difference[] {
  const found: Difference[] = []
  compareAt('', sent, held, found)
  return found
}

function compareAt(field: string, sent: JsonValue | undefined, held: JsonValue | undefined, found: Difference[]): void {
  if (found.length >= mostDifferences || sent === held || isRedacted(held)) return
  if (Array.isArray(sent) && Array.isArray(held)) {
    for (let index = 0; index < Math.max(sent.length, held.length); index++) compareAt(`${field}[${index}]`, sent[index], held[index], found)
    return
  }
  if (isObject(sent) && isObject(held)) {
    for (const name of new Set([...Object.keys(sent), ...Object.keys(held)]))
      compareAt(field === '' ? name : `${field}.${name}`, sent[name], held[name], found)
    return
  }
  found.push({ field, sent, held })
}

/** What Envoy writes in place of texts and bytes that are secret. */
const isRedacted = (value: JsonValue | undefined): boolean => value === '[redacted]' || value === 'W3JlZGFjdGVkXQ=='

const isObject = (value: JsonValue | undefined): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value)
