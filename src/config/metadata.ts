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

/** The namespace of an object of a file that names none; a policy has to name one (docs/operation.md, F22). */
export const assumedNamespace = 'default'

/** The most unknown fields that are told of an object. */
const mostUnknown = 20

/** The longest name that is compared with others. */
const longestCompared = 64

/** Tells unknown fields of metadata, and a name, namespace, labels and annotations that no server takes. Values of wrong types are told where they are read. */
export function metadataRemarks(metadata: unknown, at = 'metadata'): Fault[] {
  if (!isMapping(metadata)) return []
  const found: Fault[] = []
  for (const field in metadata) {
    if (fields.has(field) || found.length === mostUnknown) continue
    const near = field.length <= longestCompared ? suggestion(field, fields) : ''
    found.push({ path: `${at}.${field.slice(0, 100).toWellFormed()}`, reason: `unknown field, left out${near}` })
  }
  const { name, namespace } = metadata
  if (typeof name === 'string' && name !== '' && !subdomain.test(name))
    found.push({
      path: `${at}.name`,
      reason: `${shown(name)} is not a name that a cluster takes: ${letters}, "-" and ".", of which each part ${ends}`,
    })
  if (typeof namespace === 'string' && namespace !== '' && !label.test(namespace))
    found.push({
      path: `${at}.namespace`,
      reason: `${shown(namespace)} is not a name that a namespace can have: at most 63 ${letters} and "-", which ${ends}`,
    })
  return [...found, ...keyRemarks(metadata.labels, `${at}.labels`, true), ...keyRemarks(metadata.annotations, `${at}.annotations`, false)]
}

/** Tells names of labels or annotations, and values of labels, that no server takes; of very many the first ones. */
function keyRemarks(map: unknown, at: string, areLabels: boolean): Fault[] {
  if (!isMapping(map)) return []
  const found: Fault[] = []
  for (const key in map) {
    if (found.length >= mostUnknown) break
    const value = map[key]
    const path = `${at}[${key.slice(0, 100).toWellFormed()}]`
    // A server does not look at the case of letters in the names of annotations.
    if (!isQualified(areLabels ? key : key.toLowerCase()))
      found.push({ path, reason: `no cluster takes this name: ${part}, after "<prefix>/" or without; a prefix has ${letters}, "-" and "."` })
    if (areLabels && typeof value === 'string' && value !== '' && !qualified.test(value))
      found.push({ path, reason: `${shown(value)} is not a value that a cluster takes for a label: ${part}, or empty` })
  }
  return found
}

/** Whether a text is a name of a label, `<prefix>/<name>` or `<name>`. */
function isQualified(key: string): boolean {
  const slash = key.indexOf('/')
  return qualified.test(key.slice(slash + 1)) && (slash < 0 || subdomain.test(key.slice(0, slash)))
}

const letters = 'lower-case letters, digits'
const ends = 'begins and ends with a letter or digit'
const shown = (name: string): string => JSON.stringify(name.slice(0, 100))
const part = 'at most 63 letters, digits, "-", "_" and ".", which begin and end with a letter or digit'
const qualified = /^(?=.{1,63}$)[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/
const label = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/
const subdomain = /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/
