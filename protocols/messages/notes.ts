/** Names of the notes that actors leave with the supervisor, for readiness. */

/** What the push queue notes: the sources that have not said everything yet. */
export const unsyncedNote = 'unsynced'

/** What a writer notes once it takes connections and has everything that there is. */
export const servingNote = 'serving'
