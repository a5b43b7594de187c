/** How a system finds the addresses of a name: the hosts file, the sources of nsswitch.conf(5), the search domains of resolv.conf(5). */
import ipaddr from 'ipaddr.js'
import type { ResolverConfig } from './resolv-conf.ts'

/** Sources that the hosts file and name servers stand for. Multicast DNS is one of them for all names but its own. */
const asFilesAndServers = /^(files|dns|resolve|myhostname|mymachines|\[.*\])$/
const multicast = /^mdns[46]?(_minimal)?$/

/**
 * Whether the hosts file and name servers are all that a system finds a name with, by its nsswitch.conf; undefined where there is no such
 * file, which means these two.
 */
export function isFromServers(name: string, nsswitch: string | undefined): boolean {
  const line = /^\s*hosts:([^#\n]*)/m.exec(nsswitch ?? 'hosts: files dns')?.[1] ?? ''
  const sources: readonly string[] = line.match(/\[[^\]]*\]|[^\s[\]]+/g) ?? []
  const isLocal = /\.local\.?$/i.test(name)
  return sources.includes('dns') && sources.every((source) => asFilesAndServers.test(source) || (!isLocal && multicast.test(source)))
}

/** The addresses of a name in a hosts file (hosts(5)). */
export function addressesInHosts(name: string, hosts: string): string[] {
  const wanted = withoutDot(name.toLowerCase())
  return hosts.split('\n').flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*$/, '').trim().split(/\s+/)
    return names.some((one) => withoutDot(one.toLowerCase()) === wanted) && ipaddr.isValid(address) ? [address] : []
  })
}

/** The full names that are asked for, one after the other until one exists. A name with a final dot is a full name. */
export function fullNames(name: string, { search, ndots }: Pick<ResolverConfig, 'search' | 'ndots'>): string[] {
  if (name.endsWith('.')) return [withoutDot(name)]
  const inSearch = search.map((domain) => `${name}.${domain}`)
  return name.split('.').length > ndots ? [name, ...inSearch] : [...inSearch, name]
}

const withoutDot = (name: string): string => name.replace(/\.$/, '')
