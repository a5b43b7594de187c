/** What a writer knows of the configuration: slabs, groups of resources as they are now, and the groups of each class. */
import type { GroupPatch, PushContent, ResourceData } from '../../../protocols/messages/push.ts'
import { addSums, readSum, versionOfSum, zeroSum } from '../slab/sums.ts'
import { deltaResourceHead } from '../slab/wire.ts'
import { Contents } from './contents.ts'

/** One resource, ready to be written. */
export interface Entry {
  readonly name: string
  readonly version: string
  /** Slices of shared memory; one after another they are a list element of a response. */
  readonly chunks: readonly Buffer[]
  readonly length: number
}

/** A group of resources as it is now. */
export class Group {
  readonly id: string
  sequence = 0
  version = ''
  /** The bytes of each resource: only those of the present version are kept. */
  readonly entries = new Map<string, Entry>()
  /** Names and versions: what a stream that was sent the group remembers of it. */
  contents = Contents.empty

  constructor(id: string) {
    this.id = id
  }

  /** Takes over a patch of the present state, or a whole one. Returns whether any content changed: moved bytes alone are no change. */
  apply(patch: GroupPatch, chunksOf: (data: ResourceData) => Buffer[]): boolean {
    const removed = new Set(patch.removed)
    if (patch.base === 0) {
      const kept = new Set(patch.changed.map((data) => data.name))
      for (const name of this.entries.keys()) if (!kept.has(name)) removed.add(name)
    }
    for (const data of patch.changed) {
      const chunks = chunksOf(data)
      const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
      this.entries.set(data.name, { name: data.name, version: data.version, chunks, length })
    }
    for (const name of removed) this.entries.delete(name)
    this.sequence = patch.sequence
    this.version = patch.version
    const before = this.contents
    const changes = function* (): Generator<readonly [string, string | undefined]> {
      for (const { name, version } of patch.changed) yield [name, version]
      for (const name of removed) yield [name, undefined]
    }
    this.contents = before.with(changes())
    return this.contents !== before
  }
}

/** What a stream has of a type when it has taken everything: names and versions, without bytes. It never changes. */
export interface Holding {
  /** Equal for equal holdings of the same groups, within one catalog. */
  readonly key: string
  readonly version: string
  readonly groups: ReadonlyMap<string, Contents>
}

/** The state of one type for one class: its groups, and a version made of theirs. */
export interface TypeState {
  readonly groups: readonly Group[]
  readonly version: string
  readonly holding: Holding
}

/** What a push brings to the catalog: which connection is of which class is not its business. */
type Push = Omit<PushContent, 'assignments'>

/** All a writer knows. */
export class Catalog {
  readonly #slabs = new Map<number, Buffer>()
  readonly #groups = new Map<string, Group>()
  /** Groups by type by class. Clients choose the types that are looked for. */
  readonly #classes = new Map<string, ReadonlyMap<string, readonly string[]>>()
  /** States of types by class; one stays the same object until a push changes it. */
  readonly #states = new Map<string, Map<string, TypeState>>()
  readonly #listeners: ((group: Group) => void)[] = []
  /** Groups of which a patch was refused, since it belongs to another state than theirs: they stay as they were until they come as a whole. */
  readonly misfits = new Set<string>()

  /** `listen` hears of every group whose bytes are others now, or that is gone. */
  onPatched(listen: (group: Group) => void): void {
    this.#listeners.push(listen)
  }

  #patched(group: Group): void {
    for (const listen of this.#listeners) listen(group)
  }

  /**
   * Takes over a push. Returns the ids of groups whose content changed. A whole push replaces all there was, except the classes
   * that `hasMembers` still names, with their groups.
   */
  apply(push: Push, hasMembers: (classId: string) => boolean = () => false): Set<string> {
    for (const slab of push.slabs) this.#slabs.set(slab.id, Buffer.from(slab.bytes))
    const changed = new Set<string>()
    for (const patch of push.groups) {
      let group = this.#groups.get(patch.group)
      if (patch.base !== 0 && patch.base !== group?.sequence) {
        this.misfits.add(patch.group)
        continue
      }
      this.misfits.delete(patch.group)
      if (!group) this.#groups.set(patch.group, (group = new Group(patch.group)))
      if (group.apply(patch, (data) => this.#chunksOf(data))) changed.add(patch.group)
      this.#patched(group)
    }
    for (const manifest of push.manifests) {
      this.#classes.set(manifest.classId, new Map(Object.entries(manifest.groups)))
      this.#states.delete(manifest.classId)
    }
    this.#dropStates(changed)
    for (const id of push.whole ? this.#classesBeside(push, hasMembers) : push.retiredClasses) {
      this.#classes.delete(id)
      this.#states.delete(id)
    }
    for (const id of push.whole ? this.#groupsBeside(push) : push.retiredGroups) {
      const group = this.#groups.get(id)
      if (group) this.#patched(group)
      this.#groups.delete(id)
      this.misfits.delete(id)
    }
    for (const id of push.retiredSlabs) this.#slabs.delete(id)
    return changed
  }

  #classesBeside({ manifests }: Push, hasMembers: (classId: string) => boolean): string[] {
    const named = new Set(manifests.map(({ classId }) => classId))
    return [...this.#classes.keys()].filter((id) => !named.has(id) && !hasMembers(id))
  }

  #groupsBeside({ groups }: Push): string[] {
    const used = new Set(groups.map(({ group }) => group))
    for (const byType of this.#classes.values()) for (const ids of byType.values()) for (const id of ids) used.add(id)
    return [...this.#groups.keys()].filter((id) => !used.has(id))
  }

  /** Forgets slabs by number: a new push queue numbers its own. Resources keep the bytes they use. */
  forgetSlabs(): void {
    this.#slabs.clear()
  }

  /** The state of a type for a class. */
  typeState(classId: string, typeUrl: string): TypeState {
    const ids = this.#classes.get(classId)?.get(typeUrl)
    if (!ids) return nothing
    let states = this.#states.get(classId)
    if (!states) this.#states.set(classId, (states = new Map()))
    let state = states.get(typeUrl)
    if (!state) {
      const groups = ids.flatMap((id) => this.#groups.get(id) ?? [])
      states.set(typeUrl, (state = stateOf(groups)))
    }
    return state
  }

  #dropStates(changed: ReadonlySet<string>): void {
    for (const states of this.#states.values())
      for (const [typeUrl, state] of states) if (state.groups.some((group) => changed.has(group.id))) states.delete(typeUrl)
  }

  /** Whether a class uses one of these groups. */
  usesAny(classId: string, groups: ReadonlySet<string>): boolean {
    return [...(this.#classes.get(classId)?.values() ?? [])].some((ids) => ids.some((id) => groups.has(id)))
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
const nothing: TypeState = stateOf([])

function stateOf(groups: readonly Group[]): TypeState {
  const version = combineVersions(groups)
  const key = groups.map((group) => `${group.id}@${group.sequence}`).join()
  return { groups, version, holding: { key, version, groups: new Map(groups.map((group) => [group.id, group.contents])) } }
}

function combineVersions(groups: readonly Group[]): string {
  return versionOfSum(groups.reduce((sum, { version }) => addSums(sum, readSum(version)), zeroSum))
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
