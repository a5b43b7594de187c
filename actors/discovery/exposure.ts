/** What the listening addresses show to whom, said at start. */
import type { DiscoveryOptions } from '../../protocols/messages/discovery.ts'
import { type Features, hasEffect } from '../../src/config/features.ts'
import { isOpenOnLoopback } from './admin/page-access.ts'

/** Variables that have clients authenticated. */
const authenticating = ['XDS_AUTH', 'PILOT_ENABLE_XDS_IDENTITY_CHECK']

/** A line for the log. */
export interface Notice {
  readonly level: 'info' | 'warn'
  readonly message: string
}

/** One line with every real address, and one for each way in that does not ask who comes. */
export function exposure(options: DiscoveryOptions, features: Features): Notice[] {
  const { grpcAddr, secureGRPCAddr, httpAddr, monitoringAddr } = options
  const servers = [
    ['gRPC', grpcAddr],
    ['gRPC over TLS', secureGRPCAddr],
    ['HTTP', httpAddr],
    ['monitoring', monitoringAddr],
  ].filter(([, address]) => address !== '')
  const pages = [httpAddr, monitoringAddr].filter((address) => address !== '').join(' and ')
  const notices: Notice[] = [
    { level: 'info', message: `listening addresses: ${servers.map(([name, address]) => `${name} ${address}`).join(', ')}` },
    { level: 'info', message: `${grpcAddr} serves configuration in plain text to whoever can reach it` },
    { level: 'info', message: `${pages} show metrics and readiness to whoever can reach them, and ${debugPages(options, features)}` },
  ]
  // As soon as one of the two is read, whoever comes is asked who they are.
  if (secureGRPCAddr !== '' && !authenticating.some(hasEffect))
    notices.push({
      level: 'warn',
      message: `${secureGRPCAddr} speaks TLS and authenticates nobody: whoever can reach it is served, with or without a client certificate or token (${authenticating.join(' and ')} have no effect yet)`,
    })
  return notices
}

/** Who sees the debug pages. */
function debugPages(options: DiscoveryOptions, features: Features): string {
  if (!features.ENABLE_DEBUG_ON_HTTP) return 'no debug pages (ENABLE_DEBUG_ON_HTTP=false)'
  const withToken = 'the debug pages to callers with a token of the mesh'
  return isOpenOnLoopback(options, features)
    ? `${withToken}, and without one to callers of this machine (ENABLE_DEBUG_ON_LOOPBACK=false ends that)`
    : withToken
}
