/** Limits on the subscribed names that the server keeps for one stream (docs/xds-protocol.md, "Bounds"). */
import { BudgetExceeded, bytesOf, earlyNameBytes, memoryOf, secretNameBytes, unknownNameBytes } from './budget.ts'
import type { Plans } from './plans.ts'
import type { Subscription, Subscriptions } from './subscription.ts'
import type { TypeState } from './type-state.ts'
import type { Watch } from './watch.ts'

/** The subscribed names of one stream. */
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

  /** Postpones the check of names that were given before the class of the proxy is known. Throws {@link BudgetExceeded}. */
  defer(watch: Watch): void {
    watch.unchecked ??= 'new'
    let early = 0
    for (const { subscription } of this.#watches.values()) for (const name of subscription.names) early += memoryOf(name)
    if (early > earlyNameBytes) throw new BudgetExceeded(`resource names: more than ${earlyNameBytes} bytes at once`)
  }

  /**
   * Counts the names of secrets, existing or not: a proxy must not learn whether a secret exists that it may not read. Throws
   * {@link BudgetExceeded}.
   */
  checkSecrets(watch: Watch): void {
    watch.unchecked = undefined
    const bytes = bytesOf(watch.subscription.names)
    if (bytes > secretNameBytes) throw new BudgetExceeded(`names of secrets: ${bytes} bytes, at most ${secretNameBytes} on one stream`)
  }

  /**
   * Counts the subscribed names without a resource, except those that had one when they were subscribed to. `before` is the previous
   * subscription. Throws {@link BudgetExceeded}.
   */
  check(watch: Watch, before: Subscription, state: TypeState): void {
    const missing = this.#plans.missing(watch.subscription, state)
    const charged = new Set(missing.filter((name) => !before.names.has(name) || watch.unknown.has(name)))
    let bytes = bytesOf(charged)
    const others = [...this.#watches.values()].reduce((sum, other) => sum + (other === watch ? 0 : other.unknownBytes), 0)
    if (others + bytes > unknownNameBytes) {
      if (watch.unchecked !== 'resumed')
        throw new BudgetExceeded(`resource names: ${others + bytes} bytes of names that do not exist, at most ${unknownNameBytes} on one stream`)
      // The names existed when the proxy was last connected. The proxy is not disconnected: it must learn what is gone and get its other
      // resources.
      watch.subscription = this.#subscriptions.without(watch.subscription, charged)
      charged.clear()
      bytes = 0
    }
    watch.unknown = charged
    watch.unknownBytes = bytes
    watch.unchecked = undefined
  }
}
