/** Holds values to a JSON schema of draft 4, as far as schemas of tests use it. */
import { isDeepStrictEqual } from 'node:util'

type Schema = Readonly<Record<string, unknown>>

/** The words that are understood, and those that say nothing of a value. */
const words = {
  checked: [
    '$ref',
    'type',
    'properties',
    'required',
    'additionalProperties',
    'items',
    'enum',
    'anyOf',
    'oneOf',
    'minimum',
    'maximum',
    'minItems',
    'uniqueItems',
    'pattern',
  ],
  silent: ['$schema', 'id', 'title', 'description', 'default', 'definitions', 'format'],
}

const isMapping = (value: unknown): value is Schema => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Returns what is wrong with a value, each with its place. Throws an Error for a schema with a word that is not understood. */
export function schemaFaults(root: Schema, value: unknown): string[] {
  return faults(root, value, '', root)
}

function faults(schema: Schema, value: unknown, at: string, root: Schema): string[] {
  for (const word of Object.keys(schema))
    if (!words.checked.includes(word) && !words.silent.includes(word)) throw new Error(`the schema has ${word}, which is not understood`)
  if (typeof schema.$ref === 'string') return faults(referenced(schema.$ref, root), value, at, root)
  const own = ownFaults(schema, value).map((reason) => `${at}: ${reason}`)
  if (Array.isArray(value) && isMapping(schema.items))
    for (const [index, item] of value.entries()) own.push(...faults(schema.items, item, `${at}[${index}]`, root))
  if (isMapping(value)) own.push(...fieldFaults(schema, value, at, root))
  for (const word of ['anyOf', 'oneOf'] as const) {
    const options = schema[word] as readonly Schema[] | undefined
    const fitting = options?.filter((option) => faults(option, value, at, root).length === 0).length ?? 1
    if (fitting === 0 || (word === 'oneOf' && fitting > 1)) own.push(`${at}: ${fitting} of ${word} fit`)
  }
  return own
}

function referenced(reference: string, root: Schema): Schema {
  let found: unknown = root
  for (const step of reference.replace(/^#\//, '').split('/')) found = (found as Schema)[step]
  if (!isMapping(found)) throw new Error(`the schema has no ${reference}`)
  return found
}

function fieldFaults({ properties = {}, required = [], additionalProperties }: Schema, value: Schema, at: string, root: Schema): string[] {
  const found = (required as readonly string[]).filter((name) => !Object.hasOwn(value, name)).map((name) => `${at}: ${name} is missing`)
  for (const [name, field] of Object.entries(value)) {
    const schema = Object.hasOwn(properties as Schema, name) ? (properties as Record<string, Schema>)[name] : additionalProperties
    if (schema === false) found.push(`${at}: ${name} is not permitted`)
    else if (isMapping(schema)) found.push(...faults(schema, field, `${at}.${name}`, root))
  }
  return found
}

const typeOf = (value: unknown): string =>
  Array.isArray(value) ? 'array' : value === null ? 'null' : Number.isInteger(value) ? 'integer' : typeof value

function* mistakes({ type, enum: values, minimum, maximum, minItems, uniqueItems, pattern }: Schema, value: unknown): Generator<string> {
  const own = typeOf(value)
  const types = ([] as unknown[]).concat(type ?? own)
  if (!types.includes(own) && !(types.includes('number') && own === 'integer')) yield `expected ${types.join(' or ')}, got ${own}`
  if (Array.isArray(values) && !values.some((each) => isDeepStrictEqual(each, value)))
    yield `${JSON.stringify(value)} is none of ${values.join(', ')}`
  if (typeof value === 'number' && ((minimum !== undefined && value < Number(minimum)) || (maximum !== undefined && value > Number(maximum))))
    yield `${value} is out of range`
  if (Array.isArray(value) && value.length < Number(minItems ?? 0)) yield `${value.length} items are too few`
  if (Array.isArray(value) && uniqueItems === true && new Set(value.map((item) => JSON.stringify(item))).size < value.length)
    yield 'an item is repeated'
  if (typeof value === 'string' && typeof pattern === 'string' && !new RegExp(pattern).test(value)) yield `does not match ${pattern}`
}

const ownFaults = (schema: Schema, value: unknown): string[] => [...mistakes(schema, value)]
