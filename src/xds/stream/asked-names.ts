/** Bounds on the names that one stream may have kept for it (docs/xds-protocol.md). */
import { BudgetExceeded, bytesOf, earlyNameBytes, memoryOf, secretNameBytes, unknownNameBytes } from './budget.ts'
import type { Plans } from './plans.ts'
import type { Subscription, Subscriptions } from './subscription.ts'
import type { TypeState } from './type-state.ts'
import type { Watch } from './watch.ts'

/** The names of one stream. */
export class AskedNames {
  readonly #watches: ReadonlyMap<string, Watch>
  readonly #subscriptions: Subscriptions
  readonly #plans: Plans

  /** `watches` are those of the stream. */
  constructor(watches: ReadonlyMap<string, Watch>, subscriptions: Subscriptions, plans: Plans) {
    this.#watches = watches
    this.#subscriptions = subscriptions
    this.#plans = plans
  }

  /** Names were given before it is known what there is for the proxy: they are checked then. Throws {@link BudgetExceeded}. */
  defer(watch: Watch): void {
    watch.unchecked ??= 'new'
    let early = 0
    for (const { subscription } of this.#watches.values()) for (const name of subscription.names) early += memoryOf(name)
    if (early > earlyNameBytes) throw new BudgetExceeded(`resource names: more than ${earlyNameBytes} bytes at once`)
  }

  /** Counts the names of secrets, there or not: whether one exists is for those to know who may read it. Throws {@link BudgetExceeded}. */
  checkSecrets(watch: Watch): void {
    watch.unchecked = undefined
    const bytes = bytesOf(watch.subscription.names)
    if (bytes > secretNameBytes) throw new BudgetExceeded(`names of secrets: ${bytes} bytes, at most ${secretNameBytes} on one stream`)
  }

  /** Counts the names that do not exist, but not those that did when they were asked for. `before` is what was subscribed to before. Throws {@link BudgetExceeded}. */
  check(watch: Watch, before: Subscription, state: TypeState): void {
    const missing = this.#plans.missing(watch.subscription, state)
    const charged = new Set(missing.filter((name) => !before.names.has(name) || watch.unknown.has(name)))
    let bytes = bytesOf(charged)
    const others = [...this.#watches.values()].reduce((sum, other) => sum + (other === watch ? 0 : other.unknownBytes), 0)
    if (others + bytes > unknownNameBytes) {
      if (watch.unchecked !== 'resumed')
        throw new BudgetExceeded(`resource names: ${others + bytes} bytes of names that do not exist, at most ${unknownNameBytes} on one stream`)
      // They existed when the proxy was last here. It learns what is gone; until then the others must reach it.
      watch.subscription = this.#subscriptions.without(watch.subscription, charged)
      charged.clear()
      bytes = 0
    }
    watch.unknown = charged
    watch.unknownBytes = bytes
    watch.unchecked = undefined
  }
}
