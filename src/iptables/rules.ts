/** The redirect rules in their order (docs/agent.md, R1 to R4). Converts options to rules; `text.ts` formats them. */
import { type Family, hasLoopback, type Ranges } from './ranges.ts'

/** The port of the agent's DNS server, which captured queries are redirected to. */
export const dnsPort = 15053

/** The tables that contain rules, in the order of writing. */
export const tables = ['nat', 'mangle'] as const
export type Table = (typeof tables)[number]

/** The chains that redirection creates. No other program uses them. */
export const ownChains: readonly string[] = ['MESH_INBOUND', 'MESH_REDIRECT', 'MESH_IN_REDIRECT', 'MESH_OUTPUT', 'MESH_DIVERT', 'MESH_TPROXY']

/**
 * One rule: its table and chain, and its words as arguments of the iptables command. `isFirst`: the rule is inserted at the beginning of
 * its chain.
 */
export interface Rule {
  readonly table: Table
  readonly chain: string
  readonly isFirst: boolean
  readonly words: readonly string[]
}

/** The options of redirection. Every text has been validated (`options.ts`): it is a single word that is not an option. */
export interface RedirectOptions {
  readonly proxyPort: string
  readonly inboundPort: string
  readonly tunnelPort: string
  readonly isTproxy: boolean
  /** The packet and connection mark and the routing table of TPROXY mode. */
  readonly mark: string
  readonly routeTable: string
  readonly inboundPorts: 'all' | readonly string[]
  /** Has an effect only when all inbound ports are captured. */
  readonly inboundPortsExcluded: readonly string[]
  readonly outboundPorts: readonly string[]
  readonly outboundPortsExcluded: readonly string[]
  readonly outboundRanges: Ranges
  readonly outboundRangesExcluded: Ranges
  /** Interfaces of virtual machines. Traffic that arrives there is treated as outbound. */
  readonly interfaces: readonly string[]
  readonly uids: readonly string[]
  readonly gids: readonly string[]
  readonly redirectDns: boolean
  /** The DNS servers that applications on this host use, by family. */
  readonly dnsServers: Readonly<Record<Family, readonly string[]>>
  /** Whether IPv6 is captured as well as IPv4. */
  readonly capturesIpv6: boolean
}

/** Addresses in rules: loopback, and the address from which the proxy connects to the application. */
const addresses = {
  4: { loopback: '127.0.0.1/32', passthrough: '127.0.0.6/32', bits: 32 },
  6: { loopback: '::1/128', passthrough: '::6/128', bits: 128 },
} as const

type Options = RedirectOptions

const append = (table: Table, chain: string, ...words: string[]): Rule => ({ table, chain, isFirst: false, words })
const first = (table: Table, chain: string, ...words: string[]): Rule => ({ table, chain, isFirst: true, words })
const nat = (chain: string, ...words: string[]) => append('nat', chain, ...words)
const mangle = (chain: string, ...words: string[]) => append('mangle', chain, ...words)
const tcp = ['-p', 'tcp'] as const
const toPort = (port: string) => [...tcp, '--dport', port]

