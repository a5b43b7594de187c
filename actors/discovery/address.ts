/** Addresses as flags give them. */

/** Host and port of `host:port`; an empty host means every address. */
export function splitAddress(address: string): [host: string, port: number] {
  const colon = address.lastIndexOf(':')
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '')
  return [host === '*' ? '' : host, Number(address.slice(colon + 1))]
}
