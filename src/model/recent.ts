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
  #items: Item[] = []
  /** The number of items at the front that were dropped and not removed yet: to remove each of them would move all others. */
  #dropped = 0
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
    return `${this.#epoch}-${this.#first + this.#size}`
  }

  get #size(): number {
    return this.#items.length - this.#dropped
  }

  add(item: Item): void {
    this.#items.push(item)
    this.#bytes += this.#sizeOf(item)
    while (this.#size > this.#bounds.items || (this.#bytes > this.#bounds.bytes && this.#size > 0)) {
      this.#bytes -= this.#sizeOf(this.#items[this.#dropped++] as Item)
      this.#first++
    }
    if (this.#dropped <= this.#bounds.items) return
    this.#items = this.#items.slice(this.#dropped)
    this.#dropped = 0
  }

  /** Records that items are missing: whoever asks from an earlier cursor is told. */
  gap(): void {
    this.#first += this.#size + 1
    this.#items = []
    this.#dropped = 0
    this.#bytes = 0
  }

  /** The items after a cursor. A cursor of another list, or before the first item that is kept, has a gap. */
  since(cursor: string): ItemsAfter<Item> {
    const [epoch, number] = cursor.split('-')
    const start = Number(number) - this.#first
    const isGap = epoch !== this.#epoch || !(start >= 0 && start <= this.#size)
    return { items: isGap ? [] : this.#items.slice(this.#dropped + start), cursor: this.cursor, isGap }
  }
}
