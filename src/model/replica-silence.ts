/** What is said of a replica of discovery whose part is missing in an answer. */

/** The reason where it does not know what it was asked: it is of an older release, as during an upgrade. */
export const unknownQuestion = 'it does not know this question'

/** What the replica did, by the reason, to follow its name. */
export const silence = (reason: string): string => (reason === unknownQuestion ? 'is of an older release' : 'has not answered')
