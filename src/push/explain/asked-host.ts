/** The names in the host of a request. */

/** The host without its port and trailing dot, in lower case. */
export const hostNameOf = (host: string): string =>
  host
    .toLowerCase()
    .replace(/:\d+$/, '')
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '')

/** Whether a host without its port is an address. */
export const isAddress = (host: string): boolean => /^[\d.]+$|:/.test(host)

/** The server name that clients give a TLS connection to a host; empty: none, as the host is an address. */
export function serverNameOf(host: string): string {
  const name = hostNameOf(host)
  return isAddress(name) ? '' : name
}
