/** The implementation of client status, reflection and health, loaded with the first call. */
import { createContextKey, type HandlerContext, type ServiceImpl } from '@connectrpc/connect'
import { ClientStatusDiscoveryService, type ClientStatusRequest } from '../../../protocols/gen/envoy/service/status/v3/csds_pb.js'
import { Health as HealthService } from '../../../protocols/gen/grpc/health/v1/health_pb.js'
import { ServerReflection, type ServerReflectionRequest } from '../../../protocols/gen/grpc/reflection/v1/reflection_pb.js'
import { ServerReflection as ServerReflectionAlpha } from '../../../protocols/gen/grpc/reflection/v1alpha/reflection_pb.js'
import { callOf, connectHandlers, errorOf } from '../../rpc/connect-handlers.ts'
import type { RpcHandler } from '../../rpc/rpc-methods.ts'
import { type AskedConnections, clientStatus } from './client-status.ts'
import type { ConnectionsOfAll } from './connection-debug.ts'
import { Health } from './health.ts'
import { healthService } from './health-rpcs.ts'
import { Reflection } from './reflection.ts'
import type { MayRead, StatusAccess } from './status-access.ts'

/** Dependencies and settings of the services. */
export interface StatusServiceParts {
  /** Asks the supervisor. */
  readonly ask: <Answer>(question: string, ...details: unknown[]) => Promise<Answer>
  readonly access: StatusAccess
  /** The full names of all services of the server, for health and reflection. */
  readonly services: readonly string[]
  /** Called with errors that are not the client's. */
  readonly failed: (path: string, error: unknown) => void
  /** Logs a line, at most now and then for each kind. */
  readonly warn: (kind: string, line: string) => void
}

/** What the caller may read, who is admitted before a message is read. */
const mayReadKey = createContextKey<MayRead>(() => false, { description: 'what the caller may read' })

/** Returns the handlers of the methods, by path. */
export function statusRpcs({ ask, access, services, failed, warn }: StatusServiceParts): ReadonlyMap<string, RpcHandler> {
  const reflection = reflectionService(new Reflection(services))
  return connectHandlers({
    failed,
    async gate(context) {
      // Health is open to all callers, as the readiness page is.
      if (context.service === HealthService) return
      const mayRead = await access.of(callOf(context))
      if (typeof mayRead !== 'function') throw errorOf(mayRead)
      context.values.set(mayReadKey, mayRead)
    },
    routes: (router) =>
      router
        .service(
          ClientStatusDiscoveryService,
          clientStatusService(async (withMetadata) => {
            const { connections, silent, silence } = await ask<ConnectionsOfAll>('connectionsOfAll', withMetadata)
            if (silence !== '') warn('silent', `client status has not the proxies of all replicas; ${silence}`)
            return { connections, silent }
          }),
        )
        .service(ServerReflection, reflection)
        // The messages of both versions are the same.
        .service(ServerReflectionAlpha, reflection as unknown as ServiceImpl<typeof ServerReflectionAlpha>)
        .service(HealthService, healthService(new Health(() => ask('isReady'), services))),
  })
}

function clientStatusService(ask: (withMetadata: boolean) => Promise<AskedConnections>): ServiceImpl<typeof ClientStatusDiscoveryService> {
  const answer = async (request: ClientStatusRequest, { values }: HandlerContext) => {
    const mayRead = values.get(mayReadKey)
    const answered = await clientStatus(request, async (withMetadata) => {
      const { connections, silent } = await ask(withMetadata)
      return { connections: connections.filter(({ namespace }) => mayRead(namespace)), silent }
    })
    if ('code' in answered) throw errorOf(answered)
    return answered
  }
  return {
    fetchClientStatus: answer,
    async *streamClientStatus(requests, context) {
      for await (const request of requests) yield await answer(request, context)
    },
  }
}

function reflectionService(reflection: Reflection): ServiceImpl<typeof ServerReflection> {
  return {
    async *serverReflectionInfo(requests: AsyncIterable<ServerReflectionRequest>) {
      for await (const request of requests) yield reflection.answer(request)
    },
  }
}
