/** The implementation of `grpc.health.v1`, loaded with the first call. It is open to all callers, as the readiness page is. */
import type { ServiceImpl } from '@connectrpc/connect'
import { Health as HealthService } from '../../../protocols/gen/grpc/health/v1/health_pb.js'
import { status } from '../../../src/model/status-codes.ts'
import { callOf, connectHandlers, errorOf } from '../../rpc/connect-handlers.ts'
import type { RpcHandler } from '../../rpc/rpc-methods.ts'
import { Health } from './health.ts'

/** Dependencies of the service. */
export interface HealthParts {
  /** Rejects when it is not known, which counts as not ready. */
  readonly isReady: () => Promise<boolean>
  /** The full names of all services of the server. */
  readonly services: readonly string[]
  /** Called with errors that are not the client's. */
  readonly failed: (path: string, error: unknown) => void
}

/** Returns the handlers of the methods, by path. */
export function healthRpcs({ isReady, services, failed }: HealthParts): ReadonlyMap<string, RpcHandler> {
  return connectHandlers({ failed, routes: (router) => router.service(HealthService, healthService(new Health(isReady, services))) })
}

/** Returns the implementation of the methods. */
export function healthService(health: Health): ServiceImpl<typeof HealthService> {
  const statusOf = async (service: string) => {
    const serving = await health.of(service)
    if (serving === undefined) throw errorOf({ code: status.notFound, message: `there is no service ${JSON.stringify(service.slice(0, 100))}` })
    return { status: serving }
  }
  return {
    check: ({ service }) => statusOf(service),
    list: async () => ({ statuses: Object.fromEntries(await Promise.all([...health.names].map(async (name) => [name, await statusOf(name)]))) }),
    async *watch({ service }, context) {
      for await (const serving of health.watch(service, callOf(context).signal)) yield { status: serving }
    },
  }
}
