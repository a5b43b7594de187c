/** Names of the notes that actors leave with the supervisor, for readiness. */

/** What the push queue notes: the sources that have not said everything yet. */
export const unsyncedNote = 'unsynced'

/** What a watcher of files notes: why it does not say that it has said everything, a sentence for each file. */
export const unknownNote = 'unknown'

/** What a writer notes once it takes connections and has everything that there is. */
export const servingNote = 'serving'
