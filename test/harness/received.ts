/** What connections have of a planner's pushes, as a writer works it out. */
import type { Planner } from '../../src/push/planner.ts'
import { KeyedSums } from '../../src/xds/slab/sums.ts'
import { Catalog } from '../../src/xds/stream/catalog.ts'
import { testSettings } from './settings.ts'

/** A writer without streams. */
export class Received {
  readonly #planner: Planner
  readonly #catalog = new Catalog(new KeyedSums(testSettings().versionKey))
  readonly #classes = new Map<string, string>()

  constructor(planner: Planner) {
    this.#planner = planner
    this.take()
  }

  /** Takes the next push. */
  take(): void {
    const push = this.#planner.takePush()
    this.#catalog.apply(push)
    for (const { connection, classId } of push.assignments) this.#classes.set(connection, classId)
  }

  /** Names and versions of a connection's resources of a type. */
  of(connection: string, typeUrl: string): Map<string, string> {
    const state = this.#catalog.typeState(this.#classes.get(connection) ?? '', typeUrl)
    return new Map([...state.entries()].map(({ name, version }) => [name, version]))
  }
}
