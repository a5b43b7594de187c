/**
 * Searches documents that cannot be parsed for the objects that they may contain. A recognised policy gets a stand-in; an unrecognised
 * document may contain any object.
 */
import { distance } from '../model/edit-distance.ts'
import type { MeshNames } from '../names/mesh-names.ts'
import { clusterKinds, kinds } from './kinds.ts'

/** A recognised object. Namespace and name are empty when they cannot be read. */
export interface Recognised {
  readonly kind: string
  readonly namespace: string
  readonly name: string
}

/** The recognised objects of declared kinds, including Secrets and those of clusters, and whether there are objects of other kinds. */
export interface Sight {
  readonly objects: readonly Recognised[]
  readonly others: boolean
}

const policyKinds = [...kinds.values()].filter(({ group }) => group === 'security').map(({ name }) => name)

/** Whether objects of a kind are policies. An invalid policy must not be ignored, because less would be denied. */
export const isPolicyKind = (kind: string): boolean => kinds.get(kind)?.group === 'security'

/** The maximum number of typing errors in a name. */
const maxMistakes = 3

/**
 * Returns the kind of policy that a document probably means when its kind or group is misspelt. Undefined when it means something else:
 * other products have kinds of these names in groups of their own. An unknown kind in the security group is treated as an
 * AuthorizationPolicy, the kind that can deny most.
 */
export function meantPolicy(kindName: string, apiVersion: string, names: MeshNames): string | undefined {
  const group = groupOf(apiVersion)
  const isOurs = names.canonicalGroup(group) === `security.${names.domain}`
  const near = nearestPolicy(kindName)
  if (near === undefined && kinds.has(kindName)) return undefined
  if (near !== undefined) return isOurs || !apiVersion.includes('/') || mayMeanOurs(group, names) ? near : undefined
  return isOurs || distance(group, `security.${names.domain}`) <= 2 || distance(group, 'security.istio.io') <= 2 ? 'AuthorizationPolicy' : undefined
}

/** The API groups of the mesh, without its domain. */
const meshGroups: ReadonlySet<string> = new Set([...kinds.values()].map(({ group }) => group))

/** The maximum number of typing errors in a kind or group that is not a policy's. */
const maxOtherMistakes = 2

/**
 * Returns the declared kind that a document of an unknown kind or group probably means; `none` when the group is one of the mesh and no
 * kind is similar, as for kinds of newer releases. Undefined for documents of other products.
 */
export function meantKind(kindName: string, apiVersion: string, names: MeshNames): string | 'none' | undefined {
  const written = plain(kindName)
  const near = [...kinds.values()]
    .map((kind) => ({ kind, mistakes: distance(written, plain(kind.name)) }))
    .reduce((best, next) => (next.mistakes < best.mistakes ? next : best))
  const group = groupOf(apiVersion)
  const canonical = names.canonicalGroup(group)
  const isOurs = [...meshGroups].some((one) => canonical === `${one}.${names.domain}`)
  if (near.mistakes > maxOtherMistakes) return isOurs ? 'none' : undefined
  const mayBeOurs = [names.domain, 'istio.io'].some((domain) => distance(group, `${near.kind.group}.${domain}`) <= maxOtherMistakes)
  return isOurs || mayBeOurs || !apiVersion.includes('/') ? near.kind.name : undefined
}

/**
 * Returns the suggestion of a kind, with its group in the form, of the mesh or of the alias, that is nearer to what is written. Of a group that is
 * right and stands alone, the version is what is missing.
 */
export function meantText(kindName: string, apiVersion: string, names: MeshNames): string {
  const written = (apiVersion.includes('/') ? groupOf(apiVersion) : apiVersion).slice(0, 100)
  const kind = kinds.get(kindName)
  const [own, alias] = [names.domain, 'istio.io'].map((domain) => `${kind?.group}.${domain}`) as [string, string]
  if (apiVersion === own || apiVersion === alias) return `the version is missing: did you mean ${kindName} of ${apiVersion}/${kind?.versions.at(-1)}?`
  return `did you mean ${kindName} of ${distance(written, alias) < distance(written, own) || written.endsWith('.istio.io') ? alias : own}?`
}

const groupOf = (apiVersion: string): string => (apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '')

/** Whether a group may be a misspelt group of the mesh: it has the mesh's domain, or its first label is `security` or similar. */
function mayMeanOurs(group: string, names: MeshNames): boolean {
  const [first = ''] = group.split('.')
  return (
    names.canonicalGroup(group).endsWith(`.${names.domain}`) ||
    distance(first, 'security') <= 2 ||
    distance(group, 'security.istio.io') <= maxMistakes
  )
}

