/** How far apart two texts are, for names that were misspelt. */

/** Texts whose lengths differ by more than this are not compared. */
const mostLonger = 3

/**
 * The edit distance between two texts: the number of letters to insert, delete or replace, and of neighbours to swap. Infinite for texts of very different length, and where it
 * is `limit` or more.
 */
export function distance(one: string, other: string, limit = Number.POSITIVE_INFINITY): number {
  if (Math.abs(one.length - other.length) > mostLonger) return Number.POSITIVE_INFINITY
  let [before, row, next] = [0, 0, 0].map(() => new Array<number>(other.length + 1)) as [number[], number[], number[]]
  for (let j = 0; j <= other.length; j++) row[j] = j
  for (let i = 1; i <= one.length; i++) {
    let least = i
    next[0] = i
    for (let j = 1; j <= other.length; j++) {
      const replaced = (row[j - 1] as number) + (one.charCodeAt(i - 1) === other.charCodeAt(j - 1) ? 0 : 1)
      let changes = Math.min((row[j] as number) + 1, (next[j - 1] as number) + 1, replaced)
      if (isSwapped(one, other, i, j)) changes = Math.min(changes, (before[j - 2] as number) + 1)
      next[j] = changes
      if (changes < least) least = changes
    }
    if (least >= limit) return Number.POSITIVE_INFINITY
    ;[before, row, next] = [row, next, before]
  }
  const changes = row[other.length] as number
  return changes >= limit ? Number.POSITIVE_INFINITY : changes
}

/** Whether the last two of the first `i` letters of a text are, the other way round, the last two of the first `j` of another. */
const isSwapped = (one: string, other: string, i: number, j: number): boolean =>
  i > 1 && j > 1 && one.charCodeAt(i - 1) === other.charCodeAt(j - 2) && one.charCodeAt(i - 2) === other.charCodeAt(j - 1)

/**
 * Returns the name that is nearest to an unknown one, if it differs in at most a quarter of its characters; of shorter ones, if two neighbours are
 * swapped. Of equally near names the first one counts.
 */
export function nearest(unknown: string, names: Iterable<string>): string | undefined {
  const isShort = unknown.length < 4
  let [best, least]: [string | undefined, number] = [undefined, Math.floor(unknown.length / 4) + (isShort ? 2 : 1)]
  for (const name of names) {
    const changes = name === unknown || (isShort && !isReordered(unknown, name)) ? least : distance(unknown, name, least)
    if (changes < least) [best, least] = [name, changes]
  }
  return best
}

const isReordered = (one: string, other: string): boolean => one.length === other.length && [...one].sort().join('') === [...other].sort().join('')

/** The clause that suggests the nearest name, `; did you mean "reviews"?`; empty without one. */
export function suggestion(unknown: string, names: Iterable<string>): string {
  const name = nearest(unknown, names)
  return name === undefined ? '' : `; did you mean ${JSON.stringify(name)}?`
}