/** Returns all rules of an address family, in the order in which they are applied. */
export function redirectRules(options: Options, family: Family): Rule[] {
  if (family === 6 && !options.capturesIpv6) return []
  const isTproxy = isTransparent(options)
  return [
    ...interfaceRules(options.interfaces),
    nat('MESH_INBOUND', ...toPort(options.tunnelPort), '-j', 'RETURN'),
    nat('MESH_REDIRECT', ...tcp, '-j', 'REDIRECT', '--to-ports', options.proxyPort),
    nat('MESH_IN_REDIRECT', ...tcp, '-j', 'REDIRECT', '--to-ports', options.inboundPort),
    ...(isTproxy ? transparentInbound(options, family) : redirectedInbound(options)),
    nat('OUTPUT', ...tcp, '-j', 'MESH_OUTPUT'),
    ...options.outboundPortsExcluded.map((port) => nat('MESH_OUTPUT', ...toPort(port), '-j', 'RETURN')),
    nat('MESH_OUTPUT', '-o', 'lo', '-s', addresses[family].passthrough, '-j', 'RETURN'),
    // In TPROXY mode these connections have the client's address and the mark of Envoy's `original_src` filter instead.
    ...(isTproxy ? [nat('MESH_OUTPUT', '-o', 'lo', ...tcp, '-m', 'mark', '--mark', options.mark, '-j', 'RETURN')] : []),
    ...options.uids.flatMap((uid) => ownerRules(options, family, '--uid-owner', uid)),
    ...options.gids.flatMap((gid) => ownerRules(options, family, '--gid-owner', gid)),
    ...capturedServers(options, family).map((server) =>
      nat('MESH_OUTPUT', ...toPort('53'), '-d', `${server}/${addresses[family].bits}`, '-j', 'REDIRECT', '--to-ports', String(dnsPort)),
    ),
    nat('MESH_OUTPUT', '-d', addresses[family].loopback, '-j', 'RETURN'),
    ...options.outboundRangesExcluded[family].map((range) => nat('MESH_OUTPUT', '-d', range, '-j', 'RETURN')),
    ...options.outboundPorts.map((port) => nat('MESH_OUTPUT', ...toPort(port), '-j', 'MESH_REDIRECT')),
    ...outbound(options, family),
    ...udpDnsRules({ ...options, dnsServers: capturedServers(options, family) }, family),
    ...(options.isTproxy ? markRules(options.mark) : []),
  ]
}

/** Whether inbound connections keep their source address: TPROXY mode, unless nothing inbound is captured. */
export function isTransparent(options: Options): boolean {
  return options.isTproxy && (options.inboundPorts === 'all' || options.inboundPorts.length > 0)
}

/** Returns the rules that exempt traffic from virtual machines' interfaces from inbound capture. */
export function interfaceRules(interfaces: readonly string[]): Rule[] {
  return interfaces.map((name) => first('nat', 'PREROUTING', '-i', name, '-j', 'RETURN'))
}

/** Returns the servers of a family whose queries are redirected. */
const capturedServers = ({ redirectDns, dnsServers }: Options, family: Family): readonly string[] => (redirectDns ? dnsServers[family] : [])

/** The users and groups of the proxy, and the captured DNS servers of one family. */
interface DnsCapture extends Pick<Options, 'uids' | 'gids'> {
  readonly dnsServers: readonly string[]
}

/**
 * Returns the rules for DNS queries over UDP: queries of the proxy's users pass, queries to the host's servers are redirected to the agent.
 * The rules are in the system's OUTPUT chain. Without servers there are none.
 */
export function udpDnsRules({ uids, gids, dnsServers }: DnsCapture, family: Family): Rule[] {
  if (dnsServers.length === 0) return []
  const query = ['-p', 'udp', '--dport', '53']
  return [
    ...uids.map((uid) => nat('OUTPUT', ...query, '-m', 'owner', '--uid-owner', uid, '-j', 'RETURN')),
    ...gids.map((gid) => nat('OUTPUT', ...query, '-m', 'owner', '--gid-owner', gid, '-j', 'RETURN')),
    ...dnsServers.map((server) =>
      nat('OUTPUT', ...query, '-d', `${server}/${addresses[family].bits}`, '-j', 'REDIRECT', '--to-port', String(dnsPort)),
    ),
  ]
}

/**
 * Returns the rules that save the packet mark on the connection and restore it, so that the application's responses are routed back to the
 * proxy.
 */
export function markRules(mark: string): Rule[] {
  return [
    mangle('PREROUTING', ...tcp, '-m', 'mark', '--mark', mark, '-j', 'CONNMARK', '--save-mark'),
    mangle('OUTPUT', ...tcp, '-m', 'connmark', '--mark', mark, '-j', 'CONNMARK', '--restore-mark'),
    first('mangle', 'MESH_INBOUND', ...tcp, '-m', 'mark', '--mark', mark, '-j', 'RETURN'),
  ]
}

/** The ports that are not captured when all others are: SSH, and the excluded ones. */
const passingPorts = (options: Options) => ['22', ...options.inboundPortsExcluded]

