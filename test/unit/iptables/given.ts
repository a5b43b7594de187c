/** Redirection options as the command parses them, for tests. */
import { type RedirectHost, type RedirectSettings, readRedirectOptions } from '../../../src/iptables/options.ts'
import { redirectRules } from '../../../src/iptables/rules.ts'
import { restoreText } from '../../../src/iptables/text.ts'

const nothing: RedirectSettings = {
  'proxy-port': '',
  'inbound-capture-port': '',
  'inbound-tunnel-port': '',
  'mesh-inbound-interception-mode': '',
  'mesh-inbound-ports': '',
  'mesh-inbound-tproxy-mark': '',
  'mesh-inbound-tproxy-route-table': '',
  'mesh-ipv6': '',
  'mesh-local-exclude-ports': '',
  'mesh-local-outbound-ports-exclude': '',
  'mesh-outbound-ports': '',
  'mesh-service-cidr': '',
  'mesh-service-exclude-cidr': '',
  'orch-virt-interfaces': '',
  'proxy-gid': '',
  'proxy-uid': '',
}

const plainHost: RedirectHost = { passwd: '', group: '', proxyUser: 'mesh-proxy', resolvConf: undefined, ipv6: 'absent' }

/** Parses these flags on the given host. */
export function read(flags: Partial<RedirectSettings> = {}, host: Partial<RedirectHost> = {}): ReturnType<typeof readRedirectOptions> {
  return readRedirectOptions({ ...nothing, ...flags }, { ...plainHost, ...host })
}

/** Returns the input of iptables-restore as lines. */
export function listing(flags: Partial<RedirectSettings>, host: Partial<RedirectHost> = {}, family: 4 | 6 = 4): string[] {
  return restoreText(redirectRules(read(flags, host).options, family))
    .trimEnd()
    .split('\n')
}
