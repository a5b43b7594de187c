/**
 * Validates the settings of redirection (docs/agent.md, R5, R6). Every text in a rule is a single word of a known form, so that settings
 * cannot inject options.
 */
import { isIp } from '../config/addresses.ts'
import { listItems, type Ranges, readRanges } from './ranges.ts'
import type { RedirectOptions } from './rules.ts'

/** The values of flags as text. Empty for flags that are not given. */
export type RedirectSettings = Readonly<
  Record<
    | 'proxy-port'
    | 'inbound-capture-port'
    | 'inbound-tunnel-port'
    | 'mesh-inbound-interception-mode'
    | 'mesh-inbound-ports'
    | 'mesh-inbound-tproxy-mark'
    | 'mesh-inbound-tproxy-route-table'
    | 'mesh-ipv6'
    | 'mesh-local-exclude-ports'
    | 'mesh-local-outbound-ports-exclude'
    | 'mesh-outbound-ports'
    | 'mesh-service-cidr'
    | 'mesh-service-exclude-cidr'
    | 'orch-virt-interfaces'
    | 'proxy-gid'
    | 'proxy-uid',
    string
  >
>

/** The facts of the host: users and groups (`/etc/passwd`, `/etc/group`), DNS servers, and whether it has IPv6. */
export interface RedirectHost {
  readonly passwd: string
  readonly group: string
  /** The name of the user that the proxy runs as. */
  readonly proxyUser: string
  /** The content of `/etc/resolv.conf`. Undefined when DNS is not captured. */
  readonly resolvConf: string | undefined
  /** The state of IPv6 (docs/agent.md, R5). */
  readonly ipv6: 'absent' | 'off' | 'on'
}

/** The proxy's user id when the host has no user with the proxy's name. */
const defaultUid = '1337'

/** Returns the options, and warnings about settings without effect. Throws an Error that names the flag, the value and what is expected. */
export function readRedirectOptions(settings: RedirectSettings, host: RedirectHost): { options: RedirectOptions; warnings: string[] } {
  const port = (flag: keyof RedirectSettings, otherwise: string) => checked(flag, settings[flag] || otherwise, isPort, 'a port from 1 to 65535')
  const ports = (flag: keyof RedirectSettings) =>
    listItems(settings[flag]).map((item) => checked(flag, item, isPortRange, 'a port from 1 to 65535, or first:last'))
  const inbound = settings['mesh-inbound-ports'].trim()
  const mode = settings['mesh-inbound-interception-mode']
  const ipv6 = checked('mesh-ipv6', settings['mesh-ipv6'] || 'capture', (value) => value === 'capture' || value === 'pass', 'capture or pass')
  const uids = idList('proxy-uid', settings['proxy-uid'] || idOf(host.passwd, host.proxyUser) || defaultUid, host.passwd)
  const options: RedirectOptions = {
    proxyPort: port('proxy-port', '15001'),
    inboundPort: port('inbound-capture-port', '15006'),
    tunnelPort: port('inbound-tunnel-port', '15008'),
    isTproxy: mode === 'TPROXY',
    mark: checked('mesh-inbound-tproxy-mark', settings['mesh-inbound-tproxy-mark'] || '1337', isMark, 'a number from 1 to 4294967295'),
    routeTable: checked(
      'mesh-inbound-tproxy-route-table',
      settings['mesh-inbound-tproxy-route-table'] || '133',
      isRouteTable,
      'a number from 1 to 4294967295 that is none of the tables of the system (253 to 255)',
    ),
    inboundPorts: inbound === '*' ? 'all' : ports('mesh-inbound-ports'),
    inboundPortsExcluded: ports('mesh-local-exclude-ports'),
    outboundPorts: ports('mesh-outbound-ports'),
    outboundPortsExcluded: ports('mesh-local-outbound-ports-exclude'),
    outboundRanges: readRanges(settings['mesh-service-cidr']),
    outboundRangesExcluded: readRanges(settings['mesh-service-exclude-cidr']),
    interfaces: [...new Set(listItems(settings['orch-virt-interfaces']))].map((name) =>
      checked('orch-virt-interfaces', name, isInterface, 'the name of an interface, of at most 15 characters'),
    ),
    uids,
    gids: settings['proxy-gid'] === '' ? uids : idList('proxy-gid', settings['proxy-gid'], host.group),
    redirectDns: host.resolvConf !== undefined,
    dnsServers: nameServers(host.resolvConf ?? ''),
    capturesIpv6: host.ipv6 !== 'absent' && ipv6 === 'capture',
  }
  return { options, warnings: [...modeWarnings(mode), ...rangeWarnings(options), ...dnsWarnings(options)] }
}

