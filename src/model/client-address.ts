/** Which clients count as one where a limit is shared out by client. */

/**
 * Returns the key under which a client counts: its IPv4 address, the first 64 bits of its IPv6 address, because a client chooses the others
 * itself, and one key for all loopback addresses, which every local program may use. The empty string stands for a client without an address
 * (unix sockets).
 */
export function clientKey(address: string | undefined): string {
  if (address === undefined || address === '') return ''
  const bare = bareOf(address)
  return bare === '::1' || bare.startsWith('127.') ? 'loopback' : networkOf(address)
}

/** Returns the network of a client: its IPv4 address, or the first 64 bits of its IPv6 address. */
export function networkOf(address: string): string {
  const bare = bareOf(address)
  return bare.includes(':') ? `${firstGroups(bare)}::/64` : bare
}

/** The address without a zone; one of IPv4 that is mapped into IPv6 is that address. */
function bareOf(address: string): string {
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
