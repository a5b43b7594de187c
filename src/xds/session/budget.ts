/**
 * What one stream can make the server keep (docs/xds-protocol.md, "Bounds"). A name that the configuration has costs next to
 * nothing: equal lists are one object. A name that it does not have is the client's own invention, and is counted.
 */
import type { Holding, TypeState } from './catalog.ts'
import type { Subscription } from './subscription.ts'

/** The stream asks the server to keep more than one client may; the message says what, and how much is allowed. */
export class BudgetExceeded extends Error {}

/** Bytes of names that one stream may be subscribed to although its configuration does not have them. */
export const unknownNameBytes = 65_536

/** Bytes of names that one stream may name before it is known what configuration it gets. */
export const earlyNameBytes = 8 * 1024 * 1024

/** A short name costs as much as one of so many bytes. */
const leastBytes = 16

/** What names count for. */
export function bytesOf(names: Iterable<string>): number {
  let bytes = 0
  for (const name of names) bytes += Math.max(leastBytes, Buffer.byteLength(name))
  return bytes
}

/** Finds the names of subscriptions that do not exist; streams that are alike share the answer. */
export class UnknownNames {
  readonly #found = new WeakMap<Subscription, { readonly holding: Holding; readonly names: readonly string[] }>()

  missing(subscription: Subscription, state: TypeState): readonly string[] {
    const known = this.#found.get(subscription)
    if (known?.holding === state.holding) return known.names
    const names = [...subscription.names].filter((name) => !state.groups.some((group) => group.entries.has(name)))
    this.#found.set(subscription, { holding: state.holding, names })
    return names
  }
}
