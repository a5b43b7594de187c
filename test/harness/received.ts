/** Computes the resources of connections from a planner's pushes, as a writer does. */
import type { PushContent } from '../../protocols/messages/push.ts'
import { Audience } from '../../src/push/audience.ts'
import type { Planner } from '../../src/push/planner.ts'
import { KeyedSums } from '../../src/xds/slab/sums.ts'
import { Catalog } from '../../src/xds/stream/catalog.ts'
import { testSettings } from './settings.ts'

/** A writer without streams. */
export class Received {
  readonly #planner: Planner
  readonly #catalog = new Catalog(new KeyedSums(testSettings().versionKey))
  readonly #classes = new Map<string, string>()

  /**
   * With `late`, the writer receives the whole current state instead of the next push, which must have been taken from the planner before.
   */
  constructor(planner: Planner, late = false) {
    this.#planner = planner
    this.#apply(late ? everythingOf(planner) : planner.takePush())
  }

  /** Applies the next push. */
  take(): void {
    this.#apply(this.#planner.takePush())
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
  const nothing = { slabs: [], retiredSlabs: [], groups: [], retiredGroups: [], manifests: [], retiredClasses: [] }
  return new Audience(planner.present).next({ ...nothing, whole: true, assignments: planner.assignments() }, 0)
}
