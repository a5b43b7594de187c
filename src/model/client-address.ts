/** Which clients count as one where something is shared out by client. */

/**
 * Returns the key under which a client counts: its IPv4 address (mapped into IPv6 or not), or the first 64 bits of its IPv6 address, because
 * a client chooses the others itself. The empty string stands for a client without an address (unix sockets).
 */
export function clientKey(address = ''): string {
  const plain = plainAddress(address)
  return plain.includes(':') ? `${firstGroups(plain)}::/64` : plain
}

/** Returns an address without its zone, and an IPv4 address that is mapped into IPv6 as itself. */
export function plainAddress(address: string): string {
  const bare = address.toLowerCase().replace(/%.*$/, '')
  return /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(bare)?.[1] ?? bare
}

/** The first four groups of an IPv6 address, without leading zeros. */
function firstGroups(address: string): string {
  const [before = '', after] = address.split('::')
  const groups = before === '' ? [] : before.split(':')
  const rest = after === undefined || after === '' ? [] : after.split(':')
  // An IPv4 address at the end stands for two groups.
  const length = groups.length + rest.length + (rest.at(-1)?.includes('.') ? 1 : 0)
  const zeros = after === undefined ? [] : Array.from({ length: Math.max(0, 8 - length) }, () => '0')
  return [...groups, ...zeros, ...rest]
    .slice(0, 4)
    .map((group) => group.replace(/^0+(?=.)/, ''))
    .join(':')
}
