/** How far apart two texts are, for names that were misspelt. */

/** Texts whose lengths differ by more than this are not compared. */
const mostLonger = 3

/**
 * The edit distance between two texts: the number of letters to insert, delete or replace. Infinite for texts of very different length, and where it
 * is `limit` or more.
 */
export function distance(one: string, other: string, limit = Number.POSITIVE_INFINITY): number {
  if (Math.abs(one.length - other.length) > mostLonger) return Number.POSITIVE_INFINITY
  let [row, next] = [new Array<number>(other.length + 1), new Array<number>(other.length + 1)]
  for (let j = 0; j <= other.length; j++) row[j] = j
  for (let i = 1; i <= one.length; i++) {
    let least = i
    next[0] = i
    for (let j = 1; j <= other.length; j++) {
      const replaced = (row[j - 1] as number) + (one.charCodeAt(i - 1) === other.charCodeAt(j - 1) ? 0 : 1)
      const changes = Math.min((row[j] as number) + 1, (next[j - 1] as number) + 1, replaced)
      next[j] = changes
      if (changes < least) least = changes
    }
    if (least >= limit) return Number.POSITIVE_INFINITY
    ;[row, next] = [next, row]
  }
  const changes = row[other.length] as number
  return changes >= limit ? Number.POSITIVE_INFINITY : changes
}

/**
 * Returns the name that is nearest to an unknown one, if it differs in at most a quarter of its characters. Of equally near names the first one
 * counts.
 */
export function nearest(unknown: string, names: Iterable<string>): string | undefined {
  let [best, least]: [string | undefined, number] = [undefined, Math.floor(unknown.length / 4) + 1]
  for (const name of names) {
    const changes = name === unknown ? least : distance(unknown, name, least)
    if (changes < least) [best, least] = [name, changes]
  }
  return best
}

/** The clause that suggests the nearest name, `; did you mean "reviews"?`; empty without one. */
export function suggestion(unknown: string, names: Iterable<string>): string {
  const name = nearest(unknown, names)
  return name === undefined ? '' : `; did you mean ${JSON.stringify(name)}?`
}
