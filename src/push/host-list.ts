/** Lists of hosts that are compared with the list before, at little cost where they begin and end alike. */

/** Hosts in their order, and as a set. */
export interface HostList {
  readonly list: readonly string[]
  readonly set: ReadonlySet<string>
}

/** The list of no hosts. */
export const noHosts: HostList = { list: [], set: new Set() }

/** Returns the list of the hosts now, and adds to `changed` those that came or went. Where both lists begin or end alike costs little. */
export function listed(now: readonly string[], before: HostList, changed: Set<string>): HostList {
  const { list } = before
  if (now === list) return before
  const shortest = Math.min(now.length, list.length)
  let start = 0
  while (start < shortest && now[start] === list[start]) start++
  if (start === shortest && now.length === list.length) return before
  let end = 0
  while (end < shortest - start && now[now.length - 1 - end] === list[list.length - 1 - end]) end++
  const [here, there] = [new Set(now.slice(start, now.length - end)), new Set(list.slice(start, list.length - end))]
  const set = before.set as Set<string>
  const target = before === noHosts ? new Set<string>() : set
  for (const host of there)
    if (!here.has(host)) {
      target.delete(host)
      changed.add(host)
    }
  for (const host of here)
    if (!there.has(host)) {
      target.add(host)
      changed.add(host)
    }
  // A host that is listed twice, and one time less now, was removed although it is there.
  return { list: now, set: target.size === now.length ? target : new Set(now) }
}
