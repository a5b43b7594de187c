/** The source ports of the agent's DNS queries (docs/agent.md, D4). */

/** The lowest source port. Registered services use the ports below. */
const lowest = 10_000
/** The minimum number of ports. Fewer would be too easy to guess for spoofed responses. */
const fewest = 4096

/**
 * Returns the larger range of ports outside the kernel's ephemeral range, which is the content of `/proc/sys/net/ipv4/ip_local_port_range`.
 * Undefined when it has too few ports. Connection tracking remembers by address and port which flows are redirected: a query of the agent
 * from a port that an application has just used would be redirected to the agent, and an application's query from a port that the agent has
 * just used would bypass the agent.
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
