/**
 * The method `CreateCertificate`: authenticates the caller and has the certificate signed by the certificate authority. Loaded with the first
 * call.
 */
import { createContextKey } from '@connectrpc/connect'
import { type MeshCertificateRequest, MeshCertificateService } from '../../../protocols/gen/mesh/v1/auth/ca_pb.js'
import type { CertificateAnswer, CertificateRequest } from '../../../protocols/messages/authority.ts'
import type { Caller } from '../../../protocols/messages/identity.ts'
import { status } from '../../../src/model/status-codes.ts'
import type { Call, CallStatus } from '../../rpc/call.ts'
import { callOf, connectHandlers, errorOf } from '../../rpc/connect-handlers.ts'
import type { RpcHandler } from '../../rpc/rpc-methods.ts'
import type { Counter } from '../../runtime/metrics.ts'
import { type Authentication, isRefused } from './authentication.ts'

/** Dependencies of the method. */
export interface CertificateRpcParts {
  readonly authentication: Authentication
  /** Asks the certificate authority for a signature, for as long as the call waits. Rejects when the authority does not answer. */
  readonly sign: (request: CertificateRequest, call: Call) => Promise<CertificateAnswer>
  readonly asked: Counter
  readonly unauthenticated: Counter
  /** Logs a refusal. The number of lines of one kind is limited. */
  warn(kind: string, line: string): void
  /** Called with errors that are not the client's. */
  readonly failed: (path: string, error: unknown) => void
}

/** The caller, whose credential is verified before the request is read. */
const callerKey = createContextKey<Caller | undefined>(undefined, { description: 'the caller' })

/** Returns the handler of the method, by its path. */
export function certificateRpc(parts: CertificateRpcParts): ReadonlyMap<string, RpcHandler> {
  const { asked, failed } = parts
  return connectHandlers({
    failed,
    async gate(context) {
      asked.inc()
      context.values.set(callerKey, await callerOf(parts, callOf(context)))
    },
    routes: (router) =>
      router.service(MeshCertificateService, {
        async createCertificate(request, context) {
          const answered = await signed(parts, request, context.values.get(callerKey) as Caller, callOf(context))
          if ('chain' in answered) return { certChain: [...answered.chain] }
          throw errorOf(answered)
        },
      }),
  })
}

/** The method can be called on every port; calls in plain text are refused, because they have no credentials. */
async function callerOf({ authentication, unauthenticated, warn }: CertificateRpcParts, call: Call): Promise<Caller> {
  const caller = await authentication.authenticate(call, 'ca', call.signal)
  if (!isRefused(caller)) return caller
  unauthenticated.inc()
  warn(`unauthenticated|${call.peer}`, `request for a certificate from ${call.peer} refused: ${caller.reason}`)
  const { code, message } = caller
  throw errorOf(code === status.unauthenticated ? { code, message: 'request authenticate failure' } : { code, message })
}

async function signed(
  { sign, warn }: CertificateRpcParts,
  { csr, validityDuration }: MeshCertificateRequest,
  caller: Caller,
  call: Call,
): Promise<{ readonly chain: readonly string[] } | CallStatus> {
  const ttlMs = validityDuration > 0n ? Number(validityDuration) * 1000 : 0
  try {
    return await sign({ csr, ttlMs, caller, peer: call.peer }, call)
  } catch (error) {
    warn('authority', `the certificate authority does not answer: ${(error as Error).message}`)
    return { code: status.unavailable, message: 'the certificate authority does not answer', retryAfterMs: 1000 }
  }
}
