/**
 * Makes the matches of filter chains distinct: Envoy refuses a listener in which two chains have overlapping matches. The chain that claims
 * a match first keeps it (docs/resources.md, L15).
 */
import ipaddr from 'ipaddr.js'

/** The conditions of `FilterChainMatch` by which the chains of a listener differ. */
export interface DistinctMatch {
  readonly destinationPort?: number
  readonly serverNames?: string[]
  readonly transportProtocol?: string
  readonly applicationProtocols?: string[]
  readonly prefixRanges?: { addressPrefix: string; prefixLen: number }[]
}

/** The matches that the chains of one listener have claimed. Server names are compared case-insensitively. */
export class DistinctMatches {
  readonly #taken = new Set<string>()

  /**
   * Claims a match. Returns the match without repetitions, and without the server names, or else the address ranges, that conflict with
   * another chain; undefined if nothing is left.
   */
  take<Match extends DistinctMatch>(match: Match): Match | undefined {
    const narrowed = this.#narrowed(withoutRepeats(match))
    if (narrowed) for (const key of keysOf(narrowed)) this.#taken.add(key)
    return narrowed
  }

  /** Whether a match conflicts with no other chain. */
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

/** Removes repeated values from a match: Envoy would treat the chain as two overlapping ones. Returns the same object if there are none. */
function withoutRepeats<Match extends DistinctMatch>(match: Match): Match {
  const shorter = {
    ...shorterField('serverNames', match.serverNames, (name) => name.toLowerCase()),
    ...shorterField('prefixRanges', match.prefixRanges, networkOf),
    ...shorterField('applicationProtocols', match.applicationProtocols, (protocol) => protocol),
  }
  return Object.keys(shorter).length > 0 ? { ...match, ...shorter } : match
}

/** Returns a field without repeated values; empty if it has none. */
function shorterField<Value>(name: string, values: readonly Value[] | undefined, keyOf: (value: Value) => string): Record<string, Value[]> {
  const distinct = distinctBy(values ?? [], keyOf)
  return distinct.length < (values?.length ?? 0) ? { [name]: distinct } : {}
}

/** Returns the values with distinct keys; of equal ones the first. */
function distinctBy<Value>(values: readonly Value[], keyOf: (value: Value) => string): Value[] {
  return [...new Map([...values].reverse().map((value) => [keyOf(value), value] as const)).values()].reverse()
}

/** Returns a key for every combination of conditions that a match covers. */
function keysOf({ destinationPort, serverNames, transportProtocol, applicationProtocols, prefixRanges }: DistinctMatch): string[] {
  const each = (values: readonly string[] | undefined) => (values?.length ? [...new Set(values)] : [''])
  const names = each(serverNames?.map((name) => name.toLowerCase()))
  const protocols = each(applicationProtocols)
  return each(prefixRanges?.map(networkOf)).flatMap((range) =>
    names.flatMap((name) => protocols.map((protocol) => `${destinationPort ?? ''} ${range} ${name} ${transportProtocol ?? ''} ${protocol}`)),
  )
}

/** Returns the canonical form of a range: `10.1.2.3/16` and `10.1.0.0/16` are the same. */
function networkOf({ addressPrefix, prefixLen }: { addressPrefix: string; prefixLen: number }): string {
  if (!ipaddr.isValid(addressPrefix)) return `${addressPrefix}/${prefixLen}`
  const bytes = ipaddr.parse(addressPrefix).toByteArray()
  const masked = bytes.map((byte, index) => byte & (0xff00 >> Math.max(0, Math.min(8, prefixLen - index * 8))))
  return `${masked.join('.')}/${prefixLen}`
}
