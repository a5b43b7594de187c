/** Names of the notes that actors leave with the supervisor, for readiness. */

/** Noted by the push queue: the sources whose first replay is not finished. */
export const unsyncedNote = 'unsynced'

/** Noted by a watcher of files: the reasons why it cannot finish its replay, one sentence for each file. */
export const unknownNote = 'unknown'

/** Noted by the push queue once it has published the first push: all sources that have finished a replay since its start. */
export const syncedNote = 'synced'

/** Noted by the push queue: all sources that have finished a replay since its start. */
export const heardNote = 'heard'

/** Noted by the push queue: the `configSources` of the mesh configuration in force, a list of `ConfigSource` values. */
export const configSourcesNote = 'configSources'

/** Noted by a writer once it accepts connections and has received the whole configuration. */
export const servingNote = 'serving'

/** Noted by any actor: sentences for `/ready` about faults that do not change whether the service is ready. */
export const attentionNote = 'attention'

/**
 * Noted by an actor: sentences for `/ready` about a port that it cannot open, since its certificate was not signed. With one of them a service that starts
 * is not ready while ready replicas have theirs.
 */
export const unopenedNote = 'unopened'

/** Noted by any actor: sentences for `/ready` about what the service waits for. With one of them it is not ready. */
export const awaitedNote = 'awaited'
