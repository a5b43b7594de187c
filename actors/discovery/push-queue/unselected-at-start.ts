/** Tells once, when proxies have connected, which objects select nothing, and of those that select gateways when one has: of what was wrong at the start no line about a change tells. */
import type { ProxyNode } from '../../../protocols/data.ts'
import { someOf } from '../../../src/model/counts.ts'
import { nameOfKey } from '../../../src/push/distribution/config-changes.ts'
import type { Planner } from '../../../src/push/planner.ts'
import { monotonicMs } from '../../runtime/clock.ts'
import type { ScopedLogger } from '../../runtime/logger.ts'
import { after, type Timer } from '../../runtime/timers.ts'

/**
 * It is looked for `quietMs` after the last proxy has connected, and at most `latestMs` after the first one, in slices of `sliceMs`. In a mesh where it takes longer than `mostMs` nothing is said.
 */
const times = { quietMs: 10_000, latestMs: 60_000, sliceMs: 5, mostMs: 2000 }
/** Maximum number of objects that are named. */
const mostNamed = 5

/** What is known of the mesh. */
type Mesh = Pick<Planner, 'selectingNothing' | 'classCount' | 'hasRouters'>

/** The line about objects that select nothing. */
export class UnselectedAtStart {
  readonly #mesh: Mesh
  readonly #log: ScopedLogger
  #firstAt: number | undefined
  #lastAt = 0
  #timer: Timer | undefined
  #slice: Timer | undefined
  /** What was looked for: not before gateways have connected whether something selects these. */
  #looked: 'not' | 'without gateways' | 'with gateways' = 'not'
  readonly #told = new Set<string>()

  constructor(mesh: Mesh, log: ScopedLogger) {
    this.#mesh = mesh
    this.#log = log
  }

  close(): void {
    this.#timer?.cancel()
    this.#slice?.cancel()
  }

  /** A proxy has connected. */
  connected({ type }: Pick<ProxyNode, 'type'>): void {
    if (this.#looked === 'with gateways' || (this.#looked === 'without gateways' && type !== 'router')) return
    this.#lastAt = monotonicMs()
    this.#firstAt ??= this.#lastAt
    this.#timer ??= after(times.quietMs, () => this.#whenQuiet()).unref()
  }

  #whenQuiet(): void {
    const waitMs = Math.min(this.#lastAt + times.quietMs, (this.#firstAt ?? 0) + times.latestMs) - monotonicMs()
    this.#timer = undefined
    if (waitMs > 0) {
      this.#timer = after(waitMs, () => this.#whenQuiet()).unref()
      return
    }
    this.#firstAt = undefined
    // All are gone: the next one that connects is the first.
    if (this.#mesh.classCount === 0) return
    this.#looked = this.#mesh.hasRouters ? 'with gateways' : 'without gateways'
    this.#look(this.#mesh.selectingNothing(), 0)
  }

  #look(steps: ReturnType<Mesh['selectingNothing']>, spentMs: number): void {
    if (spentMs > times.mostMs) return
    const began = monotonicMs()
    while (monotonicMs() < began + times.sliceMs) {
      const step = steps.next()
      if (step.done) return this.#tell(step.value)
    }
    this.#slice = after(0, () => this.#look(steps, spentMs + monotonicMs() - began)).unref()
  }

  #tell(found: readonly string[]): void {
    const keys = found.filter((key) => !this.#told.has(key))
    if (keys.length === 0) return
    for (const key of keys) this.#told.add(key)
    const names = someOf(keys.slice(0, mostNamed).map(nameOfKey), mostNamed, keys.length)
    this.#log.info(`no connected proxy and no other known workload is selected by ${names}; what they say has no effect at present`)
  }
}
