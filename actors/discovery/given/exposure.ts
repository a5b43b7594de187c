/** The log lines at start that say which listening address serves what to which callers. */
import type { DiscoveryOptions } from '../../../protocols/messages/discovery.ts'
import type { Features } from '../../../src/config/features.ts'

/** A log line. */
export interface Notice {
  readonly level: 'info' | 'warn' | 'error'
  readonly message: string
}

/** Returns one line with all actual addresses, and one line per address about the callers that it admits. */
export function exposure(options: DiscoveryOptions, features: Features, openOnLoopback: boolean): Notice[] {
  const { grpcAddr, secureGRPCAddr, httpAddr, httpsAddr, monitoringAddr } = options
  const servers = [
    ['gRPC', grpcAddr],
    ['gRPC over TLS', secureGRPCAddr],
    [grpcAddr === '' ? 'HTTP and gRPC' : 'HTTP', httpAddr],
    ['webhooks', httpsAddr],
    ['monitoring', monitoringAddr],
  ].filter(([, address]) => address !== '')
  return [
    { level: 'info', message: `listening addresses: ${servers.map(([name, address]) => `${name} ${address}`).join(', ')}` },
    {
      level: 'info',
      message: `${grpcAddr || `${httpAddr}, where gRPC is served because --grpcAddr is empty,`} serves configuration in plain text without authentication: every client that can reach it may claim to be any proxy`,
    },
    ...(secureGRPCAddr === '' ? [] : [securedPort(secureGRPCAddr, features)]),
    ...(httpsAddr === ''
      ? []
      : [{ level: 'info' as const, message: `${httpsAddr} answers reviews over TLS to every client that can reach it (webhooks)` }]),
    ...gatewaySecrets(secureGRPCAddr, features),
    ...pageServers(options).map(
      ([address, pages]): Notice => ({
        level: 'info',
        message: `${address} serves ${pages} to every client that can reach it, and ${debugPages(features, openOnLoopback)}`,
      }),
    ),
  ]
}

/** The addresses of the page servers, and the pages of each that need no token. */
function pageServers({ httpAddr, monitoringAddr }: DiscoveryOptions): [address: string, pages: string][] {
  const [readiness, monitoring] = ['readiness (/ready)', 'metrics (/metrics) and the version (/version)']
  if (monitoringAddr === '') return [[httpAddr, `${readiness}, ${monitoring}`]]
  return [
    [httpAddr, readiness],
    [monitoringAddr, monitoring],
  ]
}

function securedPort(address: string, { XDS_AUTH, PILOT_ENABLE_XDS_IDENTITY_CHECK }: Features): Notice {
  if (!XDS_AUTH)
    return {
      level: 'warn',
      message: `${address} serves TLS without authentication (XDS_AUTH=false): every client that can reach it is served, with or without a client certificate or token`,
    }
  const serves = `${address} serves configuration over TLS to callers with a client certificate or a token of the mesh`
  if (PILOT_ENABLE_XDS_IDENTITY_CHECK) return { level: 'info', message: `${serves}, for their own namespaces` }
  return { level: 'warn', message: `${serves}, for any namespace that they claim (PILOT_ENABLE_XDS_IDENTITY_CHECK=false)` }
}

/** A line that says why gateway secrets are served to no caller: without verified identities they must not be. */
function gatewaySecrets(address: string, { MESHD_ENABLE_SDS_SERVER, XDS_AUTH, PILOT_ENABLE_XDS_IDENTITY_CHECK }: Features): Notice[] {
  if (!MESHD_ENABLE_SDS_SERVER) return []
  const to = 'gateway secrets (credentialName) are not served'
  if (address === '') return [{ level: 'info', message: `${to}: there is no secured port` }]
  if (!PILOT_ENABLE_XDS_IDENTITY_CHECK) return [{ level: 'warn', message: `${to}: PILOT_ENABLE_XDS_IDENTITY_CHECK=false` }]
  return XDS_AUTH ? [] : [{ level: 'warn', message: `${to}: XDS_AUTH=false` }]
}

/** Describes who may read the debug pages. */
function debugPages(features: Features, openOnLoopback: boolean): string {
  if (!features.ENABLE_DEBUG_ON_HTTP) return 'no debug pages (ENABLE_DEBUG_ON_HTTP=false)'
  const withToken = 'the debug pages to callers with a token of the mesh'
  return openOnLoopback ? `${withToken}, and to callers on this machine without a token (ENABLE_DEBUG_ON_LOOPBACK=false disables this)` : withToken
}
