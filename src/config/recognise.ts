/**
 * A tolerant look at documents that cannot be read: which objects they are of, as far as that can be seen. A policy that is recognised can be stood
 * in for; what is not recognised may be anything.
 */
import type { MeshNames } from '../names/mesh-names.ts'
import { kinds } from './kinds.ts'

/** An object as far as it is recognised: empty where namespace or name cannot be seen. */
export interface Recognised {
  readonly kind: string
  readonly namespace: string
  readonly name: string
}

/** What a text is seen to be: objects of kinds that are declared, Secrets among them, and whether objects of others are there. */
export interface Sight {
  readonly objects: readonly Recognised[]
  readonly others: boolean
}

const policyKinds = [...kinds.values()].filter(({ group }) => group === 'security').map(({ name }) => name)

/** Whether objects of a kind are policies, which must not be left out: less would be refused. */
export const isPolicyKind = (kind: string): boolean => kinds.get(kind)?.group === 'security'

/** Mistakes of the keyboard in a name that are looked past. */
const mostMistakes = 3

/**
 * The kind of policy that kind and group of a document may mean, although one of them is written wrong. Undefined where they mean something else:
 * other products have kinds of these names, in groups of their own. A kind of our group that nobody knows counts as the one that can refuse most.
 */
export function meantPolicy(kindName: string, apiVersion: string, names: MeshNames): string | undefined {
  const group = groupOf(apiVersion)
  const isOurs = names.canonicalGroup(group) === `security.${names.domain}`
  const near = nearestPolicy(kindName)
  if (near === undefined && kinds.has(kindName)) return undefined
  if (near !== undefined) return isOurs || !apiVersion.includes('/') || mayMeanOurs(group, names) ? near : undefined
  return isOurs || distance(group, `security.${names.domain}`) <= 2 || distance(group, 'security.istio.io') <= 2 ? 'AuthorizationPolicy' : undefined
}

const groupOf = (apiVersion: string): string => (apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '')

/** Whether a group could be one of ours that is written wrong: of our domain, or called `security`, or nearly so. */
function mayMeanOurs(group: string, names: MeshNames): boolean {
  const [first = ''] = group.split('.')
  return (
    names.canonicalGroup(group).endsWith(`.${names.domain}`) ||
    distance(first, 'security') <= 2 ||
    distance(group, 'security.istio.io') <= mostMistakes
  )
}

function nearestPolicy(kindName: string): string | undefined {
  const written = plain(kindName)
  return policyKinds.find((kind) => distance(written, plain(kind)) <= mostMistakes)
}

const plain = (name: string): string =>
  name
    .slice(0, 64)
    .toLowerCase()
    .replace(/[^a-z]/g, '')

/** How many letters have to be put in, left out or exchanged to make one text of another; many for texts of very different length. */
function distance(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > mostMistakes) return Number.POSITIVE_INFINITY
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let i = 1; i <= one.length; i++) {
    const next = [i]
    for (let j = 1; j <= other.length; j++)
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + (one[i - 1] === other[j - 1] ? 0 : 1)))
    row = next
  }
  return row[other.length] ?? 0
}

/** Field names as people write them in YAML and JSON, with a word as value. */
const kindField = /(?<![\w.-])["']?kind["']?[ \t]*:[ \t]*["']?([A-Za-z][A-Za-z0-9_-]{0,63})/gi
const versionField = /(?<![\w.-])["']?api_?version["']?[ \t]*:[ \t]*["']?([A-Za-z0-9./_-]{1,128})/gi
const metadataField = /(?<![\w.-])["']?metadata["']?[ \t]*:/gi
const specField = /(?<![\w.-])["']?spec["']?[ \t]*:/i
const namespaceField = /(?<![\w.-])["']?namespace["']?[ \t]*:[ \t]*["']?([A-Za-z0-9][A-Za-z0-9._-]{0,252})/i
const nameField = /(?<![\w.-])["']?name["']?[ \t]*:[ \t]*["']?([A-Za-z0-9][A-Za-z0-9._-]{0,252})/i

/** Looks for objects in a text that need not be YAML. Takes time in proportion to its length. */
export function recognise(content: string, names: MeshNames): Sight {
  // Comments that have a line to themselves; another may be part of a text.
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
    const meant = meantPolicy(kind, version, names) ?? (kind === 'Secret' || (kinds.has(kind) && !isPolicyKind(kind)) ? kind : undefined)
    if (meant === undefined) others = true
    else objects.push({ kind: meant, ...metadataOf(segment) })
  }
  return { objects, others }
}

/** The words of a text that are about as long as the name of a kind of policy. */
const wordsOf = (text: string): string[] => text.match(/[A-Za-z]{15,24}/g)?.slice(0, 1000) ?? []

interface Segment {
  readonly kind: string
  readonly version: string
  readonly segment: string
}

/** Cuts a text into pieces with one kind each. Where the version comes before the kind, the piece begins with it. */
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

/** Name and namespace of the one object of a text: of what stands between its metadata and its spec, else the first. */
function metadataOf(text: string): Pick<Recognised, 'namespace' | 'name'> {
  const start = text.search(metadataField)
  const after = start < 0 ? text : text.slice(start)
  const spec = after.search(specField)
  const piece = spec > 0 ? after.slice(0, spec) : after
  return { namespace: namespaceField.exec(piece)?.[1] ?? '', name: nameField.exec(piece)?.[1] ?? '' }
}
