/** Computes the resources of connections from a planner's pushes, as a writer does. */
import type { PushContent } from '../../protocols/messages/push.ts'
import { Audience, emptyPush } from '../../src/push/audience.ts'
import type { Planner } from '../../src/push/planner.ts'
import { KeyedSums } from '../../src/xds/slab/sums.ts'
import { Catalog } from '../../src/xds/stream/catalog.ts'
import { testSettings } from './settings.ts'
import { slabsOf } from './slabs.ts'

/** The pushes of a planner with all groups and their slabs, for a catalog that is not restricted to the classes of its connections. */
export class CompletePushes {
  readonly #planner: Planner
  readonly #groups = new Set<string>()

  constructor(planner: Planner) {
    this.#planner = planner
  }

  /** Returns the next push. */
  take(): PushContent {
    const { groups, present } = this.#planner
    const changes = this.#planner.takePush()
    for (const { group } of changes.groups) this.#groups.add(group)
    const retiredGroups = [...this.#groups].filter((id) => !groups.has(id))
    for (const id of retiredGroups) this.#groups.delete(id)
    return { ...changes, slabs: slabsOf(changes.groups, present.slab), retiredGroups }
  }
}

/** A writer without streams. */
export class Received {
  readonly #pushes: CompletePushes
  readonly #catalog = new Catalog(new KeyedSums(testSettings().versionKey))
  readonly #classes = new Map<string, string>()

  /**
   * With `late`, the writer receives the whole current state instead of the next push, which must have been taken from the planner before.
   */
  constructor(planner: Planner, late = false) {
    this.#pushes = new CompletePushes(planner)
    this.#apply(late ? everythingOf(planner) : this.#pushes.take())
  }

  /** Applies the next push. */
  take(): void {
    this.#apply(this.#pushes.take())
  }

  #apply(push: PushContent): void {
    this.#catalog.apply(push)
    for (const { connection, classId } of push.assignments) this.#classes.set(connection, classId)
  }

  /** Returns the versions of a connection's resources of a type, by name. */
  of(connection: string, typeUrl: string): Map<string, string> {
    const state = this.#catalog.typeState(this.#classes.get(connection) ?? '', typeUrl)
    return new Map([...state.entries()].map(({ name, version }) => [name, version]))
  }
}

/** Returns the content that a new writer receives when all proxies are its own. The planner's push must have been taken before. */
export function everythingOf(planner: Planner): PushContent {
  return new Audience(planner.present).next({ ...emptyPush, whole: true, assignments: planner.assignments() }, 0)
}
