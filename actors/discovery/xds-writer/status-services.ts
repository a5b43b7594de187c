/** The services beside ADS that tell about it: client status (`envoy.service.status.v3`), server reflection and health (`grpc.health.v1`). */
import { type DeclaredRpc, lazyRpcs, type Rpcs } from '../../rpc/rpc-methods.ts'
import type { HealthParts } from './health-rpcs.ts'
import type { StatusServiceParts } from './status-rpcs.ts'

/** Limits of client status calls: each evaluates node matchers and collects answers from all writers. */
const statusBounds = { timeLimit: 30_000, requestBytes: 65_536, concurrent: 16 }
const streamBounds = { requestBytes: 65_536, concurrent: 1000 }
const healthBounds = { timeLimit: 5000, requestBytes: 1024, concurrent: 1000 }

/** The full name of the health service. */
export const healthServiceName = 'grpc.health.v1.Health'

const health: Readonly<Record<string, DeclaredRpc>> = {
  [`/${healthServiceName}/Check`]: { type: 'unary', bounds: healthBounds },
  [`/${healthServiceName}/List`]: { type: 'unary', bounds: healthBounds },
  [`/${healthServiceName}/Watch`]: { type: 'server_stream', bounds: healthBounds },
}

const declared: Readonly<Record<string, DeclaredRpc>> = {
  '/envoy.service.status.v3.ClientStatusDiscoveryService/StreamClientStatus': { type: 'bidi_stream', bounds: streamBounds },
  '/envoy.service.status.v3.ClientStatusDiscoveryService/FetchClientStatus': { type: 'unary', bounds: statusBounds },
  '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo': { type: 'bidi_stream', bounds: streamBounds },
  '/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo': { type: 'bidi_stream', bounds: streamBounds },
  ...health,
}

/** The full names of these services. */
export const statusServiceNames: readonly string[] = [...new Set(Object.keys(declared).map((path) => path.split('/')[1] as string))]

/** Returns the methods of these services. */
export function statusServices(parts: StatusServiceParts): Rpcs {
  return lazyRpcs(declared, async () => (await import('./status-rpcs.ts')).statusRpcs(parts))
}

/** Returns the methods of health alone. */
export function healthServices(parts: HealthParts): Rpcs {
  return lazyRpcs(health, async () => (await import('./health-rpcs.ts')).healthRpcs(parts))
}
