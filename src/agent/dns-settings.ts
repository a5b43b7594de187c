/** Reads the settings of the agent's DNS server from the environment. */
import type { DnsConfig } from '../../protocols/messages/dns.ts'
import { isIp } from '../config/addresses.ts'
import type { AgentFeatures } from '../config/agent-features.ts'

/** The workload for which names are resolved. */
interface Workload {
  readonly role: 'sidecar' | 'router'
  readonly domain: string
  readonly namespace: string
}

/** Whether the agent runs a DNS server: beside a sidecar, when DNS capture is on and discovery is called through the agent. */
export function resolvesNames({ role }: Pick<Workload, 'role'>, features: AgentFeatures): boolean {
  return role === 'sidecar' && features.MESH_META_DNS_CAPTURE && features.PROXY_XDS_VIA_AGENT
}

/** Returns the settings of the DNS server. Throws an Error that names the variable when the address is invalid. */
export function dnsConfig(features: AgentFeatures, { domain, namespace }: Workload): DnsConfig {
  const { DNS_PROXY_ADDR: address, MESH_AGENT_STATE_DIR: keptIn } = features
  const [, host = '', port = ''] = /^(.*):(\d{1,5})$/.exec(address) ?? []
  const isHost = host === '' || host === '*' || host === 'localhost' || isIp(host.replace(/^\[(.*)\]$/, '$1'))
  if (port === '' || Number(port) > 65_535 || !isHost)
    throw new Error(`environment variable DNS_PROXY_ADDR: ${JSON.stringify(address.slice(0, 100))} is not <localhost or IP address>:<port>`)
  return { address, resolvConf: '/etc/resolv.conf', serverPort: 53, domain, namespace, keptIn: keptIn === '' ? undefined : keptIn }
}
