/** `CreateCertificate` (`mesh.v1.auth.MeshCertificateService`): the caller is found out here, and the certificate is signed by the authority. */
import type { CertificateAnswer, CertificateRequest } from '../../../protocols/messages/authority.ts'
import { largestRequest } from '../../../src/ca/signing-request.ts'
import { status } from '../../../src/model/status-codes.ts'
import { servicePaths } from '../../../src/names/mesh-names.ts'
import { fieldHead, scanFields, WireError } from '../../../src/xds/slab/wire.ts'
import type { Method, Methods } from '../../grpc/methods.ts'
import type { Call, CallBounds, CallStatus } from '../../grpc/unary.ts'
import { Counter, type Registry } from '../../runtime/metrics.ts'
import { type Admission, isRefused } from './admission.ts'

/** Bounds of a call: as many at a time as may wait for their turn at the authority. */
const bounds: CallBounds = { timeLimit: 15_000, requestBytes: 2 * largestRequest, concurrent: 4096 }

/** What the service needs of its writer. */
export interface CertificateServiceParts {
  readonly admission: Admission
  /** Asks the authority. Rejects when it does not answer. */
  readonly sign: (request: CertificateRequest) => Promise<CertificateAnswer>
  readonly metrics: Registry
  /** Logs a refusal; of a kind of them a few lines. */
  warn(kind: string, line: string): void
}

/** The method under all of its names. */
export function certificateService({ admission, sign, metrics, warn }: CertificateServiceParts): Methods {
  const counter = (name: string, help: string) => new Counter({ name, help, registers: [metrics] })
  const asked = counter('citadel_server_csr_count', 'CSRs received')
  const unauthenticated = counter('citadel_server_authentication_failure_count', 'authentication failures')
  const answer = async (message: Buffer, call: Call): Promise<Uint8Array | CallStatus> => {
    asked.inc()
    // A credential counts at any port where it can come; in plain text there is none.
    const caller = await admission.admit(call, 'ca')
    if (isRefused(caller)) {
      unauthenticated.inc()
      warn(`unauthenticated|${call.peer}`, `request for a certificate from ${call.peer} refused: ${caller.reason}`)
      if (caller.code !== status.unauthenticated) return { code: caller.code, message: caller.message }
      return { code: caller.code, message: 'request authenticate failure' }
    }
    const request = readRequest(message)
    if ('code' in request) return request
    try {
      const answered = await sign({ ...request, caller, peer: call.peer })
      if ('chain' in answered) return Buffer.concat(answered.chain.flatMap(chainElement))
      const { code, message: reason, retryAfterMs } = answered
      return { code, message: reason, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) }
    } catch (error) {
      warn('authority', `the certificate authority does not answer: ${(error as Error).message}`)
      return { code: status.unavailable, message: 'the certificate authority does not answer', retryAfterMs: 1000 }
    }
  }
  const method: Method = { type: 'unary', bounds, answer }
  return new Map(servicePaths('mesh.v1.auth.MeshCertificateService', 'CreateCertificate').map((path) => [path, method]))
}

/** Field 1, the request, and field 3, the life in seconds. */
function readRequest(message: Buffer): Pick<CertificateRequest, 'csr' | 'ttlMs'> | CallStatus {
  try {
    let [csr, seconds] = ['', 0]
    for (const { field, bytes, value } of scanFields(message)) {
      if (field === 1 && bytes) csr = bytes.toString('latin1')
      else if (field === 3) seconds = value
    }
    // Numbers below zero come as those above 2^63. The largest above zero are read as 2^63: they ask for too much.
    return { csr, ttlMs: seconds > 2 ** 63 ? 0 : seconds * 1000 }
  } catch (error) {
    if (!(error instanceof WireError)) throw error
    return { code: status.invalidArgument, message: `the request cannot be read: ${error.message}` }
  }
}

/** An element of `cert_chain`, field 1. */
function chainElement(pem: string): Uint8Array[] {
  const content = Buffer.from(pem, 'latin1')
  return [fieldHead(1, content.length), content]
}
