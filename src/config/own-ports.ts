/** The ports of proxies and agents, which no service may lead to on the machine of its caller (docs/resources.md, E8). */

/**
 * Ports of a proxy and its agent unless they are configured otherwise: administration, outbound and inbound connections, debug pages,
 * tunnels, status, health, DNS, metrics (docs/resources.md, E8). Some of the servers on these ports trust programs of their own machine.
 */
export const ownPorts: ReadonlySet<number> = new Set([15_000, 15_001, 15_004, 15_006, 15_008, 15_020, 15_021, 15_053, 15_090])
