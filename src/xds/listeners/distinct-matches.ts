/**
 * Matches of filter chains that do not overlap: Envoy refuses a whole listener of which two chains want the same connections. The first chain that
 * wants them has them (docs/resources.md, L15).
 */
import ipaddr from 'ipaddr.js'

/** The conditions of `FilterChainMatch` by which chains of one listener are told apart here. */
export interface DistinctMatch {
  readonly destinationPort?: number
  readonly serverNames?: string[]
  readonly transportProtocol?: string
  readonly applicationProtocols?: string[]
  readonly prefixRanges?: { addressPrefix: string; prefixLen: number }[]
}

/** What the chains of one listener want so far; server names count in any case, and what a match names twice counts once. */
export class DistinctMatches {
  readonly #taken = new Set<string>()

  /**
   * Takes what a match wants, and returns it without what it wants twice, and without the server names, or else the address ranges, of which another
   * chain has something already; undefined when nothing is left.
   */
  take<Match extends DistinctMatch>(match: Match): Match | undefined {
    const narrowed = this.#narrowed(withoutRepeats(match))
    if (narrowed) for (const key of keysOf(narrowed)) this.#taken.add(key)
    return narrowed
  }

  /** Whether no other chain has anything of what a match wants. */
  isFree(match: DistinctMatch): boolean {
    return keysOf(match).every((key) => !this.#taken.has(key))
  }

  #narrowed<Match extends DistinctMatch>(match: Match): Match | undefined {
    if (this.isFree(match)) return match
    const serverNames = match.serverNames?.filter((name) => this.isFree({ ...match, serverNames: [name] })) ?? []
    if (serverNames.length > 0) return { ...match, serverNames }
    const prefixRanges = match.prefixRanges?.filter((range) => this.isFree({ ...match, prefixRanges: [range] })) ?? []
    return prefixRanges.length > 0 ? { ...match, prefixRanges } : undefined
  }
}

/** A match in which no value stands twice: Envoy takes a chain for two that overlap otherwise. It is the same one where none does. */
function withoutRepeats<Match extends DistinctMatch>(match: Match): Match {
  const shorter = {
    ...shorterField('serverNames', match.serverNames, (name) => name.toLowerCase()),
    ...shorterField('prefixRanges', match.prefixRanges, networkOf),
    ...shorterField('applicationProtocols', match.applicationProtocols, (protocol) => protocol),
  }
  return Object.keys(shorter).length > 0 ? { ...match, ...shorter } : match
}

/** A field without repeats, if it has any. */
function shorterField<Value>(name: string, values: readonly Value[] | undefined, keyOf: (value: Value) => string): Record<string, Value[]> {
  const distinct = distinctBy(values ?? [], keyOf)
  return distinct.length < (values?.length ?? 0) ? { [name]: distinct } : {}
}

/** The first of all that have the same key. */
function distinctBy<Value>(values: readonly Value[], keyOf: (value: Value) => string): Value[] {
  return [...new Map([...values].reverse().map((value) => [keyOf(value), value] as const)).values()].reverse()
}

/** Every combination of conditions that a match stands for. */
function keysOf({ destinationPort, serverNames, transportProtocol, applicationProtocols, prefixRanges }: DistinctMatch): string[] {
  const each = (values: readonly string[] | undefined) => (values?.length ? [...new Set(values)] : [''])
  const names = each(serverNames?.map((name) => name.toLowerCase()))
  const protocols = each(applicationProtocols)
  return each(prefixRanges?.map(networkOf)).flatMap((range) =>
    names.flatMap((name) => protocols.map((protocol) => `${destinationPort ?? ''} ${range} ${name} ${transportProtocol ?? ''} ${protocol}`)),
  )
}

/** A range by its first address: `10.1.2.3/16` and `10.1.0.0/16` are one. */
function networkOf({ addressPrefix, prefixLen }: { addressPrefix: string; prefixLen: number }): string {
  if (!ipaddr.isValid(addressPrefix)) return `${addressPrefix}/${prefixLen}`
  const bytes = ipaddr.parse(addressPrefix).toByteArray()
  const masked = bytes.map((byte, index) => byte & (0xff00 >> Math.max(0, Math.min(8, prefixLen - index * 8))))
  return `${masked.join('.')}/${prefixLen}`
}
