/** Texts that state a number of things. */

/** A number with the words for one thing or for several: `1 proxy`, `2 proxies`, `0 proxies`. By default the plural is made with an "s". */
export function count(number: number | bigint, one: string, several = `${one}s`): string {
  return `${number} ${Number(number) === 1 ? one : several}`
}

/** The first `most` of some names, and the number of the others. `all`: their number, where only the first ones are given. */
export function someOf(names: readonly string[], most: number, all = names.length): string {
  const more = all - most
  return more > 0 ? `${names.slice(0, most).join(', ')} and ${more} more` : names.join(', ')
}
