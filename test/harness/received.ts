/** What connections have of a planner's pushes, as a writer works it out. */
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

  /** One that comes `late` takes everything there is; the planner's push must have been taken. */
  constructor(planner: Planner, late = false) {
    this.#planner = planner
    this.#apply(late ? everythingOf(planner) : planner.takePush())
  }

  /** Takes the next push. */
  take(): void {
    this.#apply(this.#planner.takePush())
  }

  #apply(push: PushContent): void {
    this.#catalog.apply(push)
    for (const { connection, classId } of push.assignments) this.#classes.set(connection, classId)
  }

  /** Names and versions of a connection's resources of a type. */
  of(connection: string, typeUrl: string): Map<string, string> {
    const state = this.#catalog.typeState(this.#classes.get(connection) ?? '', typeUrl)
    return new Map([...state.entries()].map(({ name, version }) => [name, version]))
  }
}

/** What a writer that has nothing is told, if all proxies are its own; the planner's push must have been taken. */
export function everythingOf(planner: Planner): PushContent {
  const nothing = { slabs: [], retiredSlabs: [], groups: [], retiredGroups: [], manifests: [], retiredClasses: [] }
  return new Audience(planner.present).next({ ...nothing, whole: true, assignments: planner.assignments() }, 0)
}
