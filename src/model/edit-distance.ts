/** How far apart two texts are, for names that were misspelt. */

/** Texts whose lengths differ by more than this are not compared. */
const mostLonger = 3

/** The edit distance between two texts: the number of letters to insert, delete or replace. Infinite for texts of very different length. */
export function distance(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > mostLonger) return Number.POSITIVE_INFINITY
  let row = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (let i = 1; i <= one.length; i++) {
    const next = [i]
    for (let j = 1; j <= other.length; j++)
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, (row[j - 1] ?? 0) + (one[i - 1] === other[j - 1] ? 0 : 1)))
    row = next
  }
  return row[other.length] ?? 0
}

/**
 * Returns the name that is nearest to an unknown one, if it differs in at most a quarter of its characters. Of equally near names the first one
 * counts.
 */
export function nearest(unknown: string, names: Iterable<string>): string | undefined {
  let [best, least]: [string | undefined, number] = [undefined, Math.floor(unknown.length / 4) + 1]
  for (const name of names) {
    const changes = name === unknown ? least : distance(unknown, name)
    if (changes < least) [best, least] = [name, changes]
  }
  return best
}

/** The clause that suggests the nearest name, `; did you mean "reviews"?`; empty without one. */
export function suggestion(unknown: string, names: Iterable<string>): string {
  const name = nearest(unknown, names)
  return name === undefined ? '' : `; did you mean ${JSON.stringify(name)}?`
}
