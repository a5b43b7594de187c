/** The service `mesh.v1.auth.MeshCertificateService`, which signs workload certificates. */
import { largestRequest } from '../../../src/ca/signing-request.ts'
import { serviceNames, servicePaths } from '../../../src/names/mesh-names.ts'
import type { CallBounds } from '../../rpc/call.ts'
import { lazyRpcs, type Rpcs } from '../../rpc/rpc-methods.ts'
import { Counter, type MetricRegistry } from '../../runtime/metrics.ts'
import type { CertificateRpcParts } from './certificate-rpc.ts'

/** Limits of a call. `concurrent` equals the length of the authority's queue. */
const bounds: CallBounds = { timeLimit: 15_000, requestBytes: 2 * largestRequest, concurrent: 4096 }

/** Dependencies of the service. */
export interface CertificateServiceParts extends Omit<CertificateRpcParts, 'asked' | 'unauthenticated'> {
  readonly metrics: MetricRegistry
}

const serviceName = 'mesh.v1.auth.MeshCertificateService'

/** The full names of the service. */
export const certificateServiceNames: readonly string[] = serviceNames(serviceName)

/** Returns the method under all of its names. */
export function certificateService({ metrics, ...parts }: CertificateServiceParts): Rpcs {
  const counter = (name: string, help: string) => new Counter({ name, help, registers: [metrics] })
  const asked = counter('citadel_server_csr_count', 'CSRs received')
  const unauthenticated = counter('citadel_server_authentication_failure_count', 'authentication failures')
  const paths = servicePaths(serviceName, 'CreateCertificate')
  return lazyRpcs(
    Object.fromEntries(paths.map((path) => [path, { type: 'unary', bounds }])),
    async () => (await import('./certificate-rpc.ts')).certificateRpc({ ...parts, asked, unauthenticated }),
    () => paths[0] as string,
  )
}
