/** What applying documents does to the objects of a mesh. */
import type { ConfigObject } from '../../../protocols/data.ts'
import type { Change, DryRunFault, GivenText } from '../../../protocols/messages/dry-run.ts'
import { configKey, kinds } from '../../config/kinds.ts'
import type { OptOuts } from '../../config/opt-outs.ts'
import { type DocumentFault, faultyFile, type ParsedFile, parseConfigFile } from '../../config/parse.ts'
import { PatternChecks } from '../../config/patterns.ts'
import { isPolicyKind } from '../../config/recognise.ts'
import { contest } from '../../config/stand-in.ts'
import { compare } from '../../model/order.ts'
import type { MeshNames } from '../../names/mesh-names.ts'

/** How documents are read, and what they are applied to. */
export interface Applying {
  readonly names: MeshNames
  readonly optOuts: OptOuts
  readonly revision: string
  /** The namespace of objects of documents that name none; undefined: they are in none. */
  readonly namespace: string | undefined
  /** The objects of kinds of the mesh that there are, by key. */
  readonly present: ReadonlyMap<string, ConfigObject>
  /** Whether objects that are in no document are removed, but those that a control plane made. */
  readonly replace: boolean
  readonly isMade: (object: ConfigObject) => boolean
  /** Unix milliseconds. */
  readonly at: number
}

/** An object that would differ. */
export interface ChangedObject {
  readonly key: string
  readonly change: Change
  /** What counts then; of a removed one what counted before. */
  readonly object: ConfigObject
}

/** What follows from documents. */
export interface Applied {
  readonly faults: readonly DryRunFault[]
  readonly objects: readonly ChangedObject[]
  /** The objects of the documents that the mesh has as they are. */
  readonly same: number
  /** Objects that a document has and that cannot be used, with what counts in place of a policy that never could. */
  readonly unusable: ReadonlyMap<string, ConfigObject | undefined>
  readonly foreign: Readonly<Record<string, number>>
}

/** Reads documents and says what they change. */
export function applied(texts: readonly GivenText[], applying: Applying): Applied {
  const reading = new Reading(applying)
  for (const given of [...texts].sort((one, other) => compare(one.name, other.name))) reading.file(given)
  return reading.result()
}

class Reading {
  readonly #applying: Applying
  readonly #defined = new Map<string, [ConfigObject, ...ConfigObject[]]>()
  readonly #unusable = new Map<string, ConfigObject | undefined>()
  readonly #faults: DryRunFault[] = []
  readonly #foreign: Record<string, number> = Object.create(null)
  /** Whether the present objects are of an orchestrator, which sets their times of creation and keeps labels that no document has. */
  readonly #isStored: boolean

  constructor(applying: Applying) {
    this.#applying = applying
    this.#isStored = [...applying.present.values()].some(({ uid }) => uid !== '')
  }

  file({ name, text }: GivenText): void {
    const { names, optOuts, revision, namespace } = this.#applying
    const patterns = new PatternChecks()
    const read = parseConfigFile(name, text, names, patterns, optOuts, revision, 'files', { namespace })
    const parsed: ParsedFile = patterns.isExhausted ? faultyFile(name, 'its regular expressions take too long to compile') : read
    const tell = (level: DryRunFault['level'], { file, document, key = '', path, reason }: DocumentFault) =>
      this.#faults.push({ level, file, document, key, path, reason })
    for (const fault of parsed.faults) {
      tell('error', fault)
      if (fault.key !== undefined) this.#unusable.set(fault.key, undefined)
    }
    for (const warning of parsed.warnings) tell('warning', warning)
    for (const [key, object] of parsed.standIns) this.#unusable.set(key, object)
    for (const object of parsed.objects) this.#define(object)
    const secrets = parsed.secrets.length
    for (const [kind, count] of [...parsed.foreign, ...(secrets > 0 ? [['Secret', secrets] as const] : [])])
      this.#foreign[kind] = (this.#foreign[kind] ?? 0) + count
  }

  #define(object: ConfigObject): void {
    const key = configKey(object)
    // Pods, namespaces and nodes are of the cluster, and not applied.
    if (!kinds.has(object.kind)) {
      this.#foreign[object.kind] = (this.#foreign[object.kind] ?? 0) + 1
      return
    }
    const others = this.#defined.get(key)
    if (others) others.push(object)
    else this.#defined.set(key, [object])
  }

  result(): Applied {
    const { present, replace, isMade } = this.#applying
    const objects: ChangedObject[] = []
    let same = 0
    for (const [key, definitions] of this.#defined) {
      this.#unusable.delete(key)
      const before = present.get(key)
      const object = this.#stored(this.#counting(key, definitions), before)
      if (before && contentOf(before) === contentOf(object)) same++
      else objects.push({ key, change: before ? 'changed' : 'added', object })
    }
    if (replace)
      for (const [key, object] of present)
        if (!this.#defined.has(key) && !this.#unusable.has(key) && !isMade(object)) objects.push({ key, change: 'removed', object })
    objects.sort((one, other) => compare(one.key, other.key))
    return { faults: this.#faults, objects, same, unusable: this.#unusable, foreign: { ...this.#foreign } }
  }

  /** Of several definitions the first counts, and of policies that differ none (docs/operation.md, F4). */
  #counting(key: string, definitions: readonly [ConfigObject, ...ConfigObject[]]): ConfigObject {
    const [first, ...others] = definitions
    for (const { place } of others) {
      const [, file = place, document = '0'] = /^(.*), document (\d+)$/.exec(place) ?? []
      const reason = `the same object is in ${first.place}; ${isPolicyKind(first.kind) ? 'if they differ, neither counts' : 'the first one counts'}: remove one`
      this.#faults.push({ level: 'warning', file, document: Number(document), key, path: 'metadata.name', reason })
    }
    return isPolicyKind(first.kind) ? contest(definitions, 'it is defined in several documents') : first
  }

  /** The object as its source would have it. */
  #stored(object: ConfigObject, before: ConfigObject | undefined): ConfigObject {
    if (!before) return this.#isStored ? { ...object, createdAt: this.#applying.at } : object
    const { createdAt, generation, uid, source, cluster, healthy } = before
    const kept = uid === '' ? {} : { labels: { ...before.labels, ...object.labels }, annotations: { ...before.annotations, ...object.annotations } }
    return { ...object, ...kept, createdAt, generation: generation + 1, uid, source, cluster, ...(healthy === undefined ? {} : { healthy }) }
  }
}

/** What of an object counts for proxies, in whatever order its fields are written. */
const contentOf = ({ spec, labels, annotations }: ConfigObject): string => JSON.stringify([spec, labels, annotations], inOrder)

const inOrder = (_: string, value: unknown): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([one], [other]) => compare(one, other)))
    : value
