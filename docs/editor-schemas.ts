/**
 * Makes the JSON Schemas by which editors complete and check objects of the mesh (`schemas/`), from the declarations that make their
 * CustomResourceDefinitions.
 */
import type { Kind } from '../src/config/kinds/kind.ts'
import { type KindName, kinds } from '../src/config/kinds.ts'
import { groupSpellings } from '../src/names/mesh-names.ts'
import { descriptionOf, hasRequiredFields, type Schema, specSchema } from './crds.ts'

/** The dialect that editors read. */
const dialect = 'http://json-schema.org/draft-07/schema#'

const isSchema = (value: unknown): value is Schema => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Words of OpenAPI that JSON Schema does not have. */
const foreign = ['format', 'x-kubernetes-preserve-unknown-fields']

/**
 * Returns a schema of OpenAPI as JSON Schema. Fields that are not declared are permitted nowhere: an editor is to show a misspelt one. A value of
 * any kind has no condition.
 */
function forEditors(schema: Schema): Schema {
  const own = Object.entries(schema).filter(([word]) => !foreign.includes(word))
  const { properties, ...others } = Object.fromEntries(
    own.map(([word, value]) => [word, isSchema(value) && word !== 'properties' ? forEditors(value) : value]),
  )
  if (!isSchema(properties)) return others
  const fields = Object.entries(properties).map(([name, field]) => [name, isSchema(field) ? forEditors(field) : field])
  return { ...others, properties: Object.fromEntries(fields), additionalProperties: false }
}

const texts = { type: 'object', additionalProperties: { type: 'string' } }

/** The spellings of the API versions of a kind, in both groups. */
const versionsOf = ({ group, versions }: Kind<KindName>): string[] =>
  groupSpellings(group).flatMap((spelling) => versions.map((version) => `${spelling}/${version}`))

/** Returns the schema of the documents of a kind. */
function documentSchema(kind: Kind<KindName>): Schema {
  return {
    $schema: dialect,
    title: kind.name,
    description: descriptionOf(kind),
    type: 'object',
    required: ['apiVersion', 'kind', 'metadata', ...(hasRequiredFields(kind) ? ['spec'] : [])],
    properties: {
      apiVersion: { enum: versionsOf(kind) },
      kind: { const: kind.name },
      metadata: {
        type: 'object',
        required: ['name'],
        properties: { name: { type: 'string' }, namespace: { type: 'string' }, labels: texts, annotations: texts },
      },
      spec: forEditors(specSchema(kind)),
      status: { description: 'What the control plane says of the object.', type: 'object' },
    },
    additionalProperties: false,
  }
}

/** Returns the schema of documents of all kinds; those of other groups are not judged. */
function meshSchema(all: readonly Kind<KindName>[]): Schema {
  const ofKind = all.map((kind) => ({
    if: { required: ['apiVersion', 'kind'], properties: { apiVersion: { enum: versionsOf(kind) }, kind: { const: kind.name } } },
    // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema.
    then: { $ref: `${kind.name}.json` },
  }))
  const groups = [...new Set(all.map(({ group }) => group))].flatMap((group) => groupSpellings(group))
  const ofGroup = groups.map((group) => ({
    if: { required: ['apiVersion'], properties: { apiVersion: { pattern: `^${group.replaceAll('.', '\\.')}/` } } },
    // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema.
    then: {
      required: ['kind'],
      properties: {
        apiVersion: { enum: [...new Set(all.flatMap(versionsOf))].filter((version) => version.startsWith(`${group}/`)) },
        kind: { enum: all.filter((kind) => groupSpellings(kind.group).includes(group)).map(({ name }) => name) },
      },
    },
  }))
  return { $schema: dialect, title: 'Objects of the mesh', type: 'object', allOf: [...ofGroup, ...ofKind] }
}

/** Returns the files of `schemas/`, by name: one for each kind, and `mesh.json` for all. */
export function schemaFiles(): Map<string, string> {
  const all = [...kinds.values()]
  const textOf = (schema: Schema) => `${JSON.stringify(schema, undefined, 1)}\n`
  return new Map([['mesh.json', textOf(meshSchema(all))], ...all.map((kind) => [`${kind.name}.json`, textOf(documentSchema(kind))] as const)])
}
