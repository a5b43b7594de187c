/** The last events of proxies, for those who ask for what came after a cursor. */
import type { ProxyEvent, ProxyEventsAnswer } from '../../../protocols/messages/proxy-events.ts'

/** How many events are kept, and their size in bytes. */
export interface EventBounds {
  readonly events: number
  readonly bytes: number
}

/** The events in their order. Those beyond the bounds are dropped, the oldest first. */
export class EventRecord {
  readonly #bounds: EventBounds
  readonly #epoch: string
  readonly #events: ProxyEvent[] = []
  #bytes = 0
  /** The number of the first event that is kept. */
  #first = 0

  /** `epoch` distinguishes the cursors of this record from those of others. */
  constructor(bounds: EventBounds, epoch: string) {
    this.#bounds = bounds
    this.#epoch = epoch
  }

  /** The cursor after the last event. */
  get cursor(): string {
    return `${this.#epoch}-${this.#first + this.#events.length}`
  }

  add(event: ProxyEvent): void {
    this.#events.push(event)
    this.#bytes += event.message.length
    while (this.#events.length > this.#bounds.events || (this.#bytes > this.#bounds.bytes && this.#events.length > 0)) {
      this.#bytes -= (this.#events.shift() as ProxyEvent).message.length
      this.#first++
    }
  }

  /** Records that events are missing: whoever asks from an earlier cursor is told. */
  gap(): void {
    this.#first += this.#events.length + 1
    this.#events.length = 0
    this.#bytes = 0
  }

  /** The events after a cursor. A cursor of another record, or before the first event that is kept, has a gap. */
  since(cursor: string): ProxyEventsAnswer {
    const [epoch, number] = cursor.split('-')
    const start = Number(number) - this.#first
    const isGap = epoch !== this.#epoch || !(start >= 0 && start <= this.#events.length)
    return { events: isGap ? [] : this.#events.slice(start), cursor: this.cursor, isGap }
  }
}
