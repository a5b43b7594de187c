/** Reads fields of resources that are JSON with the names of their schema. What is missing, or of another type, is empty. */
import type { JsonObject } from '@bufbuild/protobuf'

export const isObject = (value: unknown): value is JsonObject => typeof value === 'object' && value !== null && !Array.isArray(value)

/** The object in a value at the end of a path of fields. */
export const objectAt = (value: unknown, ...path: readonly string[]): JsonObject =>
  path.reduce((inner, name) => (isObject(inner[name]) ? inner[name] : {}), isObject(value) ? value : {})

/** The objects of a list. */
export const objectsOf = (value: unknown): readonly JsonObject[] => (Array.isArray(value) ? value.filter(isObject) : [])

/** The text of a value, which may be a number or a flag; `otherwise` where there is none. */
export const textOf = (value: unknown, otherwise = ''): string =>
  typeof value === 'string' && value !== '' ? value : typeof value === 'number' || typeof value === 'boolean' ? String(value) : otherwise
