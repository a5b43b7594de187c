/** What is said of the resources of a cluster that cannot be followed at present: each reason once for each consequence, however many resources have it (docs/operation.md, C4). */
import type { Refusal } from '../../../../src/orchestrator/list-watch.ts'
import { monotonicMs } from '../../../runtime/clock.ts'
import type { ScopedLogger } from '../../../runtime/logger.ts'

/** A failed attempt to follow a resource. */
export interface FollowFailure {
  readonly path: string
  /** The resource, for people. */
  readonly shown: string
  /** What has failed, for people. */
  readonly what: string
  readonly refusal: Refusal | undefined
  readonly reason: string
  /** What follows from it, for people; empty: nothing. */
  readonly consequence: string
  /** Whether the resource has been listed before. */
  readonly isListed: boolean
}

/**
 * What stands of a resource. `line`: it without the name of the cluster. `alike`: what one line tells of all that have it in common. `isLogged`: the log has
 * a line of this resource alone.
 */
interface Trouble {
  readonly line: string
  readonly alike: string
  readonly since: number
  readonly isLogged: boolean
}

/** How long an API server may take with a resource whose definition is new, in milliseconds: it answers 429 or 503 until it has read its store. */
const startMs = 30_000
const isStarting = ({ refusal, isListed }: FollowFailure): boolean => !isListed && (refusal?.code === 429 || refusal?.code === 503)

/** The troubles of one cluster, and the lines of the log about them. */
export class FollowTroubles {
  readonly #cluster: string
  readonly #log: ScopedLogger
  readonly #now: () => number
  readonly #troubles = new Map<string, Trouble>()
  /** The resources that have failed without an answer of the server, by what they have in common. */
  readonly #alike = new Map<string, { readonly paths: Set<string>; readonly shown: Set<string> }>()
  /** The resources that the server has yet to begin with. */
  readonly #starting = new Set<string>()

  constructor(cluster: string, log: ScopedLogger, now: () => number = monotonicMs) {
    this.#cluster = cluster
    this.#log = log
    this.#now = now
  }

  /** The troubles, for people. */
  get texts(): readonly string[] {
    return [...this.#troubles.values()].map(({ line }) => this.#textOf(line))
  }

  /** The first trouble of each reason, for people who know of which cluster it is. */
  get reasons(): readonly string[] {
    const first = new Map<string, string>()
    for (const { line, alike } of this.#troubles.values()) if (!first.has(alike)) first.set(alike, line)
    return [...first.values()]
  }

  /** An attempt has failed. */
  failed(failure: FollowFailure): void {
    const { path, shown, what, reason, consequence } = failure
    const before = this.#troubles.get(path)
    const alike = consequence === '' ? reason : `${reason}; ${consequence}`
    const line = `${what}: ${alike}`
    const text = this.#textOf(line)
    const set = (since: number, isLogged: boolean) => this.#troubles.set(path, { line, alike, since, isLogged })
    if (isStarting(failure) && (before === undefined || this.#starting.has(path))) {
      const since = before?.since ?? this.#now()
      if (this.#now() - since < startMs) {
        this.#sayStarting(failure)
        return void set(since, false)
      }
    }
    this.#starting.delete(path)
    const { since = this.#now(), isLogged = false } = before ?? {}
    if (before && before.alike !== alike) this.#leave(path, shown, before.alike)
    if (failure.refusal === undefined) {
      this.#join(failure, alike, text)
      return void set(since, isLogged)
    }
    if (before?.line !== line || !isLogged) this.#log.error(text)
    set(since, true)
  }

  #textOf = (line: string): string => `cluster ${this.#cluster}: ${line}`

  /** A resource is followed again. */
  recovered(path: string, shown: string): void {
    const before = this.#troubles.get(path)
    if (!before) return
    const alike = this.#alike.get(before.alike)
    this.drop(path, shown)
    const isLast = alike?.paths.size === 0
    if (isLast || before.isLogged)
      this.#log.info(`cluster ${this.#cluster}: ${[...(isLast ? alike.shown : []), shown].join(', ')} are followed again`)
    else alike?.shown.add(shown)
  }

  /** Nothing is said of a resource any more. Returns whether it was in trouble. */
  drop(path: string, shown: string): boolean {
    this.#starting.delete(path)
    this.#leave(path, shown, this.#troubles.get(path)?.alike)
    return this.#troubles.delete(path)
  }

  /** The definitions of kinds that were just made are an expected wait. */
  #sayStarting({ path, shown, reason }: FollowFailure): void {
    if (this.#starting.size === 0)
      this.#log.info(`cluster ${this.#cluster}: the API server does not list ${shown}, and may be others, yet: ${reason}; it is asked again`)
    this.#starting.add(path)
  }

  #join({ path, shown }: FollowFailure, alike: string, text: string): void {
    const known = this.#alike.get(alike)
    if (!known) this.#log.error(text)
    const { paths, shown: all } = known ?? { paths: new Set(), shown: new Set() }
    this.#alike.set(alike, { paths: paths.add(path), shown: all.add(shown) })
  }

  /** A resource does not have this in common with others any more. */
  #leave(path: string, shown: string, alike = ''): void {
    const known = this.#alike.get(alike)
    known?.paths.delete(path)
    known?.shown.delete(shown)
    if (known?.paths.size === 0) this.#alike.delete(alike)
  }
}
