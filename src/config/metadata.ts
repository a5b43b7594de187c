/** Finds mistakes in the metadata of objects that no server would take, and that are read from files nonetheless (docs/operation.md, F22). */
import { suggestion } from '../model/edit-distance.ts'
import { type Fault, isMapping } from './shape.ts'

/** The fields of the metadata of objects. */
const fields: ReadonlySet<string> = new Set([
  'annotations',
  'clusterName',
  'creationTimestamp',
  'deletionGracePeriodSeconds',
  'deletionTimestamp',
  'finalizers',
  'generateName',
  'generation',
  'labels',
  'managedFields',
  'name',
  'namespace',
  'ownerReferences',
  'resourceVersion',
  'selfLink',
  'uid',
])

/** The most unknown fields that are told of an object. */
const mostUnknown = 20

/** The longest name that is compared with others. */
const longestCompared = 64

/** Tells unknown fields of metadata, and a name and namespace that no server takes. Values of wrong types are told where they are read. */
export function metadataRemarks(metadata: unknown): Fault[] {
  if (!isMapping(metadata)) return []
  const found: Fault[] = []
  for (const field in metadata) {
    if (fields.has(field) || found.length === mostUnknown) continue
    const near = field.length <= longestCompared ? suggestion(field, fields) : ''
    found.push({ path: `metadata.${field.slice(0, 100).toWellFormed()}`, reason: `unknown field, left out${near}` })
  }
  const { name, namespace } = metadata
  if (typeof name === 'string' && name !== '' && !subdomain.test(name))
    found.push({
      path: 'metadata.name',
      reason: `${shown(name)} is not a name that a cluster takes: ${letters}, "-" and ".", of which each part ${ends}`,
    })
  if (typeof namespace === 'string' && namespace !== '' && !label.test(namespace))
    found.push({
      path: 'metadata.namespace',
      reason: `${shown(namespace)} is not a name that a namespace can have: at most 63 ${letters} and "-", which ${ends}`,
    })
  return found
}

const letters = 'lower-case letters, digits'
const ends = 'begins and ends with a letter or digit'
const shown = (name: string): string => JSON.stringify(name.slice(0, 100))
const label = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/
const subdomain = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/
