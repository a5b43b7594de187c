/** What a writer knows of the configuration: slabs, groups with their recent history, and the groups of each class. */
import type { GroupPatch, Manifest, ResourceData, SlabData } from '../../../protocols/messages/push.ts'
import { deltaResourceHead } from '../slab/wire.ts'

/** One resource, ready to be written. */
export interface Entry {
  readonly name: string
  readonly version: string
  /** Slices of shared memory; one after another they are a list element of a response. */
  readonly chunks: readonly Buffer[]
  readonly length: number
  /** Sequence of the group at which this content appeared. */
  readonly since: number
}

interface LogRecord {
  readonly sequence: number
  readonly changed: readonly string[]
  /** Those of the changed that were not there before. */
  readonly added: readonly string[]
  readonly removed: readonly string[]
}

/** Patches a group remembers; who is further behind gets everything. */
const historyLength = 64

/** A group of resources with its history. */
export class Group {
  readonly id: string
  sequence = 0
  version = ''
  readonly entries = new Map<string, Entry>()
  #log: LogRecord[] = []

  constructor(id: string) {
    this.id = id
  }

  /** Takes over a patch. Returns whether any content changed: moved bytes alone are no change. */
  apply(patch: GroupPatch, chunksOf: (data: ResourceData) => Buffer[]): boolean {
    const replaced = patch.base === 0 || patch.base !== this.sequence
    const changed: string[] = []
    const added: string[] = []
    const removed = new Set(patch.removed)
    if (replaced) {
      const kept = new Set(patch.changed.map((data) => data.name))
      for (const name of this.entries.keys()) if (!kept.has(name)) removed.add(name)
    }
    for (const data of patch.changed) {
      const before = this.entries.get(data.name)
      const same = before?.version === data.version
      const chunks = chunksOf(data)
      this.entries.set(data.name, {
        name: data.name,
        version: data.version,
        chunks,
        length: chunks.reduce((sum, chunk) => sum + chunk.length, 0),
        since: same ? before.since : patch.sequence,
      })
      if (!same) changed.push(data.name)
      if (!before) added.push(data.name)
    }
    for (const name of removed) if (!this.entries.delete(name)) removed.delete(name)
    this.sequence = patch.sequence
    this.version = patch.version
    this.#log.push({ sequence: patch.sequence, changed, added, removed: [...removed] })
    if (this.#log.length > historyLength) this.#log.shift()
    return changed.length > 0 || removed.size > 0
  }

  /** Names that changed and names that went since a sequence; undefined when the history does not reach back so far. */
  since(sequence: number): { changed: Set<string>; added: Set<string>; removed: Set<string> } | undefined {
    if (sequence === this.sequence) return { changed: new Set(), added: new Set(), removed: new Set() }
    if (!this.#log.some((record) => record.sequence === sequence)) return undefined
    const changed = new Set<string>()
    const added = new Set<string>()
    const removed = new Set<string>()
    for (const record of this.#log) {
      if (record.sequence <= sequence) continue
      for (const name of record.changed) {
        changed.add(name)
        removed.delete(name)
      }
      for (const name of record.added) added.add(name)
      for (const name of record.removed) {
        removed.add(name)
        changed.delete(name)
      }
    }
    return { changed, added, removed }
  }

  /** Every name that is in the group or was removed from it within its history. */
  namesEver(): Set<string> {
    return new Set([...this.entries.keys(), ...this.#log.flatMap((record) => record.removed)])
  }
}

/** The state of one type for one class: its groups, and a version made of theirs. */
export interface TypeState {
  readonly groups: readonly Group[]
  readonly version: string
}

/** All a writer knows. */
export class Catalog {
  readonly #slabs = new Map<number, Buffer>()
  readonly #groups = new Map<string, Group>()
  readonly #classes = new Map<string, Manifest>()
  /** States of types by class; one stays the same object until a push changes it. */
  readonly #states = new Map<string, Map<string, TypeState>>()

  /** Takes over a push. Returns the ids of groups whose content changed. */
  apply(push: {
    readonly slabs: readonly SlabData[]
    readonly retiredSlabs: readonly number[]
    readonly groups: readonly GroupPatch[]
    readonly retiredGroups: readonly string[]
    readonly manifests: readonly Manifest[]
    readonly retiredClasses: readonly string[]
  }): Set<string> {
    for (const slab of push.slabs) this.#slabs.set(slab.id, Buffer.from(slab.bytes))
    const changed = new Set<string>()
    for (const patch of push.groups) {
      let group = this.#groups.get(patch.group)
      if (!group) this.#groups.set(patch.group, (group = new Group(patch.group)))
      if (group.apply(patch, (data) => this.#chunksOf(data))) changed.add(patch.group)
    }
    for (const manifest of push.manifests) {
      this.#classes.set(manifest.classId, manifest)
      this.#states.delete(manifest.classId)
    }
    this.#dropStates(changed)
    for (const id of push.retiredGroups) this.#groups.delete(id)
    for (const id of push.retiredClasses) {
      this.#classes.delete(id)
      this.#states.delete(id)
    }
    for (const id of push.retiredSlabs) this.#slabs.delete(id)
    return changed
  }

  hasClass(classId: string): boolean {
    return this.#classes.has(classId)
  }

  /** Forgets slabs by number: a new push queue numbers its own. Resources keep the bytes they use. */
  forgetSlabs(): void {
    this.#slabs.clear()
  }

  /** The state of a type for a class. */
  typeState(classId: string, typeUrl: string): TypeState {
    const ids = this.#classes.get(classId)?.groups[typeUrl]
    if (!ids) return nothing
    let states = this.#states.get(classId)
    if (!states) this.#states.set(classId, (states = new Map()))
    let state = states.get(typeUrl)
    if (!state) {
      const groups = ids.flatMap((id) => this.#groups.get(id) ?? [])
      states.set(typeUrl, (state = { groups, version: combineVersions(groups) }))
    }
    return state
  }

  #dropStates(changed: ReadonlySet<string>): void {
    for (const states of this.#states.values())
      for (const [typeUrl, state] of states) if (state.groups.some((group) => changed.has(group.id))) states.delete(typeUrl)
  }

  /** Whether a class uses one of these groups. */
  usesAny(classId: string, groups: ReadonlySet<string>): boolean {
    return Object.values(this.#classes.get(classId)?.groups ?? {}).some((ids) => ids.some((id) => groups.has(id)))
  }

  #chunksOf(data: ResourceData): Buffer[] {
    const chunks: Buffer[] = []
    for (let i = 0; i < data.slices.length; i += 3) {
      const slab = this.#slabs.get(data.slices[i] as number)
      if (!slab) throw new Error(`resource ${data.name} refers to slab ${data.slices[i]}, which is not there`)
      const offset = data.slices[i + 1] as number
      chunks.push(slab.subarray(offset, offset + (data.slices[i + 2] as number)))
    }
    return chunks
  }
}

/** A type of which a class has nothing. */
const nothing: TypeState = { groups: [], version: '0000000000000000' }

function combineVersions(groups: readonly Group[]): string {
  const [only] = groups
  if (groups.length === 1 && only) return only.version
  let high = 0
  let low = 0
  for (const { version } of groups) {
    high = (high + Number.parseInt(version.slice(0, 8), 16)) >>> 0
    low = (low + Number.parseInt(version.slice(8), 16)) >>> 0
  }
  return high.toString(16).padStart(8, '0') + low.toString(16).padStart(8, '0')
}

/** Chunks of many entries, neighbours in memory joined, small ones copied together: few writes, however many resources. */
export function joinChunks(entries: Iterable<Entry>, delta: boolean): Buffer[] {
  const joined: Buffer[] = []
  let small: Buffer[] = []
  const flush = () => {
    if (small.length === 1) joined.push(small[0] as Buffer)
    else if (small.length > 1) joined.push(Buffer.concat(small))
    small = []
  }
  let last: Buffer | undefined
  const add = (chunk: Buffer) => {
    if (last && chunk.buffer === last.buffer && chunk.byteOffset === last.byteOffset + last.length) {
      last = Buffer.from(last.buffer, last.byteOffset, last.length + chunk.length)
      return
    }
    if (last) push(last)
    last = chunk
  }
  const push = (chunk: Buffer) => {
    if (chunk.length < smallChunk) small.push(chunk)
    else {
      flush()
      joined.push(chunk)
    }
  }
  for (const entry of entries) {
    if (delta) add(deltaResourceHead(entry.name, entry.version, entry.length))
    for (const chunk of entry.chunks) add(chunk)
  }
  if (last) push(last)
  flush()
  return joined
}

/** Chunks below this many bytes are cheaper to copy than to write on their own. */
const smallChunk = 16_384
