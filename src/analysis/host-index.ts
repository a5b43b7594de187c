/** Finds hosts that differ from another one in a single label, without a look at all of them. */
import { addTo } from '../model/lists.ts'

/** Returns a host once for each of its labels, with that one left open. */
export function openHosts(host: string): string[] {
  const labels = host.split('.')
  return labels.map((_, index) => labels.with(index, '').join('.'))
}

/** Hosts by what is left of them without one label. */
export class HostIndex {
  readonly #byRest = new Map<string, Set<string>>()

  add(host: string): void {
    for (const rest of openHosts(host)) addTo(this.#byRest, rest, host)
  }

  delete(host: string): void {
    for (const rest of openHosts(host)) {
      const hosts = this.#byRest.get(rest)
      hosts?.delete(host)
      if (hosts?.size === 0) this.#byRest.delete(rest)
    }
  }

  /** The hosts that are a rest of {@link openHosts} with some label. */
  having(rest: string): ReadonlySet<string> {
    return this.#byRest.get(rest) ?? none
  }
}

const none: ReadonlySet<string> = new Set()
