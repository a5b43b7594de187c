/** The system's resolver configuration (resolv.conf(5)), as far as the agent goes by it. */
import ipaddr from 'ipaddr.js'

/** Where queries are sent that the agent does not answer itself, and what clients append to short names. */
export interface ResolverConfig {
  /** IP addresses in their order; IPv6 ones may have a zone. */
  readonly servers: readonly string[]
  readonly search: readonly string[]
}

/** Servers and search domains that are read at most: more than any system uses. */
const most = { servers: 16, search: 32 }

/** Reads a configuration. Lines that cannot be read count for nothing, as for the system's own resolver; of `search` and `domain` the last counts. */
export function readResolvConf(text: string): ResolverConfig {
  const servers: string[] = []
  let search: readonly string[] = []
  for (const line of text.split('\n')) {
    const [word, ...values] = line
      .replace(/[#;].*$/, '')
      .trim()
      .split(/\s+/)
    const [first] = values
    if (word === 'nameserver' && first !== undefined && isAddress(first) && servers.length < most.servers) servers.push(first)
    if (word === 'search') search = values
    if (word === 'domain' && first !== undefined) search = [first]
  }
  const domains = search.map((domain) => domain.toLowerCase().replace(/\.$/, '')).filter((domain) => domain !== '')
  return { servers: [...new Set(servers)], search: domains.slice(0, most.search) }
}

const isAddress = (text: string): boolean => ipaddr.isValid(text.replace(/%.*$/, ''))
