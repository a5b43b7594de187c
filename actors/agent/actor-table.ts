/** The wiring of the agent as one table: which actors there are, what each consumes and emits. All of them share the one thread. */
import type { ProxyOptions } from '../../protocols/messages/agent-options.ts'
import type { HealthChanged } from '../../protocols/messages/health.ts'
import { secretAgentConfig } from '../../src/agent/settings.ts'
import type { AgentFeatures } from '../../src/config/agent-features.ts'
import { statusConfig } from '../../src/health/settings.ts'
import { tokenServiceConfig } from '../../src/sts/settings.ts'
import { type ActorRow, type Wiring, wire } from '../runtime/wiring.ts'
import type { PreparedProxy } from './prepared.ts'

/** What the table is made from. */
export interface TableParts {
  readonly features: AgentFeatures
  readonly proxy: PreparedProxy
  readonly options: Pick<ProxyOptions, 'stsPort' | 'tokenManagerPlugin'>
  /** Finds the module of an actor by its path in this folder. */
  readonly module: (name: string) => URL
}

/** What actors tell each other. */
interface Messages {
  HealthChanged: HealthChanged
}
type Row<Definition> = ActorRow<Messages, Definition>

type SecretAgent = typeof import('./sds/secret-agent.ts').actor
type TokenService = typeof import('./sts/token-service.ts').actor
type StatusServer = typeof import('./status/status-server.ts').actor

/** The wiring of an agent. Throws an Error that names what is wrong with the settings. */
export function actorTable({ features, proxy, options, module }: TableParts): Wiring {
  const secrets: Row<SecretAgent> = {
    module: 'sds/secret-agent',
    consumes: {},
    emits: {},
    runs: 'in-thread',
    actors: [{ name: 'secret-agent', config: secretAgentConfig(features, proxy.discoveryAddress) }],
  }
  const status: Row<StatusServer> = {
    module: 'status/status-server',
    consumes: {},
    emits: { HealthChanged: true },
    runs: 'in-thread',
    actors: [{ name: 'status', config: statusConfig(features, proxy.status) }],
  }
  const exchange = tokenServiceConfig(features, { ...options, isIpv6Only: proxy.status.isIpv6Only })
  const tokens: Row<TokenService> = {
    module: 'sts/token-service',
    consumes: {},
    emits: {},
    runs: 'in-thread',
    actors: exchange ? [{ name: 'sts', config: exchange }] : [],
  }
  return wire([tokens, secrets, status], module)
}
