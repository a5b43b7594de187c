/** The flags of `pilot-agent` (docs/operation.md, "Flags"). */
import { agentScopes } from '../logging/levels.ts'
import type { FlagTable } from './flag-table.ts'
import { loggingFlags } from './logging-flags.ts'

/** Flags of every command. */
export const agentLogging = loggingFlags(agentScopes)

/** Flags of `pilot-agent proxy`. */
export const proxyFlags = {
  concurrency: { type: 'int', default: 0, range: [0, 1024], about: 'number of worker threads' },
  domain: { type: 'string', default: '', about: 'DNS domain suffix; when not provided ${POD_NAMESPACE}.svc.cluster.local is used' },
  meshConfig: {
    type: 'string',
    default: './etc/mesh/config/mesh',
    about:
      'mesh configuration file; default mesh when unspecified; may be overridden by the PROXY_CONFIG environment variable or the proxy-config annotation',
  },
  outlierLogPath: { type: 'string', default: '', about: 'log path for outlier detection' },
  proxyComponentLogLevel: { type: 'string', default: 'misc:error', about: 'component log level used to start the proxy' },
  proxyLogLevel: {
    type: 'string',
    default: 'warning',
    about: 'log level used to start the proxy: trace, debug, info, warning, error, critical, off',
  },
  serviceCluster: { type: 'string', default: 'mesh-proxy', about: 'service cluster' },
  stsPort: { type: 'uint16', default: 0, range: [0, 65_535], about: 'HTTP port serving the Security Token Service; zero means no STS' },
  templateFile: { type: 'string', default: '', about: 'Go-template bootstrap config' },
  tokenManagerPlugin: { type: 'string', default: 'CloudTokenExchange', about: 'token-provider-specific plugin name' },
} as const satisfies FlagTable

/** The maximum of a signed 32-bit number of milliseconds. */
const longestMs = 2_147_483_647

/** Flags of `pilot-agent wait`. */
export const waitFlags = {
  periodMillis: { type: 'int', default: 500, range: [0, longestMs], about: 'milliseconds between attempts' },
  requestTimeoutMillis: { type: 'int', default: 500, range: [1, longestMs], about: 'milliseconds to wait for a response' },
  timeoutSeconds: { type: 'int', default: 60, range: [0, longestMs], about: 'maximum seconds to wait for the proxy to be ready' },
  url: { type: 'string', default: 'http://localhost:15021/healthz/ready', about: 'URL used in requests' },
} as const satisfies FlagTable
