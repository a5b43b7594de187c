/** Parses the system's resolver configuration (resolv.conf(5)), as far as it is used here. */
import ipaddr from 'ipaddr.js'

/** The servers that queries are forwarded to, and the search domains of clients. */
export interface ResolverConfig {
  /** IP addresses in the order of the file. IPv6 addresses may have a zone. */
  readonly servers: readonly string[]
  readonly search: readonly string[]
  /** Names with fewer dots are looked up in the search domains first. */
  readonly ndots: number
}

/** The maximum numbers of servers, search domains and dots that are used. Systems use fewer. */
const most = { servers: 16, search: 32, ndots: 15 }

/** Parses a configuration. Invalid lines are ignored, as by the system's own resolver; the last `search` or `domain` counts. */
export function readResolvConf(text: string): ResolverConfig {
  const servers: string[] = []
  let search: readonly string[] = []
  let ndots = 1
  for (const line of text.split('\n')) {
    const [word, ...values] = line
      .replace(/[#;].*$/, '')
      .trim()
      .split(/\s+/)
    const [first] = values
    if (word === 'nameserver' && first !== undefined && isAddress(first) && servers.length < most.servers) servers.push(first)
    if (word === 'search') search = values
    if (word === 'options') for (const option of values) ndots = /^ndots:(\d+)$/.test(option) ? Math.min(Number(option.slice(6)), most.ndots) : ndots
    if (word === 'domain' && first !== undefined) search = [first]
  }
  const domains = search.map((domain) => domain.toLowerCase().replace(/\.$/, '')).filter((domain) => domain !== '')
  return { servers: [...new Set(servers)], search: domains.slice(0, most.search), ndots }
}

const isAddress = (text: string): boolean => ipaddr.isValid(text.replace(/%.*$/, ''))
