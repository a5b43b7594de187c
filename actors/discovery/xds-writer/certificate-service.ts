/**
 * The method `CreateCertificate` (`mesh.v1.auth.MeshCertificateService`): authenticates the caller and has the certificate signed by the
 * certificate authority.
 */
import type { CertificateAnswer, CertificateRequest } from '../../../protocols/messages/authority.ts'
import { largestRequest } from '../../../src/ca/signing-request.ts'
import { status } from '../../../src/model/status-codes.ts'
import { servicePaths } from '../../../src/names/mesh-names.ts'
import { fieldHead, scanFields, WireError } from '../../../src/xds/slab/wire.ts'
import type { Method, Methods } from '../../grpc/methods.ts'
import type { Call, CallBounds, CallStatus } from '../../grpc/unary.ts'
import { Counter, type Registry } from '../../runtime/metrics.ts'
import { type Admission, isRefused } from './admission.ts'

/** Limits of a call. `concurrent` equals the length of the authority's queue. */
const bounds: CallBounds = { timeLimit: 15_000, requestBytes: 2 * largestRequest, concurrent: 4096 }

/** Dependencies of the service. */
export interface CertificateServiceParts {
  readonly admission: Admission
  /** Asks the certificate authority for a signature, for as long as the call waits. Rejects when the authority does not answer. */
  readonly sign: (request: CertificateRequest, call: Call) => Promise<CertificateAnswer>
  readonly metrics: Registry
  /** Logs a refusal. The number of lines of one kind is limited. */
  warn(kind: string, line: string): void
}

/** Returns the method under all of its names. */
export function certificateService({ admission, sign, metrics, warn }: CertificateServiceParts): Methods {
  const counter = (name: string, help: string) => new Counter({ name, help, registers: [metrics] })
  const asked = counter('citadel_server_csr_count', 'CSRs received')
  const unauthenticated = counter('citadel_server_authentication_failure_count', 'authentication failures')
  const answer = async (message: Buffer, call: Call): Promise<Uint8Array | CallStatus> => {
    asked.inc()
    // The method can be called on every port; calls in plain text are refused, because they have no credentials.
    const caller = await admission.admit(call, 'ca', call.signal)
    if (isRefused(caller)) {
      unauthenticated.inc()
      warn(`unauthenticated|${call.peer}`, `request for a certificate from ${call.peer} refused: ${caller.reason}`)
      if (caller.code !== status.unauthenticated) return { code: caller.code, message: caller.message }
      return { code: caller.code, message: 'request authenticate failure' }
    }
    const request = readRequest(message)
    if ('code' in request) return request
    try {
      const answered = await sign({ ...request, caller, peer: call.peer }, call)
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

/** Reads field 1, the signing request, and field 3, the requested lifetime in seconds. */
function readRequest(message: Buffer): Pick<CertificateRequest, 'csr' | 'ttlMs'> | CallStatus {
  try {
    let [csr, seconds] = ['', 0]
    for (const { field, bytes, value } of scanFields(message)) {
      if (field === 1 && bytes) csr = bytes.toString('latin1')
      else if (field === 3) seconds = value
    }
    // The field is an int64: negative values are read as values above 2^63. The largest positive values are rounded to 2^63, which
    // exceeds every allowed lifetime.
    return { csr, ttlMs: seconds > 2 ** 63 ? 0 : seconds * 1000 }
  } catch (error) {
    if (!(error instanceof WireError)) throw error
    return { code: status.invalidArgument, message: `the request cannot be read: ${error.message}` }
  }
}

/** Encodes an element of `cert_chain`, field 1. */
function chainElement(pem: string): Uint8Array[] {
  const content = Buffer.from(pem, 'latin1')
  return [fieldHead(1, content.length), content]
}
