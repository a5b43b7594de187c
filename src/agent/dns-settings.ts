/** What the environment says of the agent's DNS server. */
import type { DnsConfig } from '../../protocols/messages/dns.ts'
import { isIp } from '../config/addresses.ts'
import type { AgentFeatures } from '../config/agent-features.ts'

/** Who the names are resolved for. */
interface Workload {
  readonly role: 'sidecar' | 'router'
  readonly domain: string
  readonly namespace: string
}

/** Whether the agent resolves names: beside a sidecar, when it is to capture DNS, and where configuration comes through it. */
export function resolvesNames({ role }: Pick<Workload, 'role'>, features: AgentFeatures): boolean {
  return role === 'sidecar' && features.MESH_META_DNS_CAPTURE && features.PROXY_XDS_VIA_AGENT
}

/** Reads the environment. Throws an Error that names the variable when the address is none. */
export function dnsConfig(features: AgentFeatures, { domain, namespace }: Workload): DnsConfig {
  const { DNS_PROXY_ADDR: address, MESH_AGENT_STATE_DIR: keptIn } = features
  const [, host = '', port = ''] = /^(.*):(\d{1,5})$/.exec(address) ?? []
  const isHost = host === '' || host === '*' || host === 'localhost' || isIp(host.replace(/^\[(.*)\]$/, '$1'))
  if (port === '' || Number(port) > 65_535 || !isHost)
    throw new Error(`environment variable DNS_PROXY_ADDR: ${JSON.stringify(address.slice(0, 100))} is not <localhost or IP address>:<port>`)
  return { address, resolvConf: '/etc/resolv.conf', serverPort: 53, domain, namespace, keptIn: keptIn === '' ? undefined : keptIn }
}
