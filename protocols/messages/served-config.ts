/** What the push queue tells writers of the configuration objects that are served to other control planes. */
import type { ConfigObject } from '../data.ts'

/** An object by its key; undefined if there is none now, or none that is served. */
export interface ServedObject {
  readonly key: string
  readonly object: ConfigObject | undefined
}

/** The objects that changed after a cursor, as they are now. */
export interface ServedChanges {
  readonly objects: readonly ServedObject[]
  /** To ask on from. */
  readonly cursor: string
  /** Whether changes after the cursor are not known any more, so that all objects have to be asked for. */
  readonly isGap: boolean
}
