/** The answer of `grpc.health.v1.Health/Check`. */
import { scanFields } from '../xds/slab/wire.ts'

/** `HealthCheckResponse.ServingStatus.SERVING`. */
export const serving = 1

/** The status in a `HealthCheckResponse`, 0 (`UNKNOWN`) when it has none. Throws WireError. */
export function readHealthStatus(message: Buffer): number {
  let status = 0
  for (const { field, value } of scanFields(message)) if (field === 1) status = value ?? 0
  return status
}
