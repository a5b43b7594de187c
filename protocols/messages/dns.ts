/** What the DNS server of an agent is told when it starts, and what it says of itself. */

/** Settings of the DNS server. */
export interface DnsConfig {
  /** Where it listens, over UDP and TCP: `host:port`. Of `localhost` both addresses, as far as the machine has them. */
  readonly address: string
  /** The system's resolver configuration, `/etc/resolv.conf`. */
  readonly resolvConf: string
  /** Port of the servers in it. */
  readonly serverPort: number
  /** DNS domain of the proxy, `<namespace>.svc.cluster.local`, and its namespace. */
  readonly domain: string
  readonly namespace: string
  /** Directory in which the last table outlives a restart; undefined when it is not kept. */
  readonly keptIn: string | undefined
}

/** The answer to `state`. */
export interface DnsState {
  /** Where it listens, `host:port` each. */
  readonly addresses: readonly string[]
  /** Hosts of the table that it answers from; undefined before there is one. */
  readonly hosts: number | undefined
  /** Whether that table is the one of the last run: discovery has not told any yet. */
  readonly isKept: boolean
  /** Servers that everything else is asked of. */
  readonly servers: readonly string[]
}