function modeWarnings(mode: string): string[] {
  if (['', 'REDIRECT', 'TPROXY'].includes(mode)) return []
  return [`--mesh-inbound-interception-mode: ${shown(mode)} is neither REDIRECT nor TPROXY; REDIRECT is used`]
}

function rangeWarnings({ outboundRanges, outboundRangesExcluded }: RedirectOptions): string[] {
  const about = (flag: string, ranges: Ranges) =>
    ranges.unreadable.map((item) => `--${flag}: ${shown(item)} is not a range such as 10.0.0.0/8 or fd00::/8; it is left out`)
  const left = [...about('mesh-service-cidr', outboundRanges), ...about('mesh-service-exclude-cidr', outboundRangesExcluded)]
  if (outboundRanges.unreadable.length > 0 && outboundRanges[4].length + outboundRanges[6].length === 0)
    throw new Error(
      `--mesh-service-cidr: ${shown(outboundRanges.unreadable.join(','))} has no range such as 10.0.0.0/8: nothing outbound would be captured`,
    )
  return left
}

function dnsWarnings({ redirectDns, dnsServers, capturesIpv6 }: RedirectOptions): string[] {
  const servers = [...dnsServers[4], ...(capturesIpv6 ? dnsServers[6] : [])]
  return redirectDns && servers.length === 0 ? ['--redirect-dns: resolv.conf names no server whose traffic is captured; no query is redirected'] : []
}

/** Returns the DNS servers of a resolv.conf by family, without duplicates. Addresses with a zone (link-local) are omitted. */
export function nameServers(resolvConf: string): { readonly 4: readonly string[]; readonly 6: readonly string[] } {
  const lines = resolvConf.split('\n').map((line) => /^\s*nameserver\s+(\S+)/.exec(line)?.[1] ?? '')
  const all = [...new Set(lines.filter(isIp))]
  return { 4: all.filter((address) => !address.includes(':')), 6: all.filter((address) => address.includes(':')) }
}

/** Returns the numeric id of a name from a file in the format of /etc/passwd or /etc/group. */
function idOf(file: string, name: string): string | undefined {
  const entry = file
    .split('\n')
    .map((line) => line.split(':'))
    .find((parts) => parts[0] === name && name !== '')
  return entry && isId(entry[2] ?? '') ? entry[2] : undefined
}

function idList(flag: 'proxy-uid' | 'proxy-gid', text: string, file: string): string[] {
  const ids = listItems(text).map((item) =>
    checked(flag, isId(item) ? String(Number(item)) : (idOf(file, item) ?? item), isId, 'a numeric id, or a name that this host knows'),
  )
  if (ids.length === 0) throw new Error(`--${flag}: ${shown(text)} names no user: all traffic of the proxy would be redirected back to it`)
  return [...new Set(ids)]
}

function checked(flag: string, value: string, isRight: (value: string) => boolean, expected: string): string {
  if (!isRight(value)) throw new Error(`--${flag}: ${shown(value)} is not ${expected}`)
  return value
}

const shown = (value: string) => JSON.stringify(value.slice(0, 100))
const isNumber = (value: string, least: number, most: number) => /^(0|[1-9]\d{0,9})$/.test(value) && Number(value) >= least && Number(value) <= most
const isPort = (value: string) => isNumber(value, 1, 65_535)
const isId = (value: string) => isNumber(value, 0, 4_294_967_294)
const isRouteTable = (value: string) => isNumber(value, 1, 4_294_967_295) && !isNumber(value, 253, 255)
const isInterface = (value: string) => /^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,14}$|^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,13}\+$/.test(value)

function isPortRange(value: string): boolean {
  const [least = '', most, more] = value.split(':')
  return more === undefined && isPort(least) && (most === undefined || (isPort(most) && Number(least) <= Number(most)))
}

function isMark(value: string): boolean {
  return isNumber(value, 1, 4_294_967_295) || (/^0x[0-9a-f]{1,8}$/i.test(value) && Number(value) > 0)
}

/** Whether all ranges are excluded, which rules cannot express. */
export function excludesAll({ outboundRangesExcluded }: RedirectOptions): boolean {
  return outboundRangesExcluded.all || outboundRangesExcluded.unreadable.includes('*')
}
