/** Places blocks in shared memory, counts their uses, compacts slabs that are mostly garbage, and frees unused slabs. */
import type { SlabData } from '../../../protocols/messages/push.ts'
import { type Block, lost, type Resource } from './resource.ts'

interface Slab {
  readonly id: number
  readonly bytes: SharedArrayBuffer
  readonly blocks: Set<Block>
  live: number
}

/** Slabs with less than this fraction of their bytes in use are compacted. */
const compactBelow = 0.4

/** The owner of the slabs. */
export class SlabStore {
  readonly #slabs = new Map<number, Slab>()
  #next: number
  #unplaced = new Set<Block>()
  #retired: number[] = []

  /** `first` is the number of the first slab. */
  constructor(first = 0) {
    this.#next = first
  }

  /** Increments the use counts of the blocks of a resource. Blocks that are not placed yet are placed by the next {@link place}. */
  retain(resource: Resource): void {
    for (const { block } of resource.slices) {
      if (block.uses++ === 0) this.#unplaced.add(block)
    }
  }

  /** Decrements the use counts of the blocks of a resource. Blocks without uses become garbage. */
  release(resource: Resource): void {
    for (const { block } of resource.slices) {
      if (--block.uses > 0) continue
      const slab = this.#slabs.get(block.slab)
      if (!slab) continue
      slab.live -= block.length
      slab.blocks.delete(block)
      block.slab = lost
    }
  }

  /**
   * Places the blocks in use that have no place yet in one new slab. Returns the blocks that moved there as well because their old slab was
   * mostly garbage.
   */
  place(): ReadonlySet<Block> {
    const moved = new Set<Block>()
    for (const slab of this.#slabs.values()) {
      if (slab.live > 0 && slab.live < slab.bytes.byteLength * compactBelow) for (const block of slab.blocks) moved.add(block)
    }
    const used = [...this.#unplaced].filter((block) => block.uses > 0)
    this.#unplaced.clear()
    for (const block of moved) block.bytes = this.#read(block)
    this.#write([...used, ...moved])
    for (const slab of this.#slabs.values()) {
      if (slab.blocks.size > 0) continue
      this.#slabs.delete(slab.id)
      this.#retired.push(slab.id)
    }
    return moved
  }

  /** Returns the numbers of the slabs freed since the last call. */
  takeRetired(): number[] {
    return this.#retired.splice(0)
  }

  /** Returns a slab by its number; undefined if it was freed. */
  data(id: number): SlabData | undefined {
    const slab = this.#slabs.get(id)
    return slab && { id, bytes: slab.bytes }
  }

  /** Returns the total size of the slabs in bytes, how many of these bytes are in use, and the number of slabs. */
  usage(): { bytes: number; live: number; slabs: number } {
    let bytes = 0
    let live = 0
    for (const slab of this.#slabs.values()) {
      bytes += slab.bytes.byteLength
      live += slab.live
    }
    return { bytes, live, slabs: this.#slabs.size }
  }

  /** Returns the bytes of a block, placed or not. Throws if its slab was freed. */
  read(block: Block): Uint8Array {
    return block.bytes ?? this.#read(block)
  }

  #read(block: Block): Uint8Array {
    const slab = this.#slabs.get(block.slab)
    if (!slab) throw new Error(`block in slab ${block.slab}, which is gone`)
    return new Uint8Array(slab.bytes, block.offset, block.length)
  }

  #write(blocks: readonly Block[]): void {
    const length = blocks.reduce((sum, block) => sum + block.length, 0)
    if (length === 0) return
    const bytes = new SharedArrayBuffer(length)
    const target = new Uint8Array(bytes)
    const slab: Slab = { id: this.#next++, bytes, blocks: new Set(blocks), live: length }
    let offset = 0
    for (const block of blocks) {
      target.set(block.bytes as Uint8Array, offset)
      this.#slabs.get(block.slab)?.blocks.delete(block)
      block.bytes = undefined
      block.slab = slab.id
      block.offset = offset
      offset += block.length
    }
    this.#slabs.set(slab.id, slab)
  }
}
