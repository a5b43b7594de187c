/** Configuration and state of an agent's DNS server. */

/** Settings of the DNS server. */
export interface DnsConfig {
  /**
   * The address on which it listens, over UDP and TCP: `host:port`. For `localhost` both loopback addresses, as far as the machine has
   * them.
   */
  readonly address: string
  /** The system's resolver configuration, `/etc/resolv.conf`. */
  readonly resolvConf: string
  /** Port of the servers in it. */
  readonly serverPort: number
  /** DNS domain of the proxy, `<namespace>.svc.cluster.local`, and its namespace. */
  readonly domain: string
  readonly namespace: string
  /** Directory in which the last table is kept over a restart; undefined: it is not kept. */
  readonly keptIn: string | undefined
}

/** The answer to `state`. */
export interface DnsState {
  /** The addresses on which it listens, each `host:port`. */
  readonly addresses: readonly string[]
  /** The number of hosts in its table; undefined before there is a table. */
  readonly hosts: number | undefined
  /** Whether the table is that of the previous run, because discovery has not sent one yet. */
  readonly isKept: boolean
  /** The servers to which all other queries are forwarded. */
  readonly servers: readonly string[]
}
