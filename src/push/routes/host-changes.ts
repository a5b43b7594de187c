/** The virtual hosts that were replaced in the routes of a scope, for a group that contains those before as resources of their own. */
import type { RouteName } from '../../xds/routes/port-uses.ts'
import { hostResource } from '../../xds/routes/route-table.ts'
import type { Resource } from '../../xds/slab/resource.ts'
import type { Candidate } from './host-pieces.ts'
import type { RouteHost } from './route-hosts.ts'

/** Virtual hosts of a route that came or were replaced in place, and the names of those that are gone. */
interface Replaced {
  readonly route: RouteName
  readonly made: readonly RouteHost[]
  readonly gone: readonly string[]
}

/** The maximum number of hosts that are changed in place. Above it, building all routes costs less. */
export const maxChanged = 1000
/** The maximum number of replacements that are kept. */
const maxReplaced = 64

/** The last replacements, and which of them the group of virtual hosts contains. */
export class HostChanges {
  #at = 0
  #last: Replaced[] = []
  /** The state that the group contains; undefined: there is none. */
  #stored: number | undefined

  /** Begins a new state. In what it differs from those before is not known. */
  restart(): void {
    this.#at++
    this.#last = []
  }

  /** Hosts of a route were replaced in place. */
  replaced(route: RouteName, { made, gone }: Omit<Replaced, 'route'>): void {
    this.#at++
    this.#last.push({ route, made, gone })
    this.#last.splice(0, this.#last.length - maxReplaced)
  }

  /** Returns what marks the present state as contained in the group. */
  marker(): () => void {
    const at = this.#at
    return () => {
      this.#stored = at
    }
  }

  /** The group is gone. */
  groupForgotten(): void {
    this.#stored = undefined
  }

  /**
   * The virtual hosts that the group lacks, and the names of those that are gone after all replacements. Undefined when something else
   * changed, or when the replacements are not known back to the state of the group.
   */
  sinceStored(): { readonly resources: Resource[]; readonly gone: string[] } | undefined {
    const count = this.#stored === undefined ? Number.POSITIVE_INFINITY : this.#at - this.#stored
    if (count > this.#last.length) return undefined
    const last = new Map<string, Resource | undefined>()
    for (const { route, made, gone } of this.#last.slice(this.#last.length - count)) {
      if (!route.catchAll) continue
      for (const name of gone) last.set(`${route.name}/${name}`, undefined)
      for (const { piece } of made) {
        const resource = piece && hostResource(route.name, piece)
        if (resource) last.set(resource.name, resource)
      }
    }
    const names = [...last.keys()]
    return { resources: [...last.values()].flatMap((resource) => resource ?? []), gone: names.filter((name) => !last.get(name)) }
  }
}

/** The candidates of changed hosts, by route and host. */
export class ChangedHosts extends Map<string, Map<string, readonly Candidate[]>> {
  /** The candidates in a route by host. */
  in(route: string): Map<string, readonly Candidate[]> {
    let there = this.get(route)
    if (!there) this.set(route, (there = new Map()))
    return there
  }
}

/** A candidate whose virtual host is made once, unless domains have to be removed from it. */
export function madeOnce(candidate: Candidate): Candidate {
  const made = candidate.make()
  return { ...candidate, make: (without) => (without && without.size > 0 ? candidate.make(without) : made) }
}
