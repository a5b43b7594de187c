/**
 * The pushes of changes, one at a time (docs/resources.md, Q1). A push is due when no event has come for `after`, at the latest `max` after the
 * first event. When all events changed endpoints and pods only, it is due at the latest five times `after` after the first, because proxies send
 * requests to old endpoints until then. A push is under way until the writers that keep up have answered it. Times are milliseconds of any clock.
 */
import { following, type RoundState, rounds, type WriterState, writers } from './states.ts'

/** The two waiting times, in milliseconds: the quiet period after the last event, and the maximum time after the first event. */
export interface DebounceOptions {
  readonly after: number
  readonly max: number
}

/** Why a push is due: an event was urgent, no event came for the quiet period, or the maximum time after the first event has passed. */
export type DueCause = 'urgent' | 'quiet' | 'longest'

/** A change for the next push. */
export interface Change {
  readonly reason: string
  /** When the source saw it. */
  readonly at: number
  /** Whether a push is due at once. */
  readonly isUrgent?: boolean
  /** Whether all changes so far are changes of endpoints and pods. */
  readonly onlyEndpoints?: boolean
}

/** The changes behind a push that begins now. */
export interface DuePush {
  readonly reasons: readonly string[]
  /** When the source saw the first of these changes. */
  readonly startedAt: number
  readonly events: number
}

/** The changes that wait for the next push. */
interface Gathered {
  readonly reasons: Set<string>
  readonly startedAt: number
  /** When the first and the last change came. */
  readonly first: number
  last: number
  events: number
  isUrgent: boolean
  onlyEndpoints: boolean
}

/** The maximum wait for changes of endpoints only, as a multiple of the quiet period. */
const maxQuietPeriods = 5
/** How long a push may stay unanswered by a writer before the next push goes out anyway, in milliseconds. */
const answerMs = 1000

/** Decides when a push begins. It holds no timer: `wait` returns when to check again, and `check` what is to be done then. */
export class PushRounds {
  readonly #options: DebounceOptions
  #state: RoundState = 'starting'
  #gathered: Gathered | undefined
  /** The number of the push under way or the last one, and when it was sent. */
  #push = 0
  #sentAt = Number.POSITIVE_INFINITY
  readonly #writers = new Map<string, WriterState>()

  constructor(options: DebounceOptions) {
    this.#options = options
  }

  get state(): RoundState {
    return this.#state
  }

  /** Records a change. Returns whether others wait already. */
  changed({ reason, at, isUrgent = false, onlyEndpoints = false }: Change, now: number): boolean {
    const waits = this.#gathered !== undefined
    this.#gathered ??= { reasons: new Set(), startedAt: at, first: now, last: now, events: 0, isUrgent: false, onlyEndpoints: true }
    const all = this.#gathered
    all.reasons.add(reason)
    all.last = now
    all.events++
    all.isUrgent ||= isUrgent
    all.onlyEndpoints &&= onlyEndpoints
    this.#step('changed')
    return waits
  }

  /** Begins a push with all changes so far. */
  begin(now: number): DuePush {
    this.#step('begun')
    const { reasons, startedAt = 0, events = 0 } = this.#gathered ?? {}
    this.#gathered = undefined
    return { reasons: [...(reasons ?? [])], startedAt: startedAt || now, events }
  }

  /**
   * The push under way was sent to these writers, to none if there was nothing to send. It waits for those that keep up, or for all when none
   * does.
   */
  sent(push: number, names: Iterable<string>, now: number): void {
    this.#push = push
    this.#sentAt = now
    const all = [...names]
    const prompt = all.filter((name) => this.#writers.get(name) !== 'behind')
    for (const name of prompt.length > 0 ? prompt : all)
      this.#writers.set(name, following(writers, this.#writers.get(name) ?? 'prompt', 'sent', name))
    this.#deliveredIfAnswered()
  }

  /** A writer has answered a push. Answers of earlier pushes do not count. */
  answered(name: string, push: number): void {
    const state = this.#writers.get(name)
    if (state === undefined || push < this.#push) return
    this.#writers.set(name, following(writers, state, 'answered', name))
    if (state === 'awaited') this.#deliveredIfAnswered()
  }

  /** A writer has ended, and answers nothing any more. */
  gone(name: string): void {
    const state = this.#writers.get(name)
    this.#writers.delete(name)
    if (state === 'awaited') this.#deliveredIfAnswered()
  }

  /** Milliseconds until {@link check} has something to do. 0: now. Undefined: not before something else happens. */
  wait(now: number): number | undefined {
    const at = this.#isAwaited ? this.#sentAt + answerMs : this.#state === 'gathering' ? this.#dueAt : undefined
    return at === undefined ? undefined : Math.max(0, at - now)
  }

  /** Waits no longer for writers that are late. Returns why a push is due, if one is. */
  check(now: number): DueCause | undefined {
    if (this.wait(now) === 0 && this.#isAwaited) {
      for (const [name, state] of this.#writers) if (state === 'awaited') this.#writers.set(name, following(writers, state, 'late', name))
      this.#step('delivered')
    }
    if (this.wait(now) !== 0 || !this.#gathered) return undefined
    const { isUrgent, last } = this.#gathered
    return isUrgent ? 'urgent' : now >= last + this.#options.after ? 'quiet' : 'longest'
  }

  /** When the changes that wait are due. */
  get #dueAt(): number | undefined {
    if (!this.#gathered) return undefined
    const { isUrgent, onlyEndpoints, first, last } = this.#gathered
    const { after, max } = this.#options
    return isUrgent ? first : Math.min(last + after, first + (onlyEndpoints ? Math.min(max, maxQuietPeriods * after) : max))
  }

  get #isAwaited(): boolean {
    for (const state of this.#writers.values()) if (state === 'awaited') return true
    return false
  }

  #deliveredIfAnswered(): void {
    if (!this.#isAwaited) this.#step('delivered')
  }

  #step(event: 'changed' | 'begun' | 'delivered'): void {
    this.#state = following(rounds, this.#state, event, 'the pushes of changes')
  }
}
