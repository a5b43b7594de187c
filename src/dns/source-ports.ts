/** Ports from which the agent asks DNS servers (docs/agent.md, D4). */

/** Below these are ports of services that are known by number. */
const lowest = 10_000
/** Fewer ports than this could be guessed. */
const fewest = 4096

/**
 * Ports that no application is given by the kernel, first and last, by what `/proc/sys/net/ipv4/ip_local_port_range` says; undefined when there are too few
 * of them. The kernel remembers which flows it redirects by address and port: a query of the agent from a port that an application had a moment
 * before would be redirected to the agent, and one of an application from the agent's port would pass the agent by.
 */
export function sourcePorts(localPortRange: string): readonly [first: number, last: number] | undefined {
  const [, least, most] = /^(\d+)\s+(\d+)\s*$/.exec(localPortRange) ?? []
  if (least === undefined || most === undefined) return undefined
  const below = [lowest, Number(least) - 1] as const
  const above = [Math.max(Number(most) + 1, lowest), 65_535] as const
  const size = ([first, last]: readonly [number, number]) => last - first + 1
  const larger = size(below) >= size(above) ? below : above
  return size(larger) >= fewest ? larger : undefined
}
