/** The last items of a list that grows, for those who ask for what came after a cursor. */

/** How many items are kept, and their size in bytes. */
export interface RecentBounds {
  readonly items: number
  readonly bytes: number
}

/** The items after a cursor. */
export interface ItemsAfter<Item> {
  readonly items: readonly Item[]
  /** To ask on from. */
  readonly cursor: string
  /** Whether items after the cursor are missing. */
  readonly isGap: boolean
}

/** The items in their order. Those beyond the bounds are dropped, the oldest first. */
export class Recent<Item> {
  readonly #bounds: RecentBounds
  readonly #epoch: string
  readonly #sizeOf: (item: Item) => number
  readonly #items: Item[] = []
  #bytes = 0
  /** The number of the first item that is kept. */
  #first = 0

  /** `epoch` distinguishes the cursors of this list from those of others. `sizeOf` returns the size of an item in bytes. */
  constructor(bounds: RecentBounds, epoch: string, sizeOf: (item: Item) => number) {
    this.#bounds = bounds
    this.#epoch = epoch
    this.#sizeOf = sizeOf
  }

  /** The cursor after the last item. */
  get cursor(): string {
    return `${this.#epoch}-${this.#first + this.#items.length}`
  }

  add(item: Item): void {
    this.#items.push(item)
    this.#bytes += this.#sizeOf(item)
    while (this.#items.length > this.#bounds.items || (this.#bytes > this.#bounds.bytes && this.#items.length > 0)) {
      this.#bytes -= this.#sizeOf(this.#items.shift() as Item)
      this.#first++
    }
  }

  /** Records that items are missing: whoever asks from an earlier cursor is told. */
  gap(): void {
    this.#first += this.#items.length + 1
    this.#items.length = 0
    this.#bytes = 0
  }

  /** The items after a cursor. A cursor of another list, or before the first item that is kept, has a gap. */
  since(cursor: string): ItemsAfter<Item> {
    const [epoch, number] = cursor.split('-')
    const start = Number(number) - this.#first
    const isGap = epoch !== this.#epoch || !(start >= 0 && start <= this.#items.length)
    return { items: isGap ? [] : this.#items.slice(start), cursor: this.cursor, isGap }
  }
}
