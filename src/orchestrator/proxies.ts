/** Reads the address of a proxy in front of an API server (`proxy-url` of a cluster; docs/operation.md, C1). */

/** A proxy. `http` and `https`: one that is asked by CONNECT, the latter over TLS. */
export interface ProxyAddress {
  readonly type: 'http' | 'https' | 'socks5'
  readonly host: string
  readonly port: number
  /** Empty without one. */
  readonly user: string
  readonly password: string
}

const ports = { http: 80, https: 443, socks5: 1080 }

/** Reads an address. Throws an Error with the reason, without the password, when it cannot be used. */
export function readProxy(text: string): ProxyAddress {
  const url = URL.parse(text)
  if (!url || url.hostname === '') throw new Error('it is no address: expected http, https or socks5, a host and a port')
  const type = url.protocol.slice(0, -1)
  if (type !== 'http' && type !== 'https' && type !== 'socks5') throw new Error(`expected http, https or socks5, got ${type}`)
  return {
    type,
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? ports[type] : Number(url.port),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
  }
}
