/** Texts that state a number of things. */

/** A number with the words for one thing or for several: `1 proxy`, `2 proxies`, `0 proxies`. By default the plural is made with an "s". */
export function count(number: number | bigint, one: string, several = `${one}s`): string {
  return `${number} ${Number(number) === 1 ? one : several}`
}