function nearestPolicy(kindName: string): string | undefined {
  const written = plain(kindName)
  return policyKinds.find((kind) => distance(written, plain(kind)) <= maxMistakes)
}

const plain = (name: string): string =>
  name
    .slice(0, 64)
    .toLowerCase()
    .replace(/[^a-z]/g, '')

/** Patterns for field names in YAML and JSON with a word as value. */
const kindField = /(?<![\w.-])["']?kind["']?[ \t]*:[ \t]*["']?([A-Za-z][A-Za-z0-9_-]{0,63})/gi
const versionField = /(?<![\w.-])["']?api_?version["']?[ \t]*:[ \t]*["']?([A-Za-z0-9./_-]{1,128})/gi
const metadataField = /(?<![\w.-])["']?metadata["']?[ \t]*:/gi
const specField = /(?<![\w.-])["']?spec["']?[ \t]*:/i
const namespaceField = /(?<![\w.-])["']?namespace["']?[ \t]*:[ \t]*["']?([A-Za-z0-9][A-Za-z0-9._-]{0,252})/i
const nameField = /(?<![\w.-])["']?name["']?[ \t]*:[ \t]*["']?([A-Za-z0-9][A-Za-z0-9._-]{0,252})/i

/** Searches a text, which need not be valid YAML, for objects. Takes time proportional to its length. */
export function recognise(content: string, names: MeshNames): Sight {
  // Removes comments that take up a whole line. Others may be part of a text.
  const text = content.replace(/^[ \t]*#.*$/gm, '')
  const marks = [...text.matchAll(kindField)].map(({ index, 1: kind = '' }) => ({ index, kind }))
  const versions = [...text.matchAll(versionField)].map(({ index, 1: version = '' }) => ({ index, version }))
  if (marks.length === 0) {
    const policy = wordsOf(text)
      .map(nearestPolicy)
      .find((kind) => kind !== undefined)
    const meant = policy ?? versions.map(({ version }) => meantPolicy('', version, names)).find((kind) => kind !== undefined)
    return { objects: meant === undefined ? [] : [{ kind: meant, ...metadataOf(text) }], others: false }
  }
  const objects: Recognised[] = []
  let others = false
  for (const { kind, segment, version } of segments(text, marks, versions)) {
    const isCore = kind === 'Secret' || (clusterKinds.has(kind) && (version === 'v1' || version === ''))
    const meant = meantPolicy(kind, version, names) ?? (isCore || (kinds.has(kind) && !isPolicyKind(kind)) ? kind : undefined)
    if (meant === undefined) others = true
    else objects.push({ kind: meant, ...metadataOf(segment) })
  }
  return { objects, others }
}

/** Returns the words of a text that are about as long as the name of a policy kind. */
const wordsOf = (text: string): string[] => text.match(/[A-Za-z]{15,24}/g)?.slice(0, 1000) ?? []

interface Segment {
  readonly kind: string
  readonly version: string
  readonly segment: string
}

/** Splits a text into segments with one kind each. Where the version comes before the kind, the segment begins with the version. */
function* segments(
  text: string,
  marks: readonly { readonly index: number; readonly kind: string }[],
  versions: readonly { readonly index: number; readonly version: string }[],
): Generator<Segment> {
  const metadata = [...text.matchAll(metadataField)].map(({ index }) => index)
  let [v, m] = [0, 0]
  const starts = marks.map(({ index }) => {
    while (v < versions.length && (versions[v]?.index ?? 0) < index) v++
    while (m < metadata.length && (metadata[m] ?? 0) < index) m++
    const before = versions[v - 1]?.index ?? -1
    return before > (metadata[m - 1] ?? -1) ? before : index
  })
  let at = 0
  for (const [i, { kind }] of marks.entries()) {
    const start = i === 0 ? 0 : (starts[i] ?? 0)
    const end = starts[i + 1] ?? text.length
    while (at < versions.length && (versions[at]?.index ?? 0) < start) at++
    const version = (versions[at]?.index ?? text.length) < end ? (versions[at]?.version ?? '') : ''
    yield { kind, version, segment: text.slice(start, end) }
  }
}

/** Returns the name and namespace of the only object in a text: those between its metadata and its spec, otherwise the first. */
function metadataOf(text: string): Pick<Recognised, 'namespace' | 'name'> {
  const start = text.search(metadataField)
  const after = start < 0 ? text : text.slice(start)
  const spec = after.search(specField)
  const piece = spec > 0 ? after.slice(0, spec) : after
  return { namespace: namespaceField.exec(piece)?.[1] ?? '', name: nameField.exec(piece)?.[1] ?? '' }
}