function redirectedInbound(options: Options): Rule[] {
  const { inboundPorts } = options
  if (inboundPorts !== 'all' && inboundPorts.length === 0) return []
  const enter = nat('PREROUTING', ...tcp, '-j', 'MESH_INBOUND')
  if (inboundPorts !== 'all') return [enter, ...inboundPorts.map((port) => nat('MESH_INBOUND', ...toPort(port), '-j', 'MESH_IN_REDIRECT'))]
  return [
    enter,
    ...passingPorts(options).map((port) => nat('MESH_INBOUND', ...toPort(port), '-j', 'RETURN')),
    nat('MESH_INBOUND', ...tcp, '-j', 'MESH_IN_REDIRECT'),
  ]
}

function transparentInbound(options: Options, family: Family): Rule[] {
  const { inboundPorts, mark, inboundPort } = options
  const captured = inboundPorts === 'all' ? [[...tcp]] : inboundPorts.map(toPort)
  const passing = inboundPorts === 'all' ? passingPorts(options) : []
  return [
    mangle('MESH_DIVERT', '-j', 'MARK', '--set-mark', mark),
    mangle('MESH_DIVERT', '-j', 'ACCEPT'),
    mangle(
      'MESH_TPROXY',
      ...['!', '-d', addresses[family].loopback, ...tcp, '-j', 'TPROXY', '--tproxy-mark', `${mark}/0xffffffff`, '--on-port', inboundPort],
    ),
    mangle('PREROUTING', ...tcp, '-j', 'MESH_INBOUND'),
    ...passing.map((port) => mangle('MESH_INBOUND', ...toPort(port), '-j', 'RETURN')),
    ...captured.flatMap((match) => [
      mangle('MESH_INBOUND', ...match, '-m', 'conntrack', '--ctstate', 'RELATED,ESTABLISHED', '-j', 'MESH_DIVERT'),
      mangle('MESH_INBOUND', ...match, '-j', 'MESH_TPROXY'),
    ]),
  ]
}

/**
 * Returns the rules for traffic of the proxy's user or group. Traffic of the proxy to its own application through another address is
 * redirected to the inbound port. Traffic of the application to itself and all other traffic of the proxy pass. DNS queries over TCP are
 * left to the DNS rules when these exist.
 */
function ownerRules(options: Options, family: Family, owner: '--uid-owner' | '--gid-owner', id: string): Rule[] {
  const notDns = capturedServers(options, family).length > 0 ? [...tcp, '!', '--dport', '53'] : []
  const appToItself = nat('MESH_OUTPUT', '-o', 'lo', ...notDns, '-m', 'owner', '!', owner, id, '-j', 'RETURN')
  return [
    nat('MESH_OUTPUT', '-o', 'lo', '!', '-d', addresses[family].loopback, ...notDns, '-m', 'owner', owner, id, '-j', 'MESH_IN_REDIRECT'),
    ...(family === 4 && hasLoopback(options.outboundRanges) ? [] : [appToItself]),
    nat('MESH_OUTPUT', '-m', 'owner', owner, id, '-j', 'RETURN'),
  ]
}

function outbound({ outboundRanges, interfaces }: Options, family: Family): Rule[] {
  const fromInterfaces = (...match: string[]) => interfaces.map((name) => first('nat', 'PREROUTING', '-i', name, ...match, '-j', 'MESH_REDIRECT'))
  if (outboundRanges.all) return [nat('MESH_OUTPUT', '-j', 'MESH_REDIRECT'), ...fromInterfaces()]
  const ranges = outboundRanges[family]
  // No packet reaches these rules. They record the interfaces for the removal of the rules of `interfaceRules`.
  if (ranges.length === 0) return interfaces.map((name) => nat('MESH_REDIRECT', '-i', name, '-j', 'RETURN'))
  return [
    ...ranges.flatMap((range) => [...fromInterfaces('-d', range), nat('MESH_OUTPUT', '-d', range, '-j', 'MESH_REDIRECT')]),
    nat('MESH_OUTPUT', '-j', 'RETURN'),
  ]
}
