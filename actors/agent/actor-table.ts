/** The wiring of the agent as one table: its actors, and the messages that each consumes and emits. All actors run in the main thread. */
import type { HealthChanged } from '../../protocols/messages/health.ts'
import type { NameTableChanged } from '../../protocols/messages/name-table.ts'
import type { TrustBundleChanged } from '../../protocols/messages/trust-bundle.ts'
import { dnsConfig, resolvesNames } from '../../src/agent/dns-settings.ts'
import { xdsRelayConfig } from '../../src/agent/relay-settings.ts'
import { secretAgentConfig } from '../../src/agent/settings.ts'
import { discoverySettings } from '../../src/bootstrap/prepared.ts'
import { statusConfig } from '../../src/health/settings.ts'
import { tokenServiceConfig } from '../../src/sts/settings.ts'
import { type ActorRow, type Wiring, wire } from '../runtime/wiring.ts'
import type { PreparedProxy } from './bootstrap/prepare-proxy.ts'

/** The inputs of the table. */
export interface TableParts {
  readonly proxy: PreparedProxy
  /** Called for each setting that has no effect. */
  readonly warn: (message: string) => void
  /** Returns the URL of an actor's module, given its path in this folder. */
  readonly module: (name: string) => URL
}

/** The messages between the actors. */
interface Messages {
  HealthChanged: HealthChanged
  NameTableChanged: NameTableChanged
  TrustBundleChanged: TrustBundleChanged
}
type Row<Definition> = ActorRow<Messages, Definition>

type DnsServer = typeof import('./dns/dns-server.ts').actor
type XdsRelay = typeof import('./xds-relay/xds-relay.ts').actor
type SecretAgent = typeof import('./sds/secret-agent.ts').actor
type TokenService = typeof import('./sts/token-service.ts').actor
type StatusServer = typeof import('./status/status-server.ts').actor

/** Returns the wiring of an agent. Throws an Error that names the invalid setting. */
export function actorTable({ proxy, warn, module }: TableParts): Wiring {
  const { options, features, environment, config, node, platform } = proxy
  const secrets: Row<SecretAgent> = {
    module: 'sds/secret-agent',
    consumes: { TrustBundleChanged: true },
    emits: {},
    runs: 'in-thread',
    actors: [{ name: 'secret-agent', config: secretAgentConfig(features, config.discoveryAddress) }],
  }
  const status: Row<StatusServer> = {
    module: 'status/status-server',
    consumes: {},
    emits: { HealthChanged: true },
    runs: 'in-thread',
    actors: [{ name: 'status', config: statusConfig(features, { ...config, ...node }) }],
  }
  const exchange = tokenServiceConfig(features, { ...options, platform, isIpv6Only: node.isIpv6Only })
  const tokens: Row<TokenService> = {
    module: 'sts/token-service',
    consumes: {},
    emits: {},
    runs: 'in-thread',
    actors: exchange ? [{ name: 'sts', config: exchange }] : [],
  }
  const resolves = resolvesNames(node, features)
  const names: Row<DnsServer> = {
    module: 'dns/dns-server',
    consumes: { NameTableChanged: true },
    emits: {},
    runs: 'in-thread',
    actors: resolves ? [{ name: 'dns', config: dnsConfig(features, node) }] : [],
  }
  if (features.MESH_META_DNS_CAPTURE && !resolves)
    warn(
      'MESH_META_DNS_CAPTURE has no effect: names are resolved beside a sidecar that has its configuration through the agent; redirected queries find no server',
    )
  const relaySettings = xdsRelayConfig(features, discoverySettings(config), environment, resolves)
  const relay: Row<XdsRelay> = {
    module: 'xds-relay/xds-relay',
    consumes: { HealthChanged: true },
    emits: { NameTableChanged: true, TrustBundleChanged: true },
    runs: 'in-thread',
    actors: features.PROXY_XDS_VIA_AGENT ? [{ name: 'xds-relay', config: relaySettings.config }] : [],
  }
  if (features.PROXY_XDS_VIA_AGENT) relaySettings.warnings.forEach(warn)
  return wire([tokens, secrets, status, names, relay], module)
}
