/** The flags of `pilot-agent` (docs/operation.md, "Flags"). */
import { agentScopes } from '../logging/levels.ts'
import { meshConfigPath } from './defaults.ts'
import { int, text, uint16 } from './flags.ts'
import { loggingFlags } from './logging-flags.ts'

/** Flags of every command. */
export const agentLogging = loggingFlags(agentScopes)

/** Flags of `pilot-agent proxy`. */
export const proxyFlags = {
  concurrency: int({ default: 0, range: [0, 1024], description: 'number of worker threads' }),
  domain: text({ default: '', description: 'DNS domain suffix; when not provided ${POD_NAMESPACE}.svc.cluster.local is used' }),
  meshConfig: text({
    value: 'file',
    default: meshConfigPath,
    description:
      'mesh configuration file; default mesh when unspecified; may be overridden by the PROXY_CONFIG environment variable or the proxy-config annotation',
  }),
  outlierLogPath: text({ value: 'file', default: '', description: 'log path for outlier detection' }),
  proxyComponentLogLevel: text({ default: 'misc:error', description: 'component log level used to start the proxy' }),
  proxyLogLevel: text({
    value: 'trace|debug|info|warning|error|critical|off',
    default: 'warning',
    description: 'log level used to start the proxy: trace, debug, info, warning, error, critical, off',
  }),
  serviceCluster: text({ default: 'mesh-proxy', description: 'service cluster' }),
  stsPort: uint16({ default: 0, range: [0, 65_535], description: 'HTTP port serving the Security Token Service; zero means no STS' }),
  templateFile: text({ value: 'file', default: '', description: 'Go-template bootstrap config' }),
  tokenManagerPlugin: text({ default: 'CloudTokenExchange', description: 'token-provider-specific plugin name' }),
}

/** The maximum of a signed 32-bit number of milliseconds. */
const longestMs = 2_147_483_647

/** Flags of `pilot-agent wait`. */
export const waitFlags = {
  periodMillis: int({ default: 500, range: [0, longestMs], description: 'milliseconds between attempts' }),
  requestTimeoutMillis: int({ default: 500, range: [1, longestMs], description: 'milliseconds to wait for a response' }),
  timeoutSeconds: int({ default: 60, range: [0, longestMs], description: 'maximum seconds to wait for the proxy to be ready' }),
  url: text({ default: 'http://localhost:15021/healthz/ready', description: 'URL used in requests' }),
}
